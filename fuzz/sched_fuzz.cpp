// Any order of submissions, cancellations, errors, resets and steps over any small configuration,
// with prompts that begin alike: the fake executor checks every plan and what each block holds, the
// scheduler its invariants after each step, and everything drains.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "sched/fake_executor_for_test.h"
#include "sched/prompts_for_test.h"
#include "sched/scheduler.h"

namespace {

using pagoda::base::ClientId;
using pagoda::base::SeqId;
namespace sched = pagoda::sched;

class Bytes {
  public:
    explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}
    [[nodiscard]] bool empty() const { return data_.empty(); }
    // A number in [low, high], from one byte; low when there are no more.
    std::int64_t number(std::int64_t low, std::int64_t high) {
        if (data_.empty()) return low;
        const std::int64_t byte = data_.front();
        data_ = data_.subspan(1);
        return low + byte % (high - low + 1);
    }

  private:
    std::span<const std::uint8_t> data_;
};

sched::SchedulerConfig read_config(Bytes& bytes) {
    sched::SchedulerConfig config;
    config.max_num_seqs = bytes.number(1, 6);
    config.max_num_batched_tokens = config.max_num_seqs + bytes.number(0, 90);
    config.max_queue = 20;
    config.max_model_len = 600;
    config.policy = static_cast<sched::PolicyKind>(bytes.number(0, 2));
    config.priority_aging = std::chrono::milliseconds(bytes.number(1, 200));
    config.groups.push_back({bytes.number(1, 12), 0});
    if (bytes.number(0, 1) == 1)
        config.groups.push_back({bytes.number(1, 12), bytes.number(1, 100)});
    if (bytes.number(0, 3) > 0)
        config.prefix_hasher =
            std::make_shared<const pagoda::kv::PrefixHasher>(pagoda::base::HashKey({}));
    return config;
}

class Session {
  public:
    Session(const sched::SchedulerConfig& config, Bytes& bytes)
        : has_cache_(config.prefix_hasher != nullptr),
          scheduler_(config),
          executor_(config),
          prompts_(config.prefix_hasher, [&bytes](std::int64_t low, std::int64_t high) {
              return bytes.number(low, high);
          }) {}

    void submit(Bytes& bytes) {
        sched::SequenceSpec spec;
        spec.seq = SeqId(num_submitted_);
        spec.client = ClientId(static_cast<std::uint64_t>(bytes.number(0, 3)));
        spec.num_prompt_tokens = bytes.number(1, 250);
        spec.max_total_tokens = spec.num_prompt_tokens + bytes.number(1, 250);
        spec.priority = static_cast<std::int32_t>(bytes.number(-2, 2));
        spec.max_step_tokens = bytes.number(0, 1) * bytes.number(1, 40);
        const std::int64_t num_outputs = bytes.number(1, 250);
        if (has_cache_ && bytes.number(0, 7) > 0)
            spec.prefix = prompts_.next(spec.num_prompt_tokens);
        spec.computes_whole_prompt = bytes.number(0, 7) == 0;
        if (!scheduler_.submit({&spec, 1}, now_).ok()) return;
        executor_.add(spec, num_outputs);
        ++num_submitted_;
    }

    void cancel(Bytes& bytes) {
        scheduler_.cancel(SeqId(static_cast<std::uint64_t>(bytes.number(0, 255))));
        scheduler_.check_invariants();
    }

    void reset() {
        scheduler_.reset_prefix_cache();
        scheduler_.check_invariants();
    }

    // `failing` names the part of the plan that ends with an error, if there are so many.
    void step(std::int64_t failing) {
        const sched::StepPlan plan = scheduler_.plan();
        const sched::SchedulerStats before = scheduler_.stats();
        CHECK(!plan.sequences.empty() ||
                  before.num_running + before.num_waiting + before.num_preempted == 0,
              "a step without progress");
        sched::StepResult result = executor_.run(plan);
        if (failing < std::ssize(result.sequences)) {
            result.sequences[static_cast<std::size_t>(failing)].finish =
                sched::FinishReason::kError;
        }
        for (const sched::SequenceResult& part : result.sequences) {
            if (has_cache_ && part.finish) prompts_.remember(executor_.tokens(part.seq));
        }
        scheduler_.commit(plan, result);
        scheduler_.check_invariants();
        now_ += std::chrono::milliseconds(7);
    }

    void drain() {
        for (int left = 100'000; scheduler_.has_work(); --left) {
            CHECK(left > 0, "the load does not drain");
            step(1'000'000);
        }
        CHECK(scheduler_.stats().num_blocks_used == 0 && executor_.num_known() == 0,
              "something is left behind");
    }

  private:
    const bool has_cache_;
    sched::Scheduler scheduler_;
    sched::FakeExecutor executor_;
    sched::PromptSource prompts_;
    pagoda::base::TimePoint now_{};
    std::uint64_t num_submitted_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes({data, size});
    const sched::SchedulerConfig config = read_config(bytes);
    Session session(config, bytes);
    while (!bytes.empty()) {
        switch (bytes.number(0, 7)) {
            case 0:
            case 1:
                session.submit(bytes);
                break;
            case 2:
                session.cancel(bytes);
                break;
            case 3:
                session.step(bytes.number(0, 9));
                if (bytes.number(0, 15) == 0) session.reset();
                break;
            default:
                session.step(1'000'000);
        }
    }
    session.drain();
    return 0;
}
