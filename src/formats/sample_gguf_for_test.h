#pragma once
// A small, valid model file for tests: every kind of value, a tokenizer, tensors of several types.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/gguf_types.h"

namespace pagoda::formats {

inline GgufEntry string_entry(std::string key, std::string value) {
    return {std::move(key), GgufType::kString, std::move(value)};
}
inline GgufEntry u32_entry(std::string key, std::int64_t value) {
    return {std::move(key), GgufType::kUint32, value};
}
inline GgufEntry bool_entry(std::string key, bool value) {
    return {std::move(key), GgufType::kBool, value};
}
inline GgufEntry array_entry(std::string key, GgufType item_type, MetaArray::Items items) {
    return {std::move(key), GgufType::kArray, MetaArray{std::move(items)}, item_type};
}

// The file and the bytes that its tensors borrow. Must stay where it is once made.
struct SampleGguf {
    std::vector<std::byte> data = std::vector<std::byte>(4096);
    GgufFile file;

    SampleGguf() {
        for (std::size_t index = 0; index < data.size(); ++index)
            data[index] = static_cast<std::byte>(index * 7 + index / 256);
        file.entries = {
            string_entry("general.architecture", "llama"),
            string_entry("general.name", "sample"),
            u32_entry("llama.block_count", 2),
            {"llama.rope.freq_base", GgufType::kFloat32, 10000.0},
            {"llama.big", GgufType::kUint64, std::int64_t{1} << 60},
            array_entry("llama.window", GgufType::kBool, std::vector<bool>{true, false}),
            array_entry("llama.nested", GgufType::kInt16,
                        std::vector<MetaArray>{MetaArray{std::vector<std::int64_t>{-1, 2}}}),
            string_entry("tokenizer.ggml.model", "gpt2"),
            array_entry("tokenizer.ggml.tokens", GgufType::kString,
                        std::vector<std::string>{"a", "b", "ab", "<|im_end|>"}),
            array_entry("tokenizer.ggml.token_type", GgufType::kInt32,
                        std::vector<std::int64_t>{1, 1, 1, 3}),
            array_entry("tokenizer.ggml.merges", GgufType::kString,
                        std::vector<std::string>{"a b"}),
            u32_entry("tokenizer.ggml.eos_token_id", 2),
            string_entry("tokenizer.chat_template", "{{ messages }}"),
        };
        add_tensor("token_embd.weight", tensor::DType::kQ4_0, {4, 32});
        add_tensor("blk.0.norm", tensor::DType::kF32, {7});
        add_tensor("blk.0.attn_q.weight", tensor::DType::kQ6_K, {2, 256});
        add_tensor("blk.1.attn_q.weight", tensor::DType::kF16, {2, 3, 5});
    }
    SampleGguf(const SampleGguf&) = delete;
    SampleGguf& operator=(const SampleGguf&) = delete;

    void add_tensor(std::string name, tensor::DType dtype, std::vector<std::int64_t> shape) {
        std::size_t bytes = tensor::row_bytes(dtype, shape.back());
        for (std::size_t dim = 0; dim + 1 < shape.size(); ++dim)
            bytes *= static_cast<std::size_t>(shape[dim]);
        file.tensors.push_back({std::move(name), dtype, std::move(shape),
                                std::span(data).subspan(file.tensors.size() * 64, bytes)});
    }
    // The entry of that key, to be changed.
    GgufEntry& entry(std::string_view key) {
        for (GgufEntry& candidate : file.entries)
            if (candidate.key == key) return candidate;
        file.entries.push_back({std::string(key)});
        return file.entries.back();
    }
    void erase(std::string_view key) {
        std::erase_if(file.entries,
                      [&](const GgufEntry& candidate) { return candidate.key == key; });
    }
};

}  // namespace pagoda::formats
