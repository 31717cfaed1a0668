#pragma once
// ModelRunner: the worker's side of a step. It keeps the tokens, block tables and samplers of the
// sequences that it was told of, builds the ForwardBatch, runs the model and samples. The local
// Executor. Engine thread only; the device context must outlive it.

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/executor.h"
#include "engine/request.h"
#include "kv/store/kv_store.h"
#include "model/model.h"

namespace pagoda::engine {

class ModelRunner final : public Executor {
  public:
    ModelRunner(std::unique_ptr<model::Model> model, std::unique_ptr<kv::KvStore> store,
                const kernels::DeviceContext& device, std::int64_t max_logit_rows);
    ~ModelRunner() override;

    [[nodiscard]] StepOutput run(const sched::StepPlan& plan,
                                 std::span<NewSequence> new_sequences) override;

    [[nodiscard]] const model::Model& model() const { return *model_; }

  private:
    struct KnownSequence;
    // A row of the batch whose logits are wanted, and what for.
    struct LogitRow {
        std::int32_t row = 0;
        std::size_t entry = 0;                       // of the plan
        std::optional<base::TokenId> prompt_target;  // the next prompt token; none: sample
        std::int64_t position = 0;                   // of the token that these logits predict
        std::size_t output = 0;                      // index into the details' prompt_logprobs
    };

    void admit(std::span<NewSequence> new_sequences);
    void gather(const sched::StepPlan& plan);
    void copy_blocks(const sched::StepPlan& plan);
    void update_tables(const sched::SequencePlan& part, KnownSequence& sequence) const;
    void add_rows(const sched::SequencePlan& part, std::size_t entry, KnownSequence& sequence);
    void evaluate(std::span<const LogitRow> rows, StepOutput& output);
    [[nodiscard]] std::optional<decode::SamplingFault> evaluate_row(const LogitRow& row,
                                                                    std::span<const float> logits,
                                                                    std::span<float> scratch,
                                                                    StepOutput& output) const;
    void report(const LogitRow& row, decode::SamplingFault fault, StepOutput& output) const;
    void finish_step(const sched::StepPlan& plan, StepOutput& output);

    std::unique_ptr<model::Model> model_;
    std::unique_ptr<kv::KvStore> store_;
    kernels::DeviceContext device_;
    std::int64_t max_logit_rows_;
    std::int64_t vocab_;
    std::vector<kernels::PagedKvView> layer_views_;
    std::unordered_map<base::SeqId, std::unique_ptr<KnownSequence>> sequences_;

    // The step's batch, kept to reuse the memory.
    std::vector<KnownSequence*> active_;  // of the plan's entries
    std::vector<base::TokenId> tokens_;
    std::vector<model::SequenceSlice> slices_;  // the first active_.size() count
    std::vector<LogitRow> logit_rows_;
    std::vector<std::int32_t> row_indices_;                     // of the rows under evaluation
    std::vector<std::optional<decode::SamplingFault>> faults_;  // as row_indices_
    std::vector<float> logits_;                                 // [max_logit_rows, vocab]
    std::vector<float> scratch_;                                // [threads, vocab]
};

}  // namespace pagoda::engine
