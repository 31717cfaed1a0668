#include "sched/scheduler.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "sched/planner.h"

namespace pagoda::sched {

using base::Error;
using base::ErrorCode;
using base::SeqId;

base::Status validate(const SchedulerConfig& config) {
    const auto at_least = [](const char* key, std::int64_t value,
                             std::int64_t low) -> base::Status {
        if (value >= low) return {};
        return base::invalid(fmt::format("{} must be at least {}, got {}", key, low, value), key);
    };
    const std::pair<const char*, std::int64_t> positive[] = {
        {"max_num_seqs", config.max_num_seqs},
        {"max_queue", config.max_queue},
        {"max_model_len", config.max_model_len},
        {"groups", std::ssize(config.groups)},
    };
    for (const auto& [key, value] : positive) {
        if (base::Status status = at_least(key, value, 1); !status.ok()) return status;
    }
    if (config.max_num_batched_tokens < config.max_num_seqs) {
        return base::invalid(
            fmt::format("max_num_batched_tokens must be at least max_num_seqs ({}), so that every "
                        "running sequence can advance in a step, got {}",
                        config.max_num_seqs, config.max_num_batched_tokens),
            "max_num_batched_tokens");
    }
    if (config.priority_aging < std::chrono::milliseconds(1) ||
        config.priority_aging > std::chrono::hours(1)) {
        return base::invalid("priority_aging must be between 1 ms and 1 h", "priority_aging");
    }
    if (config.target_itl < base::Duration::zero() || config.target_itl > std::chrono::hours(1))
        return base::invalid("target_itl must be between 0 and 1 h", "target_itl");
    for (const KvGroupSpec& group : config.groups) {
        if (base::Status status = at_least("num_blocks", group.num_blocks, 1); !status.ok()) {
            return status;
        }
        if (base::Status status = at_least("window", group.window, 0); !status.ok()) return status;
    }
    return {};
}

base::Status can_ever_run(const SchedulerConfig& config, const SequenceSpec& spec) {
    CHECK(spec.num_prompt_tokens >= 1 && spec.max_total_tokens >= spec.num_prompt_tokens,
          "a sequence has a prompt, and room for it");
    if (spec.max_total_tokens > config.max_model_len) {
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("the request may reach {} tokens, the model's limit is {} "
                                 "(max_model_len)",
                                 spec.max_total_tokens, config.max_model_len)};
    }
    // The last output token is never fed back, so that it needs no slot.
    const std::int64_t positions = std::max(spec.num_prompt_tokens, spec.max_total_tokens - 1);
    for (const KvGroupSpec& group : config.groups) {
        const std::int64_t needed = blocks_to_advance(positions, group.window);
        if (needed <= group.num_blocks) continue;
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("the request may need {} KV blocks ({} tokens), the cache has {} "
                                 "({} tokens)",
                                 needed, spec.max_total_tokens, group.num_blocks,
                                 group.num_blocks * kv::kBlockTokens)};
    }
    return {};
}

namespace {

StepShape shape_of(const StepPlan& plan) {
    StepShape shape;
    for (const SequencePlan& part : plan.sequences) {
        shape.rows += part.num_tokens;
        (part.num_tokens == 1 ? shape.decode_positions : shape.prefill_positions) +=
            positions_read(part.first_position, part.num_tokens);
    }
    return shape;
}

}  // namespace

struct Scheduler::Impl {
    explicit Impl(SchedulerConfig given) : config(std::move(given)), policy(make_policy(config)) {
        const base::Status status = validate(config);
        CHECK(status.ok(), status.error().message);
        std::vector<std::int64_t> windows;
        for (const KvGroupSpec& group : config.groups) {
            pools.emplace_back(group.num_blocks);
            windows.push_back(group.window);
        }
        index.emplace(pools, std::move(windows));
    }

    void add(const SequenceSpec& spec, base::TimePoint now);
    [[nodiscard]] Sequence& find(SeqId seq);
    void preempt(Sequence& sequence);
    void start(Sequence& sequence);
    void stop_running(const Sequence& sequence);
    void take_cached(const SequencePlan& part);
    void evict(const NewBlock& evicted);
    void advance(const SequencePlan& part);
    void apply(const SequencePlan& part, const SequenceResult& result);
    void publish(Sequence& sequence);
    void publish_next_block(Sequence& sequence);
    void drop_out_of_window(Sequence& sequence);
    void release_blocks(Sequence& sequence);
    void end(SeqId seq);
    void check_sequence(const Sequence& sequence) const;

    SchedulerConfig config;
    std::deque<kv::BlockPool> pools;  // by group; declared before the tables that point to them
    std::optional<kv::PrefixIndex> index;  // outlives the sequences' cursors
    std::unique_ptr<Policy> policy;
    OutputForecast forecast;
    StepCost cost;
    std::unordered_map<SeqId, std::unique_ptr<Sequence>> sequences;
    std::vector<const Sequence*> running;  // by rank
    std::int64_t num_never_started = 0;
    std::vector<SeqId> ended;
    std::uint64_t step = 0;
    std::uint64_t next_ticket = 0;
    std::uint64_t num_preemptions = 0;
    std::uint64_t num_computed = 0;
    std::uint64_t num_recomputed = 0;
    std::uint64_t num_cached = 0;
    std::uint64_t num_evicted = 0;
};

void Scheduler::Impl::add(const SequenceSpec& spec, base::TimePoint now) {
    auto sequence = std::make_unique<Sequence>();
    sequence->spec = spec;
    sequence->rank = {policy->rank_key(spec, now), next_ticket++};
    sequence->num_total = spec.num_prompt_tokens;
    sequence->tables.resize(pools.size());
    if (config.prefix_hasher != nullptr && spec.prefix != nullptr) {
        CHECK(std::ssize(*spec.prefix->tokens) == spec.num_prompt_tokens,
              "the prompt's tokens are not as many as it has");
        sequence->chain.emplace(spec.prefix);
    }
    policy->enqueue(*sequence);
    const bool is_new = sequences.emplace(spec.seq, std::move(sequence)).second;
    CHECK(is_new, "a sequence id was submitted twice");
    ++num_never_started;
}

Sequence& Scheduler::Impl::find(SeqId seq) {
    const auto found = sequences.find(seq);
    CHECK(found != sequences.end(), "the plan names a sequence that is gone");
    return *found->second;
}

void Scheduler::Impl::stop_running(const Sequence& sequence) {
    const auto by_rank = [](const Sequence* a, const Sequence* b) { return a->rank < b->rank; };
    const auto place = std::lower_bound(running.begin(), running.end(), &sequence, by_rank);
    CHECK(place != running.end() && *place == &sequence, "a sequence does not run");
    running.erase(place);
}

void Scheduler::Impl::preempt(Sequence& sequence) {
    stop_running(sequence);
    release_blocks(sequence);
    sequence.is_running = false;
    sequence.num_computed = 0;
    sequence.num_passed = 0;
    ++sequence.num_preemptions;
    ++num_preemptions;
    policy->enqueue(sequence);
}

void Scheduler::Impl::start(Sequence& sequence) {
    policy->remove(sequence);
    if (!sequence.is_resumed()) {
        policy->charge_prompt(sequence);
        --num_never_started;
    }
    sequence.is_running = true;
    const auto by_rank = [](const Sequence* a, const Sequence* b) { return a->rank < b->rank; };
    running.insert(std::upper_bound(running.begin(), running.end(), &sequence, by_rank), &sequence);
}

// The references come before anything is evicted, so that nothing of what was found is.
void Scheduler::Impl::take_cached(const SequencePlan& part) {
    Sequence& sequence = find(part.seq);
    CHECK(!sequence.is_running, "the plan is not of this state");
    kv::PrefixMatch match;
    match.num_blocks = part.first_position / kv::kBlockTokens;
    match.num_copied = part.first_position % kv::kBlockTokens;
    for (const BlockCopy& copy : part.copies) match.copied_from.push_back(copy.from);
    for (std::size_t group = 0; group < part.cached.size(); ++group) {
        sequence.tables[group].start_at(part.cached[group].first_index);
        for (const base::BlockId id : part.cached[group].blocks)
            sequence.tables[group].append(pools[group].share(id));
    }
    if (sequence.chain) sequence.cursor = index->start(*sequence.chain, match);
    sequence.num_computed = part.first_position;
    sequence.max_computed = std::max(sequence.max_computed, part.first_position);
    num_cached += static_cast<std::uint64_t>(part.first_position);
    start(sequence);
}

// A preempted sequence's last block is cached or free, and what one group lost another may have
// lost with it.
void Scheduler::Impl::evict(const NewBlock& evicted) {
    const auto group = static_cast<std::size_t>(evicted.group);
    if (!pools[group].is_cached(evicted.block)) return;
    index->evict(group, evicted.block);
    ++num_evicted;
}

void Scheduler::Impl::advance(const SequencePlan& part) {
    Sequence& sequence = find(part.seq);
    CHECK(sequence.is_running && part.first_position == sequence.num_computed,
          "the plan is not of this state");
    sequence.replaced.clear();
    for (const NewBlock& added : part.new_blocks) {
        const auto group = static_cast<std::size_t>(added.group);
        sequence.tables[group].append(pools[group].take(added.block));
    }
    const std::int64_t end = part.first_position + part.num_tokens;
    num_computed += static_cast<std::uint64_t>(part.num_tokens);
    num_recomputed += static_cast<std::uint64_t>(
        std::max<std::int64_t>(std::min(end, sequence.max_computed) - part.first_position, 0));
    sequence.num_computed = end;
    sequence.max_computed = std::max(sequence.max_computed, end);
}

void Scheduler::Impl::publish_next_block(Sequence& sequence) {
    const std::int64_t at = sequence.cursor.num_blocks();
    std::vector<std::optional<base::BlockId>> blocks(pools.size());
    for (std::size_t group = 0; group < pools.size(); ++group) {
        const kv::BlockTable& table = sequence.tables[group];
        if (at >= table.num_dropped()) blocks[group] = table.at(at);
    }
    for (const auto& [group, block] : index->publish(sequence.cursor, *sequence.chain, blocks)) {
        const auto number = static_cast<std::size_t>(group);
        sequence.tables[number].replace(at, pools[number].share(block));
        sequence.replaced.push_back({group, at, block});
    }
}

void Scheduler::Impl::publish(Sequence& sequence) {
    while (sequence.cursor.is_attached() &&
           (sequence.cursor.num_blocks() + 1) * kv::kBlockTokens <= sequence.num_computed) {
        publish_next_block(sequence);
    }
}

void Scheduler::Impl::drop_out_of_window(Sequence& sequence) {
    for (std::size_t group = 0; group < pools.size(); ++group) {
        kv::BlockTable& table = sequence.tables[group];
        const std::int64_t first =
            first_block_needed(sequence.num_computed, config.groups[group].window);
        table.drop_before(std::min(first, table.num_blocks()));
    }
}

// Its last, partial block is worth something to who goes on from there.
void Scheduler::Impl::release_blocks(Sequence& sequence) {
    if (sequence.cursor.is_attached()) {
        const std::int64_t at = sequence.cursor.num_blocks();
        const std::int64_t rest = sequence.num_computed - at * kv::kBlockTokens;
        std::vector<base::BlockId> blocks;
        for (const kv::BlockTable& table : sequence.tables) {
            if (rest > 0) blocks.push_back(table.at(at));
        }
        if (rest > 0) index->publish_partial(sequence.cursor, *sequence.chain, rest, blocks);
    }
    sequence.cursor.reset();
    sequence.replaced.clear();
    for (kv::BlockTable& table : sequence.tables) table.clear();
}

void Scheduler::Impl::apply(const SequencePlan& part, const SequenceResult& result) {
    Sequence& sequence = find(part.seq);
    const std::int64_t num_tokens = std::ssize(result.tokens);
    CHECK(result.seq == part.seq, "the result's order is not the plan's");
    CHECK(num_tokens <= (part.is_sampled ? 1 : 0), "the result has tokens that were not asked for");
    sequence.num_total += num_tokens;
    if (sequence.chain) {
        for (const base::TokenId token : result.tokens)
            sequence.chain->append(token, *config.prefix_hasher);
    }
    // What a step that failed wrote is shown to nobody.
    if (result.finish == FinishReason::kError) sequence.cursor.reset();
    publish(sequence);
    drop_out_of_window(sequence);
    policy->charge_output(sequence, num_tokens);
    if (result.finish) {
        const bool is_whole =
            *result.finish == FinishReason::kStop || *result.finish == FinishReason::kLength;
        if (is_whole) forecast.record(sequence.num_outputs());
        return end(part.seq);
    }
    CHECK(num_tokens == 1 || !part.is_sampled,
          "a step sampled nothing and did not end the sequence");
    CHECK(sequence.num_total < sequence.spec.max_total_tokens || !part.is_sampled,
          "the executor let a sequence grow to its limit without ending it");
}

void Scheduler::Impl::end(SeqId seq) {
    const auto found = sequences.find(seq);
    Sequence& sequence = *found->second;
    if (sequence.is_running) {
        stop_running(sequence);
    } else {
        policy->remove(sequence);
        if (!sequence.is_resumed()) --num_never_started;
    }
    policy->forget(sequence);
    release_blocks(sequence);
    sequences.erase(found);
    ended.push_back(seq);
}

Scheduler::Scheduler(SchedulerConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Scheduler::~Scheduler() = default;

base::Status Scheduler::submit(std::span<const SequenceSpec> sequences, base::TimePoint now) {
    for (const SequenceSpec& spec : sequences) {
        if (base::Status can_run = can_ever_run(impl_->config, spec); !can_run) return can_run;
    }
    const std::int64_t max_queue = impl_->config.max_queue;
    const std::int64_t count = std::ssize(sequences);
    if (count > max_queue) {
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("the request has {} sequences, the queue takes {} (max_queue)",
                                 count, max_queue)};
    }
    const std::int64_t waiting = impl_->num_never_started;
    if (waiting + count > max_queue) {
        return Error{ErrorCode::kUnavailable,
                     fmt::format("{} sequences are waiting, the queue takes {} (max_queue); try "
                                 "again later",
                                 waiting, max_queue)};
    }
    for (const SequenceSpec& spec : sequences) impl_->add(spec, now);
    return {};
}

void Scheduler::cancel(SeqId seq) {
    if (impl_->sequences.contains(seq)) impl_->end(seq);
}

void Scheduler::finish(SeqId seq) {
    const auto found = impl_->sequences.find(seq);
    if (found == impl_->sequences.end()) return;
    impl_->forecast.record(found->second->num_outputs());
    impl_->end(seq);
}

StepPlan Scheduler::plan() const {
    const Impl& state = *impl_;
    return Planner({state.config, state.pools, *state.index, state.running, state.ended,
                    *state.policy, state.forecast, state.cost, state.step})
        .plan();
}

void Scheduler::commit(const StepPlan& plan, const StepResult& result) {
    Impl& state = *impl_;
    CHECK(plan.step == state.step && result.step == state.step, "not the plan that came last");
    CHECK(result.sequences.size() == plan.sequences.size(), "the result is not of this plan");
    CHECK(plan.ended.size() == state.ended.size(), "a sequence was cancelled during a step");
    state.cost.learn(shape_of(plan), std::chrono::duration<double>(result.took).count());
    state.ended.clear();
    for (const SeqId seq : plan.preempted) state.preempt(state.find(seq));
    for (const PassedOver& over : plan.passed_over) state.find(over.seq).num_passed += over.by;
    for (const SequencePlan& part : plan.sequences) {
        if (part.is_restart) state.take_cached(part);
    }
    for (const NewBlock& evicted : plan.evicted) state.evict(evicted);
    for (const SequencePlan& part : plan.sequences) state.advance(part);
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
        state.apply(plan.sequences[i], result.sequences[i]);
    }
    ++state.step;
}

void Scheduler::reset_prefix_cache() {
    impl_->index->clear();
}

bool Scheduler::has_work() const {
    return !impl_->sequences.empty() || !impl_->ended.empty();
}

SchedulerStats Scheduler::stats() const {
    SchedulerStats stats;
    stats.num_running = std::ssize(impl_->running);
    stats.num_waiting = impl_->num_never_started;
    stats.num_preempted = std::ssize(impl_->sequences) - stats.num_running - stats.num_waiting;
    for (const kv::BlockPool& pool : impl_->pools) {
        stats.num_blocks += pool.num_blocks();
        stats.num_blocks_used += pool.num_used();
        stats.num_blocks_cached += pool.num_cached();
        const double usage =
            static_cast<double>(pool.num_used()) / static_cast<double>(pool.num_blocks());
        stats.kv_usage = std::max(stats.kv_usage, usage);
    }
    stats.num_preemptions = impl_->num_preemptions;
    stats.num_computed_tokens = impl_->num_computed;
    stats.num_recomputed_tokens = impl_->num_recomputed;
    stats.num_cached_tokens = impl_->num_cached;
    stats.num_evicted_blocks = impl_->num_evicted;
    return stats;
}

void Scheduler::Impl::check_sequence(const Sequence& sequence) const {
    CHECK(sequence.num_computed < sequence.num_total, "a sequence has nothing to compute");
    CHECK(!sequence.chain || sequence.chain->num_tokens() == sequence.num_total,
          "a sequence's tokens are not as many as it has");
    CHECK(!sequence.cursor.is_attached() ||
              sequence.cursor.num_blocks() == sequence.num_computed / kv::kBlockTokens,
          "what was computed is not published");
    for (std::size_t group = 0; group < pools.size(); ++group) {
        const kv::BlockTable& table = sequence.tables[group];
        CHECK(table.num_blocks() == kv::blocks_for(sequence.num_computed),
              "a table does not cover what was computed");
        const std::int64_t first =
            first_block_needed(sequence.num_computed, config.groups[group].window);
        CHECK(table.num_dropped() == std::min(first, table.num_blocks()),
              "a table holds blocks out of its window");
        CHECK(sequence.is_running || table.num_blocks() == 0, "a waiting sequence holds blocks");
    }
}

void Scheduler::check_invariants() const {
    const Impl& state = *impl_;
    std::vector<std::vector<std::int32_t>> held;  // by group and block
    held.reserve(state.pools.size());
    for (const kv::BlockPool& pool : state.pools)
        held.emplace_back(static_cast<std::size_t>(pool.num_blocks()));
    std::int64_t num_running = 0;
    std::int64_t num_never_started = 0;
    for (const auto& [seq, sequence] : state.sequences) {
        state.check_sequence(*sequence);
        num_running += sequence->is_running ? 1 : 0;
        num_never_started += sequence->is_running || sequence->is_resumed() ? 0 : 1;
        for (std::size_t group = 0; group < held.size(); ++group) {
            const kv::BlockTable& table = sequence->tables[group];
            for (std::int64_t i = table.num_dropped(); i < table.num_blocks(); ++i)
                ++held[group][static_cast<std::size_t>(table.at(i).value)];
        }
    }
    CHECK(num_running == std::ssize(state.running), "the running list and the flags disagree");
    CHECK(num_never_started == state.num_never_started, "the queue's length is wrong");
    CHECK(num_running <= state.config.max_num_seqs, "too many sequences run");
    CHECK(std::is_sorted(state.running.begin(), state.running.end(),
                         [](const Sequence* a, const Sequence* b) { return a->rank < b->rank; }),
          "the running list is out of order");
    for (std::size_t group = 0; group < held.size(); ++group) {
        state.pools[group].check_invariants();
        for (std::int32_t id = 0; id < state.pools[group].num_blocks(); ++id)
            CHECK(state.pools[group].num_references(base::BlockId(id)) ==
                      held[group][static_cast<std::size_t>(id)],
                  "a block's references are not the tables that have it");
    }
    state.index->check_invariants();
}

}  // namespace pagoda::sched
