#pragma once
// TinyModel: a golden file loaded with its own KV memory, driven one ForwardBatch at a time. For
// suites that look at logits below the engine. PAGODA_GOLDEN names the data, PAGODA_ISA the
// variant.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/loader.h"
#include "formats/checkpoint.h"
#include "model/model.h"

namespace pagoda::golden {

// The folder of the reference data, or a test failure and an empty string.
[[nodiscard]] std::string data_folder();
[[nodiscard]] base::Json read_json(const std::string& path);
[[nodiscard]] std::vector<base::TokenId> token_ids(const base::Json& array);

struct TinyModelOptions {
    kernels::ActivationMode activations = kernels::ActivationMode::kF32;
    kernels::KvDType kv = kernels::KvDType::kF32;
    int threads = 2;
    std::int64_t max_positions = 512;
    std::int64_t max_rows = 512;
    std::int64_t spare_blocks = 0;         // blocks beyond what one sequence of max_positions takes
    bool poison_kv = true;                 // unwritten slots hold NaN
    std::string packed_cache_folder = {};  // empty: none
    const kernels::Kernels* variant = nullptr;  // null: that of PAGODA_ISA
    // What a file says is changed before the model is loaded from it.
    std::function<void(formats::Checkpoint&)> alter = {};
};

// One step's part of one sequence, for TinyModel::step.
struct Slice {
    std::vector<base::TokenId> tokens;
    std::int64_t first_position = 0;
    // Blocks of the sequence, the same numbers in every group.
    std::vector<std::int32_t> blocks;
};

class TinyModel {
  public:
    TinyModel(const std::string& path, const TinyModelOptions& options);

    // Runs one batch; logits of the last row of every slice, or of all rows.
    [[nodiscard]] std::vector<std::vector<float>> step(const std::vector<Slice>& slices,
                                                       bool all_rows);
    // A whole prompt in one batch, at blocks 0, 1, ...: logits of the last row.
    [[nodiscard]] std::vector<float> prompt(const std::vector<base::TokenId>& tokens);
    // One more token after prompt(), at that position.
    [[nodiscard]] std::vector<float> next(base::TokenId token, std::int64_t position);
    // log p(ids[i + 1] | ids[..i]).
    [[nodiscard]] std::vector<double> logprobs(const std::vector<base::TokenId>& tokens);
    [[nodiscard]] std::int64_t vocab() const { return model_->spec().vocab; }

  private:
    // Blocks 0, 1, ... for max_positions.
    [[nodiscard]] std::vector<std::int32_t> all_blocks() const;

    TinyModelOptions options_;
    std::unique_ptr<base::ThreadTeam> team_;
    kernels::DeviceContext device_;
    std::unique_ptr<model::Model> model_;
    std::unique_ptr<kv::KvStore> store_;
    std::size_t num_groups_ = 0;
};

// The table of PAGODA_ISA.
[[nodiscard]] const kernels::Kernels* chosen_kernels();
[[nodiscard]] std::vector<double> log_softmax(const std::vector<float>& logits);

}  // namespace pagoda::golden
