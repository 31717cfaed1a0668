#include "engine/model_runner.h"

#include <algorithm>
#include <atomic>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::engine {

namespace {

std::optional<FinishReason> finish_reason(decode::StopRules::Verdict verdict) {
    switch (verdict) {
        case decode::StopRules::Verdict::kGoOn:
            return std::nullopt;
        case decode::StopRules::Verdict::kStop:
            return FinishReason::kStop;
        case decode::StopRules::Verdict::kLength:
            return FinishReason::kLength;
    }
    return std::nullopt;
}

}  // namespace

struct ModelRunner::KnownSequence {
    KnownSequence(NewSequence&& from, std::int64_t vocab, std::size_t num_groups)
        : input(std::move(from.input)),
          is_prompt_scored(from.is_prompt_scored && input->sampling.prompt_logprobs.has_value()),
          sampler({input, &input->sampling}, from.seed, input->prompt, {input, &input->held_back},
                  vocab),
          tables(num_groups) {}

    [[nodiscard]] std::int64_t num_prompt() const { return std::ssize(input->prompt); }
    [[nodiscard]] std::int64_t num_tokens() const { return num_prompt() + std::ssize(output); }
    // The tokens of positions [begin, end) are appended to `batch`.
    void append_tokens(std::int64_t begin, std::int64_t end,
                       std::vector<base::TokenId>& batch) const {
        if (begin < num_prompt()) {
            batch.insert(batch.end(), input->prompt.begin() + begin,
                         input->prompt.begin() + std::min(end, num_prompt()));
        }
        if (end > num_prompt()) {
            batch.insert(batch.end(),
                         output.begin() + std::max<std::int64_t>(begin - num_prompt(), 0),
                         output.begin() + (end - num_prompt()));
        }
    }

    std::shared_ptr<const SequenceInput> input;  // owners: see NewSequence
    const bool is_prompt_scored;
    std::vector<base::TokenId> output;
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
    copy_blocks(plan);
    model_->forward({.tokens = tokens_, .sequences = std::span(slices_).first(active_.size())},
                    layer_views_);
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
                .emplace(seq, std::make_unique<KnownSequence>(std::move(incoming), vocab_,
                                                              store_->num_groups()))
                .second;
        CHECK(is_new, "a sequence was introduced twice");
    }
}

// The batch: rows of all sequences, their block tables, and the rows whose logits are wanted.
void ModelRunner::gather(const sched::StepPlan& plan) {
    active_.clear();
    tokens_.clear();
    // Slices beyond those of this step stay, with the memory of their tables.
    if (slices_.size() < plan.sequences.size()) slices_.resize(plan.sequences.size());
    logit_rows_.clear();
    for (std::size_t entry = 0; entry < plan.sequences.size(); ++entry) {
        const sched::SequencePlan& part = plan.sequences[entry];
        const auto found = sequences_.find(part.seq);
        CHECK(found != sequences_.end(), "a plan names a sequence that nobody introduced");
        KnownSequence& sequence = *found->second;
        active_.push_back(&sequence);
        update_tables(part, sequence);
        add_rows(part, entry, sequence);
    }
}

void ModelRunner::update_tables(const sched::SequencePlan& part, KnownSequence& sequence) const {
    if (part.is_restart) {
        for (std::vector<std::int32_t>& table : sequence.tables) table.clear();
    }
    for (std::size_t group = 0; group < part.cached.size(); ++group) {
        std::vector<std::int32_t>& table = sequence.tables[group];
        // What is out of the window is never read; block 0 is there in any store.
        table.resize(static_cast<std::size_t>(part.cached[group].first_index), 0);
        for (const base::BlockId block : part.cached[group].blocks) table.push_back(block.value);
    }
    for (const sched::ReplacedBlock& replaced : part.replaced) {
        std::vector<std::int32_t>& table =
            sequence.tables[static_cast<std::size_t>(replaced.group)];
        table.at(static_cast<std::size_t>(replaced.index)) = replaced.block.value;
    }
    for (const sched::NewBlock& added : part.new_blocks)
        sequence.tables[static_cast<std::size_t>(added.group)].push_back(added.block.value);
}

// The plan hands no source of a copy to anyone, so that their order is of no matter.
void ModelRunner::copy_blocks(const sched::StepPlan& plan) {
    for (const sched::SequencePlan& part : plan.sequences) {
        for (const sched::BlockCopy& copy : part.copies)
            store_->copy_block(static_cast<std::size_t>(copy.group), copy.from, copy.to);
    }
}

void ModelRunner::add_rows(const sched::SequencePlan& part, std::size_t entry,
                           KnownSequence& sequence) {
    const std::int64_t end = part.first_position + part.num_tokens;
    CHECK(part.num_tokens > 0 && end <= sequence.num_tokens(), "a plan beyond the tokens");
    const auto first_row = static_cast<std::int64_t>(tokens_.size());
    model::SequenceSlice& slice = slices_[entry];
    slice.first_row = first_row;
    slice.num_rows = part.num_tokens;
    slice.first_position = part.first_position;
    slice.block_tables.assign(sequence.tables.begin(), sequence.tables.end());
    sequence.append_tokens(part.first_position, end, tokens_);

    if (sequence.is_prompt_scored) {
        // The row of position p predicts the token at p + 1.
        std::size_t scored = 0;
        for (std::int64_t next = std::max(part.first_position + 1, sequence.num_prompt_scored);
             next <= std::min(end, sequence.num_prompt() - 1); ++next) {
            logit_rows_.push_back(
                {.row = static_cast<std::int32_t>(first_row + next - 1 - part.first_position),
                 .entry = entry,
                 .prompt_target = sequence.input->prompt[static_cast<std::size_t>(next)],
                 .position = next,
                 .output = scored++});
            sequence.num_prompt_scored = next + 1;
        }
    }
    if (part.is_sampled)
        logit_rows_.push_back({.row = static_cast<std::int32_t>(first_row + part.num_tokens - 1),
                               .entry = entry,
                               .position = end});
}

void ModelRunner::evaluate(std::span<const LogitRow> rows, StepOutput& output) {
    row_indices_.clear();
    faults_.assign(rows.size(), std::nullopt);
    for (const LogitRow& row : rows) {
        row_indices_.push_back(row.row);
        std::vector<decode::TokenLogprob>& prompt = output.details[row.entry].prompt_logprobs;
        if (row.prompt_target) prompt.resize(std::max(prompt.size(), row.output + 1));
    }
    model_->logits(row_indices_, logits_);

    // Each row writes its own entry's fields, so that threads never meet.
    std::atomic<std::size_t> next{0};
    device_.team->run([&](int thread) {
        const std::span<float> scratch(scratch_.data() + static_cast<std::int64_t>(thread) * vocab_,
                                       static_cast<std::size_t>(vocab_));
        for (std::size_t index; (index = next.fetch_add(1)) < rows.size();) {
            const std::span<const float> logits(
                logits_.data() + static_cast<std::int64_t>(index) * vocab_,
                static_cast<std::size_t>(vocab_));
            faults_[index] = evaluate_row(rows[index], logits, scratch, output);
        }
    });
    for (std::size_t index = 0; index < rows.size(); ++index) {
        if (faults_[index]) report(rows[index], *faults_[index], output);
    }
}

std::optional<decode::SamplingFault> ModelRunner::evaluate_row(const LogitRow& row,
                                                               std::span<const float> logits,
                                                               std::span<float> scratch,
                                                               StepOutput& output) const {
    const KnownSequence& sequence = *active_[row.entry];
    SequenceDetails& details = output.details[row.entry];
    if (row.prompt_target) {
        auto scored = decode::token_logprob(logits, *row.prompt_target,
                                            *sequence.input->sampling.prompt_logprobs);
        if (!scored) return decode::SamplingFault::kNotFinite;
        details.prompt_logprobs[row.output] = std::move(*scored);
        return std::nullopt;
    }
    decode::SampledToken sampled = sequence.sampler.sample(logits, row.position, scratch);
    if (sampled.fault) return sampled.fault;
    output.result.sequences[row.entry].tokens.push_back(sampled.token);
    if (sampled.logprob) details.logprobs.push_back(std::move(*sampled.logprob));
    return std::nullopt;
}

// The first fault of a sequence is what its request hears of.
void ModelRunner::report(const LogitRow& row, decode::SamplingFault fault,
                         StepOutput& output) const {
    std::optional<base::Error>& error = output.details[row.entry].error;
    if (error) return;
    if (fault == decode::SamplingFault::kNotFinite)
        error = base::Error{
            base::ErrorCode::kInternal,
            fmt::format("the model gave logits that are not numbers at position {}", row.position)};
    else
        error =
            base::invalid(fmt::format("logit_bias, penalties and min_tokens leave no token for "
                                      "position {}",
                                      row.position));
}

// Records what was sampled and sees who is done.
void ModelRunner::finish_step(const sched::StepPlan& plan, StepOutput& output) {
    for (std::size_t entry = 0; entry < plan.sequences.size(); ++entry) {
        sched::SequenceResult& result = output.result.sequences[entry];
        result.seq = plan.sequences[entry].seq;
        if (output.details[entry].error) {
            result.tokens.clear();
            result.finish = FinishReason::kError;
            continue;
        }
        KnownSequence& sequence = *active_[entry];
        for (const base::TokenId token : result.tokens) {
            sequence.output.push_back(token);
            sequence.sampler.accept(token);
            result.finish =
                finish_reason(sequence.input->stop.check(token, std::ssize(sequence.output)));
        }
    }
}

}  // namespace pagoda::engine
