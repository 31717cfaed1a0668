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
// Prefill tokens of a step that cost decides nothing about, so that prefill never stands still.
constexpr std::int64_t kLeastPrefill = 16;
// A step may take so many times what decoding alone takes, however small the target.
constexpr double kDecodeSteps = 4;
// How many that wait for what others are computing a plan looks past.
constexpr int kMaxFollowers = 256;

}  // namespace

Planner::Planner(const PlannerInput& input) : input_(input), num_kept_(input.running.size()) {
    for (const kv::BlockPool& pool : input.pools) {
        free_.push_back({.pool = pool,
                         .next_free = pool.first_free(),
                         .num_free = pool.num_free(),
                         .next_cached = pool.first_cached(),
                         .num_cached = pool.num_cached()});
    }
    taken_.resize(free_.size());
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

Planner::FreeBlocks::Taken Planner::FreeBlocks::take() {
    if (num_free > 0) {
        const base::BlockId block = *next_free;
        next_free = pool.next_free(block);
        --num_free;
        return {block, true};
    }
    if (num_cached > 0) {
        while (claimed.contains(*next_cached)) next_cached = pool.next_cached(*next_cached);
        const base::BlockId block = *next_cached;
        next_cached = pool.next_cached(block);
        --num_cached;
        return {block, false};
    }
    const base::BlockId block = given_back.front();
    given_back.pop_front();
    return {block, false};
}

void Planner::FreeBlocks::claim(base::BlockId id) {
    if (!can_claim(id)) return;
    claimed.insert(id);
    --num_cached;
}

// From the end, so that no block goes before those that follow it.
void Planner::FreeBlocks::give_back(const kv::BlockTable& table) {
    for (std::int64_t i = table.num_blocks(); i-- > table.num_dropped();) {
        const base::BlockId id = table.at(i);
        if (++num_dropped[id] == pool.num_references(id)) given_back.push_back(id);
    }
}

base::BlockId Planner::take_block(std::size_t group) {
    const auto [block, was_free] = free_[group].take();
    if (!was_free && input_.config.prefix_hasher != nullptr) {
        plan_.evicted.push_back({static_cast<std::int32_t>(group), block});
        taken_[group].insert(block);
    }
    return block;
}

void Planner::plan_running() {
    prefill_budget_ = input_.config.max_num_batched_tokens;
    StepShape decoding;
    for (const Sequence* sequence : input_.running) {
        if (!decodes(*sequence)) continue;
        --prefill_budget_;
        speak_for(*sequence, 1);
        ++decoding.rows;
        decoding.decode_positions += sequence->num_total;
    }
    limit_prefill(decoding);
    for (std::size_t index = 0; index < num_kept_; ++index) plan_one_running(index);
}

void Planner::limit_prefill(const StepShape& decoding) {
    const double target = std::chrono::duration<double>(input_.config.target_itl).count();
    if (target == 0 || decoding.rows == 0 || !input_.cost.is_known()) return;
    const double alone = input_.cost.seconds(decoding);
    prefill_time_ = std::max(target, kDecodeSteps * alone) - alone;
}

std::int64_t Planner::tokens_in_time(std::int64_t first, std::int64_t wanted) const {
    if (!prefill_time_) return wanted;
    if (!has_prefill_left()) return 0;
    const std::int64_t in_time = input_.cost.prefill_tokens(*prefill_time_, first, wanted);
    return std::max(in_time, std::min(wanted, kLeastPrefill));
}

bool Planner::has_prefill_left() const {
    if (prefill_budget_ <= 0) return false;
    if (!prefill_time_ || prefill_rows_.empty()) return true;
    return *prefill_time_ > input_.cost.prefill_seconds(0, kLeastPrefill);
}

void Planner::spend(std::int64_t first, std::int64_t tokens) {
    prefill_budget_ -= tokens;
    if (prefill_time_) *prefill_time_ -= input_.cost.prefill_seconds(first, tokens);
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
    for (std::size_t group = 0; group < free_.size(); ++group)
        free_[group].give_back(victim.tables[group]);
    plan_.preempted.push_back(victim.spec.seq);
    is_short_of_blocks_ = true;
}

void Planner::plan_admissions() {
    const auto max_running = static_cast<std::size_t>(input_.config.max_num_seqs);
    std::size_t num_running = num_kept_;
    if (num_running >= max_running || !has_prefill_left()) return;
    const std::unique_ptr<AdmissionOrder> order = input_.policy.order();
    add_running_prefills();
    int num_followers = 0;
    while (num_running < max_running && has_prefill_left() && num_followers < kMaxFollowers) {
        const Sequence* const sequence = order->next();
        if (sequence == nullptr) break;
        if (is_being_computed(*sequence)) {
            ++num_followers;
            continue;
        }
        if (demand_.empty()) add_running_demand();
        if (const std::optional<Start> begun = may_start(*sequence)) {
            demand_.add(begun->demand);
            start(*sequence, *begun);
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

void Planner::add_running_prefills() {
    for (std::size_t i = 0; i < num_kept_; ++i) {
        const Sequence& sequence = *input_.running[i];
        if (sequence.chain && sequence.cursor.is_attached() && !decodes(sequence))
            prefills_.push_back({&sequence, sequence.cursor.num_blocks(), false});
    }
}

// Whether a block of this sequence that the cache lacks is what another one computes in this step;
// equal hashes mean equal blocks before it. It loses little by waiting for it: it would share the
// step, and compute the same. Nobody waits for one of a lower rank, so that the first in rank never
// waits.
bool Planner::is_being_computed(const Sequence& sequence) const {
    if (!sequence.chain || sequence.spec.computes_whole_prompt) return false;
    const std::int64_t most = (sequence.num_total - 1) / kv::kBlockTokens;
    return std::any_of(prefills_.begin(), prefills_.end(), [&](const Prefill& other) {
        const std::int64_t block = other.next_block;
        if (!other.is_new && sequence.rank < other.sequence->rank) return false;
        if (block >= most || block >= other.sequence->chain->num_full_blocks()) return false;
        const base::Hash128& hash = sequence.chain->hash(block);
        return hash == other.sequence->chain->hash(block) && !input_.index.has(hash);
    });
}

std::optional<Planner::Start> Planner::may_start(const Sequence& sequence) const {
    // At least one block is written to.
    for (const FreeBlocks& group : free_) {
        if (group.count() - group.num_spoken_for < 1) return std::nullopt;
    }
    Start start;
    start.match = find_prefix(sequence);
    start.num_tokens = tokens_that_fit_after(sequence, start.match);
    if (start.num_tokens == 0 && start.match.num_copied > 0) {
        // Where one block is left, the copy's source may be the very one to write to.
        start.match.drop_copy();
        start.num_tokens = tokens_that_fit_after(sequence, start.match);
    }
    if (start.num_tokens == 0) return std::nullopt;
    start.demand = demand_of(sequence);
    start.demand.shared = tokens_in_use(start.match);
    // Alone, it fits: submit() saw to that.
    if (!demand_.empty() && !demand_fits(start.demand)) return std::nullopt;
    return start;
}

kv::PrefixMatch Planner::find_prefix(const Sequence& sequence) const {
    kv::PrefixMatch nothing;
    nothing.groups.resize(free_.size());
    if (!sequence.chain) return nothing;
    std::int64_t most = sequence.num_total - 1;
    if (sequence.spec.computes_whole_prompt) most = std::min(most, sequence.max_computed);
    if (most < kv::kBlockTokens / 2) return nothing;
    return input_.index.match(*sequence.chain, most, taken_);
}

// Of a sequence that would start with that match, within the budget.
std::int64_t Planner::tokens_that_fit_after(const Sequence& sequence,
                                            const kv::PrefixMatch& match) const {
    std::int64_t tokens = std::min(sequence.num_total - match.num_tokens(), prefill_budget_);
    if (sequence.spec.max_step_tokens > 0) tokens = std::min(tokens, sequence.spec.max_step_tokens);
    tokens = tokens_in_time(match.num_tokens(), tokens);
    for (std::size_t group = 0; group < free_.size(); ++group) {
        const FreeBlocks& free = free_[group];
        std::int64_t available = free.count() - free.num_spoken_for;
        for (const base::BlockId id : match.groups[group].blocks)
            available -= free.can_claim(id) ? 1 : 0;
        if (match.num_copied > 0 && free.can_claim(match.copied_from[group])) --available;
        const std::int64_t blocks = match.num_blocks + std::max<std::int64_t>(available, 0);
        tokens = std::min(tokens, blocks * kv::kBlockTokens - match.num_tokens());
    }
    return std::max<std::int64_t>(tokens, 0);
}

void Planner::start(const Sequence& sequence, const Start& start) {
    const kv::PrefixMatch& match = start.match;
    SequencePlan part;
    part.seq = sequence.spec.seq;
    part.first_position = match.num_tokens();
    part.num_tokens = start.num_tokens;
    part.is_sampled = part.first_position + part.num_tokens == sequence.num_total;
    part.is_restart = true;
    const bool is_hit = part.first_position > 0;
    for (std::size_t group = 0; group < free_.size(); ++group) {
        for (const base::BlockId id : match.groups[group].blocks) free_[group].claim(id);
        if (match.num_copied > 0) free_[group].claim(match.copied_from[group]);
        if (is_hit)
            part.cached.push_back({match.groups[group].first_index, match.groups[group].blocks});
    }
    const std::int64_t end = kv::blocks_for(part.first_position + part.num_tokens);
    for (std::size_t group = 0; group < free_.size(); ++group) {
        const auto number = static_cast<std::int32_t>(group);
        for (std::int64_t i = match.num_blocks; i < end; ++i) {
            part.new_blocks.push_back({number, take_block(group)});
            if (i == match.num_blocks && match.num_copied > 0)
                part.copies.push_back(
                    {number, match.copied_from[group], part.new_blocks.back().block});
        }
    }
    spend(part.first_position, part.num_tokens);
    if (sequence.chain) prefills_.push_back({&sequence, match.num_blocks, true});
    prefill_rows_.push_back(std::move(part));
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
    if (decodes(sequence)) return 1;
    std::int64_t tokens = std::min(sequence.num_behind(), prefill_budget_);
    if (sequence.spec.max_step_tokens > 0) {
        tokens = std::min(tokens, sequence.spec.max_step_tokens);
    }
    return tokens_in_time(sequence.num_computed, tokens);
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
    part.replaced = sequence.replaced;
    const std::int64_t end = kv::blocks_for(sequence.num_computed + num_tokens);
    for (std::size_t group = 0; group < free_.size(); ++group) {
        for (std::int64_t i = sequence.tables[group].num_blocks(); i < end; ++i) {
            part.new_blocks.push_back({static_cast<std::int32_t>(group), take_block(group)});
        }
    }
    if (decodes(sequence)) {
        decode_rows_.push_back(std::move(part));
    } else {
        spend(sequence.num_computed, num_tokens);
        prefill_rows_.push_back(std::move(part));
    }
}

FutureDemand::Item Planner::demand_of(const Sequence& sequence) const {
    const std::int64_t most =
        std::max<std::int64_t>(sequence.spec.max_total_tokens - sequence.num_total, 0);
    std::int64_t remaining = input_.forecast.remaining(sequence.num_outputs());
    // Each preemption shows that too little was set aside.
    for (std::int32_t i = 0; i < sequence.num_preemptions && remaining < most; ++i) remaining *= 2;
    return {.tokens = sequence.num_total, .remaining = std::min(remaining, most)};
}

// A block that several hold is given back when the last of them ends: it counts for the one that is
// expected to run longest.
void Planner::add_running_demand() {
    std::vector<std::pair<FutureDemand::Item, const Sequence*>> items;
    for (const Sequence* sequence : input_.running)
        items.emplace_back(demand_of(*sequence), sequence);
    std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
        return a.first.remaining > b.first.remaining;
    });
    std::size_t group = 0;
    while (group < free_.size() && input_.config.groups[group].window != 0) ++group;
    std::unordered_set<base::BlockId> counted;
    for (auto& [item, sequence] : items) {
        if (group < free_.size()) {
            // Who shares a block shares all before it.
            const kv::BlockTable& table = sequence->tables[group];
            for (std::int64_t i = 0; i < table.num_blocks(); ++i) {
                if (free_[group].pool.num_references(table.at(i)) == 1) break;
                if (!counted.insert(table.at(i)).second) item.shared += kv::kBlockTokens;
            }
        }
        demand_.add(item);
    }
}

// Of a match, the tokens in blocks that sequences hold which run, or start in this plan.
std::int64_t Planner::tokens_in_use(const kv::PrefixMatch& match) const {
    for (std::size_t group = 0; group < free_.size(); ++group) {
        if (input_.config.groups[group].window != 0) continue;
        std::int64_t tokens = 0;
        for (const base::BlockId id : match.groups[group].blocks)
            tokens += free_[group].can_claim(id) ? 0 : kv::kBlockTokens;
        return tokens;
    }
    return 0;
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
