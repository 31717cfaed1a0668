#include "sched/planner.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/check.h"

namespace pagoda::sched {

namespace {

// How many waiting sequences that do not fit a plan looks past, and how often one may be passed
// before nobody passes it any more.
constexpr std::size_t kMaxUnfit = 16;
constexpr std::int64_t kMaxPassed = 64;

}  // namespace

Planner::Planner(const PlannerInput& input) : input_(input), num_kept_(input.running.size()) {
    for (const kv::BlockPool& pool : input.pools) {
        free_.push_back({pool, pool.first_free(), pool.num_free(), {}, 0});
    }
    plan_.step = input.step;
    plan_.ended.assign(input.ended.begin(), input.ended.end());
}

StepPlan Planner::plan() {
    plan_running();
    // Who lacks blocks must not be joined by others.
    if (!is_short_of_blocks_) plan_admissions();
    plan_.sequences = std::move(decode_rows_);
    std::move(prefill_rows_.begin(), prefill_rows_.end(), std::back_inserter(plan_.sequences));
    return std::move(plan_);
}

base::BlockId Planner::FreeBlocks::take() {
    if (!given_back.empty()) {
        const base::BlockId block = given_back.back();
        given_back.pop_back();
        return block;
    }
    const base::BlockId block = *next;
    next = pool.next_free(block);
    --num_in_pool;
    return block;
}

void Planner::plan_running() {
    prefill_budget_ = input_.config.max_num_batched_tokens;
    for (const Sequence* sequence : input_.running) {
        if (!decodes(*sequence)) continue;
        --prefill_budget_;
        speak_for(*sequence, 1);
    }
    for (std::size_t index = 0; index < num_kept_; ++index) plan_one_running(index);
}

void Planner::plan_one_running(std::size_t index) {
    const Sequence& sequence = *input_.running[index];
    if (decodes(sequence)) speak_for(sequence, -1);
    const std::int64_t wanted = wanted_tokens(sequence);
    if (wanted == 0) return;
    std::int64_t fits = tokens_that_fit(sequence, wanted, Claims::kRespect);
    // It goes before those that decode further down, if it cannot go on otherwise.
    if (fits == 0) fits = tokens_that_fit(sequence, wanted, Claims::kIgnore);
    while (fits == 0 && num_kept_ > index + 1) {
        preempt_last();
        fits = tokens_that_fit(sequence, wanted, Claims::kIgnore);
    }
    if (fits == 0) {
        // The last in rank keeps what it has and waits for those before it.
        CHECK(index > 0, "the only running sequence does not fit");
        is_short_of_blocks_ = true;
        return;
    }
    schedule(sequence, fits);
}

void Planner::preempt_last() {
    const Sequence& victim = *input_.running[--num_kept_];
    if (decodes(victim)) {
        speak_for(victim, -1);
        ++prefill_budget_;
    }
    for (std::size_t group = 0; group < free_.size(); ++group) {
        const kv::BlockTable& table = victim.tables[group];
        for (std::int64_t i = table.num_dropped(); i < table.num_blocks(); ++i) {
            free_[group].given_back.push_back(table.at(i));
        }
    }
    plan_.preempted.push_back(victim.spec.seq);
    is_short_of_blocks_ = true;
}

void Planner::plan_admissions() {
    const auto max_running = static_cast<std::size_t>(input_.config.max_num_seqs);
    std::size_t num_running = num_kept_;
    if (num_running >= max_running || prefill_budget_ <= 0) return;
    const std::unique_ptr<AdmissionOrder> order = input_.policy.order();
    while (num_running < max_running && prefill_budget_ > 0) {
        const Sequence* const sequence = order->next();
        if (sequence == nullptr) break;
        if (demand_.empty()) {
            for (const Sequence* running : input_.running) demand_.add(demand_of(*running));
        }
        if (may_start(*sequence)) {
            demand_.add(demand_of(*sequence));
            schedule(*sequence,
                     tokens_that_fit(*sequence, wanted_tokens(*sequence), Claims::kRespect));
            order->admitted();
            ++num_running;
            record_passed_over();
            continue;
        }
        unfit_.push_back(sequence);
        if (sequence->is_resumed() || sequence->num_passed >= kMaxPassed) break;
        if (unfit_.size() >= kMaxUnfit) break;
    }
}

bool Planner::may_start(const Sequence& sequence) const {
    if (tokens_that_fit(sequence, 1, Claims::kRespect) == 0) return false;
    // Alone, it fits: submit() saw to that.
    return demand_.empty() || demand_fits(demand_of(sequence));
}

void Planner::record_passed_over() {
    for (const Sequence* sequence : unfit_) {
        const base::SeqId seq = sequence->spec.seq;
        const auto entry = std::find_if(plan_.passed_over.begin(), plan_.passed_over.end(),
                                        [&](const PassedOver& over) { return over.seq == seq; });
        if (entry != plan_.passed_over.end()) {
            ++entry->by;
        } else {
            plan_.passed_over.push_back({seq, 1});
        }
    }
}

std::int64_t Planner::wanted_tokens(const Sequence& sequence) const {
    if (sequence.is_running && decodes(sequence)) return 1;
    std::int64_t tokens = std::min(sequence.num_behind(), prefill_budget_);
    if (sequence.spec.max_step_tokens > 0) {
        tokens = std::min(tokens, sequence.spec.max_step_tokens);
    }
    return tokens;
}

std::int64_t Planner::tokens_that_fit(const Sequence& sequence, std::int64_t wanted,
                                      Claims claims) const {
    for (std::size_t group = 0; group < free_.size(); ++group) {
        std::int64_t available = free_[group].count();
        if (claims == Claims::kRespect) available -= free_[group].num_spoken_for;
        const std::int64_t blocks =
            sequence.tables[group].num_blocks() + std::max<std::int64_t>(available, 0);
        wanted = std::min(wanted, blocks * kv::kBlockTokens - sequence.num_computed);
    }
    return std::max<std::int64_t>(wanted, 0);
}

void Planner::speak_for(const Sequence& sequence, std::int64_t sign) {
    const std::int64_t needed = kv::blocks_for(sequence.num_computed + 1);
    for (std::size_t group = 0; group < free_.size(); ++group) {
        free_[group].num_spoken_for += sign * (needed - sequence.tables[group].num_blocks());
    }
}

void Planner::schedule(const Sequence& sequence, std::int64_t num_tokens) {
    CHECK(num_tokens > 0, "a sequence was scheduled without tokens");
    SequencePlan part;
    part.seq = sequence.spec.seq;
    part.first_position = sequence.num_computed;
    part.num_tokens = num_tokens;
    part.is_sampled = num_tokens == sequence.num_behind();
    part.is_restart = !sequence.is_running;
    const std::int64_t end = kv::blocks_for(sequence.num_computed + num_tokens);
    for (std::size_t group = 0; group < free_.size(); ++group) {
        for (std::int64_t i = sequence.tables[group].num_blocks(); i < end; ++i) {
            part.new_blocks.push_back({static_cast<std::int32_t>(group), free_[group].take()});
        }
    }
    if (sequence.is_running && decodes(sequence)) {
        decode_rows_.push_back(std::move(part));
    } else {
        prefill_budget_ -= num_tokens;
        prefill_rows_.push_back(std::move(part));
    }
}

FutureDemand::Item Planner::demand_of(const Sequence& sequence) const {
    const std::int64_t most =
        std::max<std::int64_t>(sequence.spec.max_total_tokens - sequence.num_total, 0);
    std::int64_t remaining = input_.forecast.remaining(sequence.num_outputs());
    // Each preemption shows that too little was set aside.
    for (std::int32_t i = 0; i < sequence.num_preemptions && remaining < most; ++i) remaining *= 2;
    return {sequence.num_total, std::min(remaining, most)};
}

bool Planner::demand_fits(const FutureDemand::Item& candidate) const {
    for (std::size_t group = 0; group < free_.size(); ++group) {
        const std::int64_t num_blocks = input_.pools[group].num_blocks();
        const std::int64_t window = input_.config.groups[group].window;
        if (window == 0) {
            if (demand_.peak_with(candidate) > num_blocks) return false;
            continue;
        }
        const auto held = [window](const FutureDemand::Item& item) {
            return blocks_to_advance(item.tokens + item.remaining, window);
        };
        std::int64_t sum = held(candidate);
        for (const FutureDemand::Item& item : demand_.items()) sum += held(item);
        if (sum > num_blocks) return false;
    }
    return true;
}

}  // namespace pagoda::sched
