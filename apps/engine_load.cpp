#include "engine_load.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>

namespace pagoda::apps {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::hours kForever{24};

double seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
}

// When tokens came, of all requests together. Filled by the engine's output thread.
class TokenClock {
  public:
    explicit TokenClock(std::size_t num_sequences) : first_tokens_(num_sequences) {}

    void on_event(std::size_t sequence, const engine::TokenEvent& event) {
        const Clock::time_point now = Clock::now();
        {
            const std::lock_guard lock(mutex_);
            if (event.error && !error_) error_ = event.error;
            if (!event.tokens.empty() && !first_tokens_[sequence]) {
                first_tokens_[sequence] = now;
                ++num_begun_;
                if (num_begun_ == first_tokens_.size()) all_begun_ = now;
            } else if (all_begun_) {
                later_tokens_.insert(later_tokens_.end(), event.tokens.size(), now);
            }
            if (event.finish || event.error) ++num_ended_;
        }
        changed_.notify_one();
    }

    // Until all sequences gave a token and that many more came.
    [[nodiscard]] base::Result<Clock::time_point> wait_for(std::size_t later_tokens) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
            return error_ || (all_begun_ && later_tokens_.size() >= later_tokens) ||
                   num_ended_ == first_tokens_.size();
        });
        if (error_) return *error_;
        if (!all_begun_ || later_tokens_.size() < later_tokens)
            return base::Error{base::ErrorCode::kInternal,
                               "the sequences of a measurement ended too early"};
        return later_tokens == 0 ? *all_begun_ : later_tokens_[later_tokens - 1];
    }

  private:
    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    std::vector<std::optional<Clock::time_point>> first_tokens_;
    std::vector<Clock::time_point> later_tokens_;  // after all had begun
    std::optional<Clock::time_point> all_begun_;
    std::size_t num_begun_ = 0;
    std::size_t num_ended_ = 0;
    std::optional<base::Error> error_;
};

class TokenClockSink final : public engine::TokenSink {
  public:
    TokenClockSink(std::shared_ptr<TokenClock> clock, std::size_t sequence)
        : clock_(std::move(clock)), sequence_(sequence) {}
    void on_event(engine::TokenEvent&& event) noexcept override {
        clock_->on_event(sequence_, event);
    }

  private:
    std::shared_ptr<TokenClock> clock_;  // owned by the sinks of a load and by who measures it
    std::size_t sequence_;
};

struct RunningLoad {
    std::shared_ptr<TokenClock> clock;
    Clock::time_point began;
    std::vector<base::RequestId> requests;
};

base::Result<RunningLoad> start_load(engine::Engine& engine, const LoadShape& shape) {
    std::mt19937_64 random(shape.seed);
    std::uniform_int_distribution<base::TokenId> token(0, engine.tokenizer().vocab_size() - 1);
    const auto count = static_cast<std::size_t>(shape.concurrency);
    std::vector<engine::GenerateRequest> requests(count);
    RunningLoad load{.clock = std::make_shared<TokenClock>(count)};
    for (std::size_t index = 0; index < count; ++index) {
        engine::GenerateRequest& request = requests[index];
        request.id = "bench";
        request.client = base::ClientId(index);
        request.prompt.resize(static_cast<std::size_t>(shape.prompt_tokens));
        for (base::TokenId& id : request.prompt) id = token(random);
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        request.sampling.max_tokens = shape.output_tokens;
        request.sink = std::make_shared<TokenClockSink>(load.clock, index);
    }
    // Repeated measurements begin cold.
    engine.reset_prefix_cache();
    load.began = Clock::now();
    auto ids = engine.submit(std::move(requests));
    if (!ids) return std::move(ids).error();
    load.requests = std::move(ids).value();
    return load;
}

void end_load(engine::Engine& engine, const RunningLoad& load) {
    for (const base::RequestId request : load.requests) engine.cancel(request);
    static_cast<void>(engine.wait_idle(kForever));
}

}  // namespace

base::Result<double> prefill_seconds(engine::Engine& engine, const LoadShape& shape) {
    LoadShape first_token = shape;
    first_token.output_tokens = 1;
    const auto load = start_load(engine, first_token);
    if (!load) return load.error();
    const auto ended = load->clock->wait_for(0);
    end_load(engine, *load);
    if (!ended) return ended.error();
    return seconds(*ended - load->began);
}

base::Result<std::vector<double>> decode_rates(engine::Engine& engine, const LoadShape& shape,
                                               std::int64_t window_tokens, std::int64_t windows) {
    const auto tokens = static_cast<std::size_t>(shape.concurrency * window_tokens);
    const auto load = start_load(engine, shape);
    if (!load) return load.error();
    std::vector<double> rates;
    auto before = load->clock->wait_for(0);
    for (std::int64_t window = 1; before && window <= windows; ++window) {
        const auto now = load->clock->wait_for(tokens * static_cast<std::size_t>(window));
        if (now) rates.push_back(static_cast<double>(tokens) / seconds(*now - *before));
        before = now;
    }
    end_load(engine, *load);
    if (!before) return before.error();
    return rates;
}

std::int64_t decode_output_tokens(const LoadShape& shape, std::int64_t step_tokens,
                                  std::int64_t measured_tokens) {
    constexpr std::int64_t kSpare = 16;
    const std::int64_t left = std::max(step_tokens - shape.concurrency, std::int64_t{1});
    const std::int64_t prefill_steps =
        (shape.concurrency * shape.prompt_tokens + left - 1) / left + shape.concurrency;
    return prefill_steps + measured_tokens + kSpare;
}

}  // namespace pagoda::apps
