#include "engine/model_runner.h"

#include <algorithm>
#include <atomic>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::engine {

struct ModelRunner::Sequence {
    explicit Sequence(NewSequence&& from, std::int64_t vocab, std::size_t num_groups)
        : tokens(std::move(from.prompt)),
          num_prompt(static_cast<std::int64_t>(tokens.size())),
          stop(std::move(from.stop)),
          sampler(std::move(from.sampling), tokens, all_end_tokens(stop), vocab),
          tables(num_groups) {}

    static std::vector<base::TokenId> all_end_tokens(const decode::StopRules& rules) {
        std::vector<base::TokenId> ids = rules.end_tokens;
        ids.insert(ids.end(), rules.stop_tokens.begin(), rules.stop_tokens.end());
        return ids;
    }

    std::vector<base::TokenId> tokens;  // prompt and output
    std::int64_t num_prompt;
    decode::StopRules stop;
    decode::Sampler sampler;
    std::vector<std::vector<std::int32_t>> tables;  // [group] block of positions [32 i, 32 i + 32)
    // Prompt tokens whose log-probabilities went out, so that recomputing does not repeat them.
    std::int64_t num_prompt_scored = 1;
};

ModelRunner::ModelRunner(std::unique_ptr<model::Model> model, std::unique_ptr<kv::KvStore> store,
                         const kernels::DeviceContext& device, std::int64_t max_logit_rows)
    : model_(std::move(model)),
      store_(std::move(store)),
      device_(device),
      max_logit_rows_(max_logit_rows),
      vocab_(model_->spec().vocab),
      logits_(model::runner_floats(vocab_, max_logit_rows, device.team->num_threads()).logits),
      scratch_(model::runner_floats(vocab_, max_logit_rows, device.team->num_threads()).scratch) {
    for (std::int64_t layer = 0; layer < model_->spec().num_layers(); ++layer)
        layer_views_.push_back(store_->layer_view(static_cast<int>(layer)));
}

ModelRunner::~ModelRunner() = default;

StepOutput ModelRunner::run(const sched::StepPlan& plan, std::span<NewSequence> new_sequences) {
    for (const base::SeqId seq : plan.ended) sequences_.erase(seq);
    admit(new_sequences);

    StepOutput output;
    output.result.step = plan.step;
    output.result.sequences.resize(plan.sequences.size());
    output.details.resize(plan.sequences.size());
    if (plan.sequences.empty()) return output;

    gather(plan);
    model_->forward({.tokens = tokens_, .sequences = slices_}, layer_views_);
    const std::span<const LogitRow> wanted = logit_rows_;
    for (std::size_t begin = 0; begin < wanted.size();) {
        const std::size_t count =
            std::min(wanted.size() - begin, static_cast<std::size_t>(max_logit_rows_));
        evaluate(wanted.subspan(begin, count), output);
        begin += count;
    }
    finish_step(plan, output);
    return output;
}

void ModelRunner::admit(std::span<NewSequence> new_sequences) {
    for (NewSequence& incoming : new_sequences) {
        const base::SeqId seq = incoming.seq;
        const bool is_new =
            sequences_
                .emplace(seq, std::make_unique<Sequence>(std::move(incoming), vocab_,
                                                         store_->num_groups()))
                .second;
        CHECK(is_new, "a sequence was introduced twice");
    }
}

// The batch: rows of all sequences, their block tables, and the rows whose logits are wanted.
void ModelRunner::gather(const sched::StepPlan& plan) {
    active_.clear();
    tokens_.clear();
    slices_.clear();
    logit_rows_.clear();
    for (std::size_t entry = 0; entry < plan.sequences.size(); ++entry) {
        const sched::SequencePlan& part = plan.sequences[entry];
        const auto found = sequences_.find(part.seq);
        CHECK(found != sequences_.end(), "a plan names a sequence that nobody introduced");
        Sequence& sequence = *found->second;
        active_.push_back(&sequence);
        for (std::size_t group = 0; group < sequence.tables.size(); ++group) {
            std::vector<std::int32_t>& table = sequence.tables[group];
            if (part.restarts) table.clear();
            for (const base::BlockId block : part.new_blocks[group]) table.push_back(block.value);
        }
        add_rows(part, entry, sequence);
    }
}

void ModelRunner::add_rows(const sched::SequencePlan& part, std::size_t entry, Sequence& sequence) {
    const std::int64_t end = part.first_position + part.num_tokens;
    CHECK(part.num_tokens > 0 && end <= static_cast<std::int64_t>(sequence.tokens.size()),
          "a plan beyond the sequence's tokens");
    const auto first_row = static_cast<std::int64_t>(tokens_.size());
    model::SequenceSlice slice{
        .first_row = first_row, .num_rows = part.num_tokens, .first_position = part.first_position};
    for (const std::vector<std::int32_t>& table : sequence.tables)
        slice.block_tables.push_back(table);
    slices_.push_back(std::move(slice));
    tokens_.insert(tokens_.end(), sequence.tokens.begin() + part.first_position,
                   sequence.tokens.begin() + end);

    if (sequence.sampler.params().prompt_logprobs) {
        // The row of position p predicts the token at p + 1.
        std::size_t scored = 0;
        for (std::int64_t next = std::max(part.first_position + 1, sequence.num_prompt_scored);
             next <= std::min(end, sequence.num_prompt - 1); ++next) {
            logit_rows_.push_back(
                {.row = static_cast<std::int32_t>(first_row + next - 1 - part.first_position),
                 .entry = entry,
                 .prompt_target = sequence.tokens[static_cast<std::size_t>(next)],
                 .position = next,
                 .output = scored++});
            sequence.num_prompt_scored = next + 1;
        }
    }
    if (part.samples)
        logit_rows_.push_back({.row = static_cast<std::int32_t>(first_row + part.num_tokens - 1),
                               .entry = entry,
                               .position = end});
}

void ModelRunner::evaluate(std::span<const LogitRow> rows, StepOutput& output) {
    std::vector<std::int32_t> indices;
    indices.reserve(rows.size());
    for (const LogitRow& row : rows) {
        indices.push_back(row.row);
        std::vector<decode::TokenLogprob>& prompt = output.details[row.entry].prompt_logprobs;
        if (row.prompt_target) prompt.resize(std::max(prompt.size(), row.output + 1));
    }
    model_->logits(indices, logits_);

    // Each row writes its own entry's fields, so that threads never meet.
    std::atomic<std::size_t> next{0};
    device_.team->run([&](int thread) {
        const std::span<float> scratch(scratch_.data() + static_cast<std::int64_t>(thread) * vocab_,
                                       static_cast<std::size_t>(vocab_));
        for (std::size_t index; (index = next.fetch_add(1)) < rows.size();) {
            const std::span<const float> logits(
                logits_.data() + static_cast<std::int64_t>(index) * vocab_,
                static_cast<std::size_t>(vocab_));
            evaluate_row(rows[index], logits, scratch, output);
        }
    });
}

void ModelRunner::evaluate_row(const LogitRow& row, std::span<const float> logits,
                               std::span<float> scratch, StepOutput& output) const {
    const Sequence& sequence = *active_[row.entry];
    SequenceDetails& details = output.details[row.entry];
    if (row.prompt_target) {
        details.prompt_logprobs[row.output] = decode::token_logprob(
            logits, *row.prompt_target, *sequence.sampler.params().prompt_logprobs);
        return;
    }
    decode::SampledToken sampled = sequence.sampler.sample(logits, row.position, scratch);
    if (!sampled.is_finite) {
        details.error = base::Error{
            base::ErrorCode::kInternal,
            fmt::format("the model gave logits that are not numbers at position {}", row.position)};
        return;
    }
    output.result.sequences[row.entry].tokens.push_back(sampled.token);
    if (sampled.logprob) details.logprobs.push_back(std::move(*sampled.logprob));
}

// Records what was sampled and sees who is done.
void ModelRunner::finish_step(const sched::StepPlan& plan, StepOutput& output) {
    for (std::size_t entry = 0; entry < plan.sequences.size(); ++entry) {
        sched::SequenceResult& result = output.result.sequences[entry];
        result.seq = plan.sequences[entry].seq;
        Sequence& sequence = *active_[entry];
        if (output.details[entry].error) result.finish = FinishReason::kError;
        for (const base::TokenId token : result.tokens) {
            sequence.tokens.push_back(token);
            sequence.sampler.accept(token);
            const std::int64_t num_output =
                static_cast<std::int64_t>(sequence.tokens.size()) - sequence.num_prompt;
            switch (sequence.stop.check(token, num_output)) {
                case decode::StopRules::Verdict::kGoOn:
                    break;
                case decode::StopRules::Verdict::kStop:
                    result.finish = FinishReason::kStop;
                    break;
                case decode::StopRules::Verdict::kLength:
                    result.finish = FinishReason::kLength;
                    break;
            }
        }
    }
}

}  // namespace pagoda::engine
