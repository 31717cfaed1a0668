#pragma once
// ToyCheckpoint: a one-layer decoder made in memory, valid until a test changes it. Owns the bytes
// that its tensors' views point to.

#include <cstring>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "tensor/dtype.h"

namespace pagoda::model {

class ToyCheckpoint {
  public:
    static constexpr std::int64_t kHidden = 32, kFfn = 64, kVocab = 40, kHeadDim = 16;

    explicit ToyCheckpoint(const std::string& architecture = "llama") {
        file_.path = "toy.gguf";
        file_.architecture = architecture;
        set("block_count", std::int64_t{1});
        set("context_length", std::int64_t{512});
        set("embedding_length", kHidden);
        set("feed_forward_length", kFfn);
        set("attention.head_count", std::int64_t{2});
        set("attention.head_count_kv", std::int64_t{1});
        set("attention.layer_norm_rms_epsilon", 1e-5);
        const bool is_gemma = architecture.starts_with("gemma");
        if (is_gemma) set("attention.sliding_window", std::int64_t{16});
        add_matrix("token_embd.weight", kVocab, kHidden);
        for (const char* norm : {"attn_norm", "ffn_norm"}) add_vector(norm, kHidden);
        if (is_gemma)
            for (const char* norm : {"post_attention_norm", "post_ffw_norm"})
                add_vector(norm, kHidden);
        if (architecture == "qwen3" || architecture == "gemma3")
            for (const char* norm : {"attn_q_norm", "attn_k_norm"}) add_vector(norm, kHeadDim);
        add_matrix("blk.0.attn_q.weight", kHidden, kHidden);
        add_matrix("blk.0.attn_k.weight", kHeadDim, kHidden);
        add_matrix("blk.0.attn_v.weight", kHeadDim, kHidden);
        add_matrix("blk.0.attn_output.weight", kHidden, kHidden);
        add_matrix("blk.0.ffn_gate.weight", kFfn, kHidden);
        add_matrix("blk.0.ffn_up.weight", kFfn, kHidden);
        add_matrix("blk.0.ffn_down.weight", kHidden, kFfn);
        add("output_norm.weight", tensor::DType::kF32, {kHidden});
    }

    // A hyperparameter, new or changed; the key is without the architecture.
    void set(const std::string& key, formats::MetaValue value) {
        const std::string whole = file_.architecture + "." + key;
        std::erase_if(file_.metadata, [&](const auto& entry) { return entry.first == whole; });
        file_.metadata.emplace_back(whole, std::move(value));
    }
    void drop(const std::string& key) {
        const std::string whole = file_.architecture + "." + key;
        std::erase_if(file_.metadata, [&](const auto& entry) { return entry.first == whole; });
    }

    // A tensor of zeros (or of `value`, when F32), new or in place of one.
    void add(const std::string& name, tensor::DType dtype, const std::vector<std::int64_t>& shape,
             float value = 0) {
        drop_tensor(name);
        std::int64_t rows = 1;
        for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
        std::vector<std::byte>& bytes = memory_.emplace_back(
            static_cast<std::size_t>(rows) * tensor::row_bytes(dtype, shape.back()));
        for (std::size_t at = 0; dtype == tensor::DType::kF32 && at < bytes.size(); at += 4)
            std::memcpy(&bytes[at], &value, sizeof(value));
        file_.tensors.push_back(
            {.name = name,
             .view = {.dtype = dtype, .shape = shape, .data = bytes.data(), .bytes = bytes.size()},
             .file = "toy.gguf"});
    }
    void drop_tensor(const std::string& name) {
        std::erase_if(file_.tensors, [&](const auto& tensor) { return tensor.name == name; });
    }

    // The file as it is now.
    [[nodiscard]] const formats::Checkpoint& file() {
        file_.index_tensors();
        return file_;
    }

  private:
    void add_matrix(const std::string& name, std::int64_t out, std::int64_t in) {
        add(name, tensor::DType::kF32, {out, in});
    }
    void add_vector(const std::string& part, std::int64_t size) {
        add("blk.0." + part + ".weight", tensor::DType::kF32, {size}, 1);
    }

    formats::Checkpoint file_;
    std::list<std::vector<std::byte>> memory_;
};

}  // namespace pagoda::model
