#include "sched/replay.h"

#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "sched/step_log_text.h"

namespace pagoda::sched {

namespace {

using base::Error;
using base::ErrorCode;

Error damaged(std::string message) {
    return {ErrorCode::kDataLoss, std::move(message)};
}

class Comparison {
  public:
    explicit Comparison(std::uint64_t step) : step_(step) {}

    template <class T>
    void field(std::string_view place, std::string_view name, const T& expected, const T& got) {
        if (found_ || expected == got) return;
        found_ = {step_, std::string(place) + std::string(name), {}, {}};
        append_text(found_->expected, expected);
        append_text(found_->got, got);
    }
    [[nodiscard]] std::optional<ReplayDifference> found() { return std::move(found_); }
    [[nodiscard]] bool is_found() const { return found_.has_value(); }

  private:
    std::uint64_t step_;
    std::optional<ReplayDifference> found_;
};

void compare_parts(Comparison& compare, std::string_view at, const SequencePlan& expected,
                   const SequencePlan& got) {
    compare.field(at, "seq", expected.seq, got.seq);
    compare.field(at, "first_position", expected.first_position, got.first_position);
    compare.field(at, "num_tokens", expected.num_tokens, got.num_tokens);
    compare.field(at, "is_sampled", expected.is_sampled, got.is_sampled);
    compare.field(at, "is_restart", expected.is_restart, got.is_restart);
    compare.field(at, "cached", expected.cached, got.cached);
    compare.field(at, "replaced", expected.replaced, got.replaced);
    compare.field(at, "new_blocks", expected.new_blocks, got.new_blocks);
    compare.field(at, "copies", expected.copies, got.copies);
}

std::vector<base::SeqId> sequences_of(const StepPlan& plan) {
    std::vector<base::SeqId> ids;
    ids.reserve(plan.sequences.size());
    for (const SequencePlan& part : plan.sequences) ids.push_back(part.seq);
    return ids;
}

}  // namespace

std::optional<ReplayDifference> first_difference(const StepPlan& expected, const StepPlan& got) {
    Comparison compare(got.step);
    compare.field("", "step", expected.step, got.step);
    compare.field("", "ended", expected.ended, got.ended);
    compare.field("", "preempted", expected.preempted, got.preempted);
    // Who computes says more than how the first of them differs.
    compare.field("", "sequences", sequences_of(expected), sequences_of(got));
    for (std::size_t i = 0; !compare.is_found() && i < got.sequences.size(); ++i) {
        const SequencePlan& part = got.sequences[i];
        if (expected.sequences[i] == part) continue;
        compare_parts(compare, fmt::format("sequences[{}].", i), expected.sequences[i], part);
    }
    compare.field("", "passed_over", expected.passed_over, got.passed_over);
    compare.field("", "evicted", expected.evicted, got.evicted);
    return compare.found();
}

Replay::Replay(SchedulerConfig config, const base::Clock& clock)
    : scheduler_(std::move(config)), clock_(clock) {}

base::Result<std::optional<ReplayDifference>> Replay::apply(const LoggedEvent& event) {
    return std::visit([this](const auto& content) { return on(content); }, event);
}

Replay::Outcome Replay::on(const LoggedSubmit& submit) {
    std::unordered_set<base::SeqId> added;
    for (const SequenceSpec& spec : submit.sequences) {
        if (lengths_.contains(spec.seq) || !added.insert(spec.seq).second)
            return damaged(fmt::format("sequence {} is submitted twice", spec.seq.value));
    }
    if (const base::Status taken = scheduler_.submit(submit.sequences, submit.now); !taken)
        return std::optional(
            ReplayDifference{num_steps_, "submit", "taken", "refused: " + taken.error().message});
    for (const SequenceSpec& spec : submit.sequences)
        lengths_[spec.seq] = {spec.num_prompt_tokens, spec.max_total_tokens};
    num_sequences_ += std::ssize(submit.sequences);
    return std::optional<ReplayDifference>();
}

Replay::Outcome Replay::on(const LoggedCancel& cancel) {
    scheduler_.cancel(cancel.seq);
    lengths_.erase(cancel.seq);
    return std::optional<ReplayDifference>();
}

Replay::Outcome Replay::on(const LoggedFinish& finish) {
    scheduler_.finish(finish.seq);
    lengths_.erase(finish.seq);
    return std::optional<ReplayDifference>();
}

Replay::Outcome Replay::on(const LoggedReset&) {
    scheduler_.reset_prefix_cache();
    return std::optional<ReplayDifference>();
}

// What the scheduler relies on of an executor.
base::Status Replay::check_result(const SequencePlan& part, const SequenceResult& result) const {
    const auto count = std::ssize(result.tokens);
    if (count > (part.is_sampled ? 1 : 0))
        return damaged(fmt::format("sequence {} has {} tokens that were not asked for",
                                   part.seq.value, count));
    if (result.finish || !part.is_sampled) return {};
    if (count == 0)
        return damaged(fmt::format("sequence {} goes on without a token", part.seq.value));
    const Length& length = lengths_.at(part.seq);
    if (length.total + 1 >= length.most)
        return damaged(fmt::format("sequence {} goes on at its limit of {} tokens", part.seq.value,
                                   length.most));
    return {};
}

Replay::Outcome Replay::on(const LoggedStep& step) {
    const base::TimePoint began = clock_.now();
    const StepPlan plan = scheduler_.plan();
    const base::Duration took = clock_.now() - began;
    if (auto difference = first_difference(step.plan, plan)) return difference;
    if (plan.empty()) return damaged("a step in which nothing is to be done");
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
        const auto valid = check_result(plan.sequences[i], step.result.sequences[i]);
        if (!valid) return valid.error();
    }
    scheduler_.commit(plan, step.result);
    for (const SequenceResult& result : step.result.sequences) {
        num_output_tokens_ += std::ssize(result.tokens);
        if (result.finish)
            lengths_.erase(result.seq);
        else
            lengths_[result.seq].total += std::ssize(result.tokens);
    }
    ++num_steps_;
    plan_times_.push_back(took);
    return std::optional<ReplayDifference>();
}

}  // namespace pagoda::sched
