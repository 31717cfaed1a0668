#include "loadgen/load.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include <curl/curl.h>
#include <fmt/core.h>

#include "base/check.h"
#include "base/json.h"
#include "loadgen/random_text.h"

namespace pagoda::loadgen {
namespace {

constexpr std::chrono::milliseconds kTick{100};
constexpr long kMostIdleConnections = 1024;  // NOLINT: libcurl's type

class Load final {
  public:
    Load(const Target& target, const Arrivals& arrivals, Workload& workload,
         const base::Clock& clock)
        : target_(target),
          arrivals_(arrivals),
          workload_(workload),
          clock_(clock),
          random_(arrivals.seed),
          multi_(curl_multi_init()) {
        CHECK(multi_ != nullptr, "libcurl has no memory");
        curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kMostIdleConnections);
    }
    ~Load() {
        for (const auto& [handle, transfer] : transfers_) curl_multi_remove_handle(multi_, handle);
        transfers_.clear();
        curl_multi_cleanup(multi_);
    }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

    LoadResult run(const OnProgress& on_progress) {
        began_at_ = clock_.now();
        tell_at_ = began_at_ + kTick;
        next_arrival_ = first_arrival();
        bool goes_on = true;
        while (goes_on) {
            arrive();
            send();
            if (transfers_.empty() && waiting_.empty() && !next_arrival_) break;
            collect();
            goes_on = tell(on_progress);
        }
        result_.num_left_out = std::ssize(transfers_) + std::ssize(waiting_);
        result_.took = clock_.now() - began_at_;
        return std::move(result_);
    }

  private:
    struct Waiting {
        Ask ask;
        base::TimePoint arrived_at;
    };
    // What comes next, and when; where the workload or its clients say so, the request itself.
    struct Arrival {
        base::TimePoint at;
        std::optional<Ask> ask;
    };

    [[nodiscard]] bool may_arrive(base::TimePoint at) const {
        if (arrivals_.time_limit.count() > 0 && at - began_at_ > arrivals_.time_limit) return false;
        return num_arrived_ < arrivals_.num_requests;
    }

    std::optional<Arrival> first_arrival() {
        std::optional<Ask> ask = workload_.next();
        if (!ask) return std::nullopt;
        const base::Duration at = ask->at.value_or(base::Duration{});
        origin_ = at;
        return Arrival{began_at_, std::move(ask)};
    }

    // A closed loop has an arrival for each of its clients at the start, and one for each end.
    std::optional<Arrival> arrival_behind(base::TimePoint last) {
        if (arrivals_.rate > 0) {
            std::exponential_distribution<double> seconds(arrivals_.rate);
            const auto gap = std::chrono::duration<double>(seconds(random_));
            return Arrival{last + std::chrono::duration_cast<base::Duration>(gap), std::nullopt};
        }
        if (num_arrived_ < arrivals_.num_clients) return Arrival{began_at_, std::nullopt};
        return std::nullopt;
    }
    std::optional<Arrival> arrival_of_workload() {
        std::optional<Ask> ask = workload_.next();
        if (!ask) return std::nullopt;
        const auto since = std::chrono::duration<double>(*ask->at - origin_) / arrivals_.speed;
        return Arrival{began_at_ + std::chrono::duration_cast<base::Duration>(since),
                       std::move(ask)};
    }

    // All that is due. A request's text is made when it is, so that a chat may have gone on.
    void arrive() {
        const base::TimePoint now = clock_.now();
        while (next_arrival_ && next_arrival_->at <= now) {
            Arrival arrival = *std::exchange(next_arrival_, std::nullopt);
            if (!may_arrive(arrival.at)) return;
            if (!arrival.ask) arrival.ask = workload_.next();
            if (!arrival.ask) return;
            const bool has_times = arrival.ask->at.has_value();
            waiting_.push_back({*std::move(arrival.ask), arrival.at});
            ++num_arrived_;
            next_arrival_ = has_times ? arrival_of_workload() : arrival_behind(arrival.at);
        }
    }

    void send() {
        if (arrivals_.static_batch > 0 && !transfers_.empty()) return;
        const std::int64_t most =
            arrivals_.static_batch > 0 ? arrivals_.static_batch : std::ssize(waiting_);
        for (std::int64_t i = 0; i < most && !waiting_.empty(); ++i) {
            Waiting next = std::move(waiting_.front());
            waiting_.pop_front();
            auto transfer = std::make_unique<Transfer>(target_, next.ask, next.arrived_at, clock_);
            void* const handle = transfer->handle();
            const CURLMcode code = curl_multi_add_handle(multi_, handle);
            CHECK(code == CURLM_OK, curl_multi_strerror(code));
            transfers_.emplace(handle, std::move(transfer));
        }
    }

    void collect() {
        int num_running = 0;
        curl_multi_perform(multi_, &num_running);
        bool has_ended = false;
        int num_left = 0;
        while (const CURLMsg* message = curl_multi_info_read(multi_, &num_left)) {
            if (message->msg != CURLMSG_DONE) continue;
            end(message->easy_handle, message->data.result);
            has_ended = true;
        }
        if (!has_ended) wait();
    }

    void end(void* handle, CURLcode code) {
        const auto at = transfers_.find(handle);
        CHECK(at != transfers_.end(), "libcurl ended what it was not given");
        Sample sample = at->second->finish(code == CURLE_OK ? "" : curl_easy_strerror(code));
        num_pieces_ += at->second->num_pieces();
        if (!sample.ok()) ++num_failed_;
        workload_.answered(at->second->session(), sample.ok() ? sample.text : std::string());
        curl_multi_remove_handle(multi_, handle);
        transfers_.erase(at);
        // Only now, so that a closed loop's next turn may be that of the chat that was answered.
        if (arrivals_.num_clients > 0) ask_again(sample.ended_at);
        sample.text.clear();
        result_.samples.push_back(std::move(sample));
    }

    void ask_again(base::TimePoint now) {
        if (next_arrival_ || !may_arrive(now)) return;
        if (std::optional<Ask> ask = workload_.next(); ask) {
            waiting_.push_back({*std::move(ask), now});
            ++num_arrived_;
        }
    }

    void wait() {
        base::Duration time = kTick;
        if (next_arrival_)
            time = std::clamp(next_arrival_->at - clock_.now(), base::Duration{}, time);
        const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(time);
        curl_multi_poll(multi_, nullptr, 0, static_cast<int>(rounded.count()), nullptr);
    }

    bool tell(const OnProgress& on_progress) {
        const base::TimePoint now = clock_.now();
        if (!on_progress || now < tell_at_) return true;
        tell_at_ = now + kTick;
        LoadProgress progress{.elapsed = now - began_at_,
                              .num_waiting = std::ssize(waiting_),
                              .num_sent = std::ssize(transfers_),
                              .num_ended = std::ssize(result_.samples),
                              .num_failed = num_failed_,
                              .num_pieces = num_pieces_};
        for (const auto& [handle, transfer] : transfers_)
            progress.num_pieces += transfer->num_pieces();
        return on_progress(progress);
    }

    const Target& target_;
    const Arrivals& arrivals_;
    Workload& workload_;
    const base::Clock& clock_;
    Random random_;
    CURLM* multi_;
    base::TimePoint began_at_;
    base::TimePoint tell_at_;
    base::Duration origin_{};  // a workload's first time
    std::optional<Arrival> next_arrival_;
    std::deque<Waiting> waiting_;
    std::map<void*, std::unique_ptr<Transfer>> transfers_;  // by handle
    std::int64_t num_arrived_ = 0;
    std::int64_t num_pieces_ = 0;  // of those that ended
    std::int64_t num_failed_ = 0;
    LoadResult result_;
};

std::size_t append(const char* bytes, std::size_t size, std::size_t count, void* text) {
    constexpr std::size_t kMostBytes = 1U << 20U;
    auto& whole = *static_cast<std::string*>(text);
    if (whole.size() + size * count > kMostBytes) return 0;
    whole.append(bytes, size * count);
    return size * count;
}

}  // namespace

CurlSession::CurlSession() {
    const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    CHECK(code == CURLE_OK, curl_easy_strerror(code));
}
CurlSession::~CurlSession() {
    curl_global_cleanup();
}

LoadResult run_load(const Target& target, const Arrivals& arrivals, Workload& workload,
                    const base::Clock& clock, const OnProgress& on_progress) {
    return Load(target, arrivals, workload, clock).run(on_progress);
}

base::Result<std::string> first_model(const Target& target) {
    const std::string url = url_of(target.url, "models");
    const std::unique_ptr<void, void (*)(void*)> handle(curl_easy_init(), curl_easy_cleanup);
    CHECK(handle != nullptr, "libcurl has no memory");
    std::string header;
    if (!target.api_key.empty()) header = "Authorization: Bearer " + target.api_key;
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
        header.empty() ? nullptr : curl_slist_append(nullptr, header.c_str()), curl_slist_free_all);
    std::string text;
    constexpr long kMostSeconds = 30;  // NOLINT: libcurl's type
    curl_easy_setopt(handle.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(handle.get(), CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle.get(), CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle.get(), CURLOPT_TIMEOUT, kMostSeconds);
    curl_easy_setopt(handle.get(), CURLOPT_WRITEDATA, static_cast<void*>(&text));
    curl_easy_setopt(handle.get(), CURLOPT_WRITEFUNCTION, &append);
    const CURLcode code = curl_easy_perform(handle.get());
    if (code != CURLE_OK)
        return base::Error{base::ErrorCode::kIo,
                           fmt::format("{}: {}", url, curl_easy_strerror(code)), "url"};
    long status = 0;  // NOLINT: libcurl's type
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
    const auto document = base::Json::parse(text);
    const base::Json* list = document ? document->find("data") : nullptr;
    const bool has_model = list != nullptr && list->is_array() && !list->as_array().empty();
    const base::Json* id = has_model ? list->as_array().front().find("id") : nullptr;
    if (id != nullptr && id->is_string()) return id->as_string();
    return base::Error{base::ErrorCode::kIo,
                       fmt::format("{} answers with status {} and no list of models; name one "
                                   "with --model, and a key with --api-key where one is needed",
                                   url, status),
                       "model"};
}

}  // namespace pagoda::loadgen
