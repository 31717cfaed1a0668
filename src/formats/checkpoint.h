#pragma once
// Checkpoint: a model file as neutral data, whatever its format: metadata, named tensors, the
// tokenizer's parts. Owns the file mappings that its views point into; move-only; immutable after
// loading and then thread-safe to read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "text/tokenizer_spec.h"

namespace pagoda::formats {

// A metadata value. Integers are widened to int64 (uint64 above that range are refused), floats
// to double.
struct MetaArray;
using MetaValue = std::variant<bool, std::int64_t, double, std::string, MetaArray>;
// All items of an array have one type; arrays of arrays are the last alternative.
struct MetaArray {
    using Items = std::variant<std::vector<bool>, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, std::vector<MetaArray>>;
    Items items;

    [[nodiscard]] std::size_t size() const {
        return std::visit([](const auto& values) { return values.size(); }, items);
    }
    friend bool operator==(const MetaArray& a, const MetaArray& b) { return a.items == b.items; }
};

struct CheckpointTensor {
    std::string name;  // GGUF's names: "token_embd.weight", "blk.0.attn_q.weight", ...
    tensor::TensorView view;
    std::string file;  // which file of a split model holds it
};

struct CheckpointFile {
    std::string path;
    std::uint64_t bytes = 0;
};

// Keeps what the views borrow (memory maps).
class CheckpointStorage {
  public:
    virtual ~CheckpointStorage() = default;
    // The pages of these bytes are not needed again soon; they can be dropped from memory.
    virtual void release(const std::byte* data, std::size_t bytes) const = 0;
};

class Checkpoint {
  public:
    std::string path;                   // as given
    std::string architecture;           // "llama", "qwen2", ...; for vocabulary-only files too
    std::string name;                   // general.name, else the file's
    std::string format;                 // "GGUF 3"
    std::vector<CheckpointFile> files;  // one, or the parts of a split model in order
    std::vector<std::pair<std::string, MetaValue>> metadata;  // in the file's order, whole keys
    std::vector<CheckpointTensor> tensors;
    std::optional<text::TokenizerSpec> tokenizer;
    // Shared by this and a loader that streams from it.
    std::shared_ptr<const CheckpointStorage> storage;

    [[nodiscard]] const MetaValue* find_meta(std::string_view key) const;
    // Hyperparameters: the key under the architecture, e.g. "attention.head_count" for
    // "llama.attention.head_count". Wrong types are errors that name the key.
    [[nodiscard]] base::Result<std::optional<std::int64_t>> arch_int(std::string_view key) const;
    [[nodiscard]] base::Result<std::optional<double>> arch_float(std::string_view key) const;
    [[nodiscard]] base::Result<std::optional<bool>> arch_bool(std::string_view key) const;
    [[nodiscard]] base::Result<std::optional<std::string>> arch_string(std::string_view key) const;
    // A scalar or an array of integers (or booleans as 0/1): one value per layer. Empty when the
    // key is absent.
    [[nodiscard]] base::Result<std::vector<std::int64_t>> arch_ints(std::string_view key) const;
    [[nodiscard]] const CheckpointTensor* find_tensor(std::string_view name) const;
    [[nodiscard]] std::uint64_t tensor_bytes() const;

    // Builds the name index; called by the reader once all tensors are in.
    void index_tensors();

  private:
    std::unordered_map<std::string, std::size_t> tensor_index_;
};

// Opens a model by path: a .gguf file, or the first of split ones. Vocabulary-only files are fine.
// Errors are one line: file, tensor or key, reason.
[[nodiscard]] base::Result<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace pagoda::formats
