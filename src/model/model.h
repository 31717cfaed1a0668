#pragma once
// Model: the weights of a decoder-only transformer and its forward pass: ForwardBatch to hidden
// states, hidden states to logits. It knows nothing of requests, sampling or block pools. Owned
// and used by the engine thread; the work is spread over the device context's team. The device
// context's table and team must outlive it. Every output row is a function of its own sequence
// alone (ARCHITECTURE.md, section 4).

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "formats/checkpoint.h"
#include "kernels/ops/device_context.h"
#include "model/decoder_spec.h"
#include "model/forward_batch.h"

namespace pagoda::model {

// The largest use, for which all buffers are made at load.
struct ModelLimits {
    std::int64_t max_rows = 512;        // tokens of a step
    std::int64_t max_sequences = 64;    // sequences of a step
    std::int64_t max_positions = 8192;  // tokens of a sequence
    std::int64_t max_logit_rows = 64;   // rows of one logits() call
};

// Called from the loading thread with bytes packed so far and in all.
using LoadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// A folder where packed weights are kept from one start to the next. With it a load finds the
// model's digest and reads the packed weights, or packs them and writes them there; the weights are
// the same. What goes wrong with the folder or the file is a line of warning, never an error.
struct PackedCacheOptions {
    std::string folder;              // empty: weights are packed at every load
    base::Logger* logger = nullptr;  // null: nobody hears what was done
    LoadProgress write_progress;     // bytes written, from the loading thread
};

class Model {
  public:
    // Errors name the tensor: missing, of another shape than the hyperparameters say, of a type
    // that has no kernel, or not known. `checkpoint` may be dropped afterwards.
    [[nodiscard]] static base::Result<std::unique_ptr<Model>> load(
        const formats::Checkpoint& checkpoint, const kernels::DeviceContext& device,
        const ModelLimits& limits, const LoadProgress& progress = nullptr,
        const PackedCacheOptions& cache = {});
    ~Model();
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    [[nodiscard]] const DecoderSpec& spec() const;

    // Computes all rows: writes their K and V into `kv` (one view per layer) and keeps their
    // hidden states until the next call.
    void forward(const ForwardBatch& batch, std::span<const kernels::PagedKvView> kv);

    // Logits of some rows of the last forward(): out is [rows.size(), vocab].
    // REQUIRES: at most max_logit_rows rows.
    void logits(std::span<const std::int32_t> rows, std::span<float> out);

  private:
    struct Impl;
    explicit Model(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

// What the model's runner holds beside it: [max_logit_rows, vocab] logits, and a row of the
// vocabulary as each thread's scratch.
struct RunnerFloats {
    std::size_t logits = 0, scratch = 0;
};
[[nodiscard]] RunnerFloats runner_floats(std::int64_t vocab, std::int64_t max_logit_rows,
                                         int num_threads);

// What a model will take, before it is loaded (bytes).
struct ModelSizes {
    std::uint64_t weights = 0;    // packed
    std::uint64_t workspace = 0;  // buffers for ModelLimits, and the runner's
    std::int64_t vocab = 0;
    std::int64_t context_length = 0;
    std::vector<KvGroup> groups;
    // Bytes of one block of one group (all of its layers), per group.
    std::vector<std::uint64_t> block_bytes;
};
[[nodiscard]] base::Result<ModelSizes> measure(const formats::Checkpoint& checkpoint,
                                               const kernels::DeviceContext& device,
                                               const ModelLimits& limits, kernels::KvDType kv);

}  // namespace pagoda::model
