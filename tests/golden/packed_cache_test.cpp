// Packed weights that come from a file are the packed weights: with every type of weight the logits
// are the same bits whether the weights were packed, packed and written, or read.

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "formats/scratch_folder_for_test.h"
#include "tests/golden/tiny_model.h"

namespace pagoda::golden {
namespace {

using kernels::ActivationMode;

class PackedCacheOf : public testing::TestWithParam<const char*> {};

std::vector<std::vector<float>> logits(const std::string& file, ActivationMode activations,
                                       const std::string& cache_folder, int threads) {
    TinyModel model(
        data_folder() + file,
        {.activations = activations, .threads = threads, .packed_cache_folder = cache_folder});
    std::vector<base::TokenId> tokens(40);
    for (std::size_t index = 0; index < tokens.size(); ++index)
        tokens[index] = static_cast<base::TokenId>((index * 37 + 5) % 300);
    std::vector<std::vector<float>> rows = {model.prompt(tokens)};
    for (base::TokenId token = 7; token < 10; ++token)
        rows.push_back(model.next(token, 33 + token));
    return rows;
}

TEST_P(PackedCacheOf, GivesTheSameBits) {
    const formats::ScratchFolder folder;
    for (const ActivationMode activations : {ActivationMode::kAuto, ActivationMode::kF32}) {
        const auto packed = logits(GetParam(), activations, "", 2);
        const auto same_bits = [&](int threads) {
            const auto others = logits(GetParam(), activations, folder.path(""), threads);
            for (std::size_t row = 0; row < packed.size(); ++row) {
                ASSERT_EQ(packed[row].size(), others[row].size());
                EXPECT_EQ(std::memcmp(packed[row].data(), others[row].data(),
                                      packed[row].size() * sizeof(float)),
                          0)
                    << row;
            }
        };
        same_bits(2);  // writes, and reads in the second round
        const auto is_there = [&] {
            return std::distance(std::filesystem::directory_iterator(folder.path("")), {});
        };
        EXPECT_EQ(is_there(), 1);
        same_bits(2);
        same_bits(1);
        EXPECT_EQ(is_there(), 1);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, PackedCacheOf,
    testing::Values("/gguf/llama.gguf", "/gguf/gemma3.gguf", "/gguf-quant/llama-Q4_0.gguf",
                    "/gguf-quant/llama-Q4_1.gguf", "/gguf-quant/llama-Q4_K.gguf",
                    "/gguf-quant/llama-Q6_K.gguf", "/gguf-quant/llama-Q8_0.gguf",
                    "/gguf-quant/llama-BF16.gguf", "/gguf-quant/llama-IQ4_XS.gguf"));

}  // namespace
}  // namespace pagoda::golden
