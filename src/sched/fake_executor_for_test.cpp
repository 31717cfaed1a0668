#include "sched/fake_executor_for_test.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "sched/sequence.h"

namespace pagoda::sched {

namespace {

constexpr base::BlockId kOutOfWindow(-1);
constexpr base::TokenId kVocabulary = 1000;

base::Hash128 hash_of(const base::Hash128& before, std::span<const base::TokenId> tokens) {
    std::vector<std::int64_t> words = {static_cast<std::int64_t>(before.low),
                                       static_cast<std::int64_t>(before.high)};
    words.insert(words.end(), tokens.begin(), tokens.end());
    return base::hash128(std::as_bytes(std::span(words)));
}

std::vector<base::TokenId> tokens_of_its_own(const SequenceSpec& spec) {
    std::vector<base::TokenId> tokens;
    for (std::int64_t i = 0; i < spec.num_prompt_tokens; ++i)
        tokens.push_back(static_cast<base::TokenId>(
            kVocabulary * (1 + static_cast<std::int64_t>(spec.seq.value)) + i % kVocabulary));
    return tokens;
}

}  // namespace

FakeExecutor::FakeExecutor(const SchedulerConfig& config) : config_(config) {
    for (const KvGroupSpec& group : config.groups) {
        contents_.emplace_back(static_cast<std::size_t>(group.num_blocks));
    }
}

void FakeExecutor::add(const SequenceSpec& spec, std::int64_t num_outputs) {
    CHECK(num_outputs >= 1, "a sequence ends after at least one output");
    State state;
    state.spec = spec;
    state.num_outputs = num_outputs;
    state.tokens = spec.prefix == nullptr ? tokens_of_its_own(spec) : *spec.prefix->tokens;
    const std::string scope =
        spec.prefix == nullptr ? std::to_string(spec.seq.value) : "of " + spec.prefix->scope;
    state.before = {base::hash128(std::as_bytes(std::span(scope)))};
    hash_blocks(state);
    state.tables.resize(contents_.size());
    CHECK(sequences_.emplace(spec.seq, std::move(state)).second, "a sequence was added twice");
}

std::int64_t FakeExecutor::num_outputs(base::SeqId seq) const {
    const State& state = sequences_.at(seq);
    return std::ssize(state.tokens) - state.spec.num_prompt_tokens;
}

const std::vector<base::TokenId>& FakeExecutor::tokens(base::SeqId seq) const {
    return sequences_.at(seq).tokens;
}

void FakeExecutor::set_last_token(base::SeqId seq, base::TokenId token) {
    State& state = sequences_.at(seq);
    if (std::ssize(state.tokens) % kv::kBlockTokens == 0) state.before.pop_back();
    state.tokens.back() = token;
    hash_blocks(state);
}

void FakeExecutor::hash_blocks(State& state) const {
    const std::span<const base::TokenId> tokens = state.tokens;
    constexpr auto kBlock = static_cast<std::size_t>(kv::kBlockTokens);
    while (state.before.size() * kBlock <= tokens.size()) {
        const std::size_t first = (state.before.size() - 1) * kBlock;
        state.before.push_back(hash_of(state.before.back(), tokens.subspan(first, kBlock)));
    }
}

FakeExecutor::Content& FakeExecutor::content(std::size_t group, base::BlockId block) {
    return contents_[group].at(static_cast<std::size_t>(block.value));
}

void FakeExecutor::begin_anew(State& state, const SequencePlan& part) const {
    for (std::vector<base::BlockId>& table : state.tables) table.clear();
    state.num_computed = part.first_position;
    CHECK(part.cached.size() == (part.first_position > 0 ? state.tables.size() : 0),
          "a sequence that begins behind its start has blocks in every group");
    for (std::size_t group = 0; group < part.cached.size(); ++group) {
        const CachedBlocks& cached = part.cached[group];
        CHECK(cached.first_index + std::ssize(cached.blocks) ==
                  part.first_position / kv::kBlockTokens,
              "the cached blocks do not end where the sequence begins");
        state.tables[group].resize(static_cast<std::size_t>(cached.first_index), kOutOfWindow);
        state.tables[group].insert(state.tables[group].end(), cached.blocks.begin(),
                                   cached.blocks.end());
    }
    CHECK(part.copies.size() ==
              (part.first_position % kv::kBlockTokens > 0 ? state.tables.size() : 0),
          "a sequence that begins inside a block has a copy of it in every group");
}

void FakeExecutor::append_blocks(State& state, const SequencePlan& part) {
    for (const ReplacedBlock& replaced : part.replaced) {
        state.tables.at(static_cast<std::size_t>(replaced.group))
            .at(static_cast<std::size_t>(replaced.index)) = replaced.block;
    }
    for (const NewBlock& added : part.new_blocks) {
        const auto group = static_cast<std::size_t>(added.group);
        std::vector<base::BlockId>& table = state.tables.at(group);
        content(group, added.block) = {state.before.at(table.size()), {}};
        table.push_back(added.block);
    }
}

void FakeExecutor::copy_blocks(const SequencePlan& part) {
    const auto count = static_cast<std::size_t>(part.first_position % kv::kBlockTokens);
    for (const BlockCopy& copy : part.copies) {
        const auto group = static_cast<std::size_t>(copy.group);
        const Content& from = content(group, copy.from);
        CHECK(from.tokens.size() >= count, "a copied block was written to before its copy");
        Content& to = content(group, copy.to);
        to.before = from.before;
        to.tokens.assign(from.tokens.begin(), from.tokens.begin() + part.first_position % 32);
    }
}

void FakeExecutor::check_readable(const State& state, std::size_t group,
                                  std::int64_t position) const {
    const std::int64_t first = first_block_needed(position, config_.groups[group].window);
    for (std::int64_t index = first; index <= position / kv::kBlockTokens; ++index) {
        const base::BlockId block = state.tables[group].at(static_cast<std::size_t>(index));
        const Content& content = contents_[group].at(static_cast<std::size_t>(block.value));
        CHECK(content.before == state.before[static_cast<std::size_t>(index)],
              "a block that is still read holds what follows other tokens");
        const std::int64_t written =
            std::min(kv::kBlockTokens, position + 1 - index * kv::kBlockTokens);
        CHECK(std::ssize(content.tokens) >= written, "a position is read before it was written");
        CHECK(std::equal(content.tokens.begin(), content.tokens.begin() + written,
                         state.tokens.begin() + index * kv::kBlockTokens),
              "a block that is still read holds other tokens");
    }
}

void FakeExecutor::compute(State& state, const SequencePlan& part) {
    const std::int64_t end = part.first_position + part.num_tokens;
    for (std::size_t group = 0; group < contents_.size(); ++group) {
        CHECK(std::ssize(state.tables[group]) == kv::blocks_for(end),
              "the tables do not end where the step does");
        for (std::int64_t position = part.first_position; position < end; ++position) {
            const auto index = static_cast<std::size_t>(position / kv::kBlockTokens);
            Content& written = content(group, state.tables[group][index]);
            CHECK(written.before == state.before[index],
                  "a position is written to another sequence's block");
            CHECK(std::ssize(written.tokens) == position % kv::kBlockTokens,
                  "positions are not in order");
            written.tokens.push_back(state.tokens[static_cast<std::size_t>(position)]);
        }
        check_readable(state, group, part.first_position);
        check_readable(state, group, end - 1);
    }
    state.num_computed = end;
}

SequenceResult FakeExecutor::finish_part(State& state, const SequencePlan& part) const {
    SequenceResult result;
    result.seq = part.seq;
    const std::int64_t num_total = std::ssize(state.tokens);
    CHECK(part.is_sampled == (state.num_computed == num_total), "is_sampled is wrong");
    if (!part.is_sampled) return result;
    const std::span<const base::TokenId> tail =
        std::span<const base::TokenId>(state.tokens)
            .last(static_cast<std::size_t>(std::min<std::int64_t>(num_total, 8)));
    const base::Hash128 digest = hash_of(state.before.back(), tail);
    result.tokens.push_back(static_cast<base::TokenId>(digest.low % kVocabulary));
    state.tokens.push_back(result.tokens.back());
    hash_blocks(state);
    if (num_total + 1 - state.spec.num_prompt_tokens == state.num_outputs) {
        result.finish = FinishReason::kStop;
    } else if (num_total + 1 == state.spec.max_total_tokens) {
        result.finish = FinishReason::kLength;
    }
    return result;
}

StepResult FakeExecutor::run(const StepPlan& plan) {
    for (const base::SeqId seq : plan.ended) {
        CHECK(sequences_.erase(seq) == 1, "a sequence that is not known ended");
    }
    CHECK(plan.num_tokens() <= config_.max_num_batched_tokens, "the token budget is exceeded");
    CHECK(std::ssize(plan.sequences) <= config_.max_num_seqs, "too many sequences in a step");
    StepResult result;
    result.step = plan.step;
    for (const SequencePlan& part : plan.sequences) {
        State& state = sequences_.at(part.seq);
        if (part.is_restart) begin_anew(state, part);
        CHECK(part.is_restart || (part.cached.empty() && part.copies.empty()),
              "a sequence that runs takes from the cache");
        CHECK(part.num_tokens > 0 && part.first_position == state.num_computed,
              "a part does not begin where the sequence stands");
        const std::int64_t cap = state.spec.max_step_tokens;
        CHECK(cap == 0 || part.num_tokens <= cap, "a part is larger than its sequence allows");
        append_blocks(state, part);
    }
    for (const SequencePlan& part : plan.sequences) copy_blocks(part);
    // All blocks are dealt before any is written: one block in two tables shows below.
    for (const SequencePlan& part : plan.sequences) {
        State& state = sequences_.at(part.seq);
        compute(state, part);
        result.sequences.push_back(finish_part(state, part));
    }
    return result;
}

}  // namespace pagoda::sched
