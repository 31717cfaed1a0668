// Same request, same bytes: the logits of a token are the same bits however its sequence is cut
// into steps, whatever shares the batch, wherever its blocks lie, and on any number of threads.
// With default settings (int8 activations, bf16 KV), with f32 and with int8 KV.

#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "tests/golden/tiny_model.h"

namespace pagoda::golden {
namespace {

using kernels::ActivationMode;
using kernels::KvDType;
using Logits = std::vector<std::vector<float>>;

struct Setting {
    std::string file;
    ActivationMode activations;
    KvDType kv;
};

constexpr std::int64_t kSpareBlocks = 80;

class BatchInvariance : public testing::TestWithParam<Setting> {
  protected:
    static TinyModelOptions options(int threads) {
        return {.activations = GetParam().activations,
                .kv = GetParam().kv,
                .threads = threads,
                .max_positions = 320,
                .max_rows = 512,
                .spare_blocks = kSpareBlocks};
    }
    static std::string path() { return data_folder() + GetParam().file; }
};

std::vector<base::TokenId> random_tokens(std::mt19937& random, std::size_t count) {
    std::vector<base::TokenId> tokens(count);
    for (base::TokenId& token : tokens) token = static_cast<base::TokenId>(random() % 500);
    return tokens;
}

std::vector<std::int32_t> blocks_from(std::int32_t first, std::int32_t step) {
    std::vector<std::int32_t> blocks(10);
    for (std::size_t index = 0; index < blocks.size(); ++index)
        blocks[index] = first + static_cast<std::int32_t>(index) * step;
    return blocks;
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

// All rows of one sequence computed in chunks of the given sizes.
Logits in_chunks(TinyModel& model, const std::vector<base::TokenId>& tokens,
                 const std::vector<std::int64_t>& sizes, const std::vector<std::int32_t>& blocks) {
    Logits rows;
    std::int64_t at = 0;
    for (std::size_t index = 0; at < static_cast<std::int64_t>(tokens.size()); ++index) {
        const std::int64_t count =
            std::min(sizes[index % sizes.size()], static_cast<std::int64_t>(tokens.size()) - at);
        auto part = model.step({{.tokens = {tokens.begin() + at, tokens.begin() + at + count},
                                 .first_position = at,
                                 .blocks = blocks}},
                               true);
        rows.insert(rows.end(), part.begin(), part.end());
        at += count;
    }
    return rows;
}

TEST_P(BatchInvariance, ChunkSizesAndPlacesChangeNoBit) {
    std::mt19937 random(3);
    TinyModel model(path(), options(2));
    const auto tokens = random_tokens(random, 200);
    const Logits whole = in_chunks(model, tokens, {200}, blocks_from(0, 1));
    const std::vector<std::vector<std::int64_t>> cuts = {{1}, {7, 33}, {32}, {31, 1, 64}, {129}};
    for (std::size_t index = 0; index < cuts.size(); ++index) {
        const Logits cut =
            in_chunks(model, tokens, cuts[index], blocks_from(static_cast<std::int32_t>(index), 7));
        for (std::size_t row = 0; row < whole.size(); ++row)
            expect_same_bits(cut[row], whole[row],
                             "cut " + std::to_string(index) + ", row " + std::to_string(row));
    }
}

TEST_P(BatchInvariance, CompanyInTheBatchChangesNoBit) {
    std::mt19937 random(5);
    TinyModel model(path(), options(2));
    const auto tokens = random_tokens(random, 90);
    const Logits alone = in_chunks(model, tokens, {90}, blocks_from(0, 1));
    for (const std::size_t company : {1U, 2U, 5U, 9U}) {
        std::vector<Slice> slices;
        for (std::size_t other = 0; other < company; ++other)
            slices.push_back({.tokens = random_tokens(random, 1 + random() % 40),
                              .blocks = blocks_from(static_cast<std::int32_t>(10 + other * 7), 1)});
        const std::size_t place = random() % (company + 1);
        slices.insert(slices.begin() + static_cast<std::ptrdiff_t>(place),
                      Slice{.tokens = tokens, .blocks = blocks_from(0, 1)});
        std::size_t before = 0;
        for (std::size_t index = 0; index < place; ++index) before += slices[index].tokens.size();
        const Logits rows = model.step(slices, true);
        for (std::size_t row = 0; row < alone.size(); ++row)
            expect_same_bits(rows[before + row], alone[row], "company " + std::to_string(company));
    }
}

TEST_P(BatchInvariance, ThreadsChangeNoBit) {
    std::mt19937 random(9);
    const auto tokens = random_tokens(random, 150);
    Logits first;
    // More threads than cores, and than most layers have pieces, are slow and nothing else.
    for (const int threads : {1, 2, 3, 5, 15, 16, 17, 33, 64}) {
        TinyModel model(path(), options(threads));
        const Logits rows = in_chunks(model, tokens, {100, 50}, blocks_from(0, 1));
        if (first.empty()) first = rows;
        for (std::size_t row = 0; row < rows.size(); ++row)
            expect_same_bits(rows[row], first[row], std::to_string(threads) + " threads");
    }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, BatchInvariance,
    testing::Values(Setting{"/gguf-quant/llama-Q4_1.gguf", ActivationMode::kAuto, KvDType::kBF16},
                    Setting{"/gguf-quant/llama-Q4_K.gguf", ActivationMode::kAuto, KvDType::kBF16},
                    Setting{"/gguf-quant/llama-Q6_K.gguf", ActivationMode::kAuto, KvDType::kBF16},
                    Setting{"/gguf-quant/llama-Q8_0.gguf", ActivationMode::kF32, KvDType::kF32},
                    Setting{"/gguf/gemma3.gguf", ActivationMode::kAuto, KvDType::kBF16},
                    Setting{"/gguf/gemma3.gguf", ActivationMode::kF32, KvDType::kInt8},
                    Setting{"/gguf-quant/llama-Q4_1.gguf", ActivationMode::kAuto, KvDType::kInt8},
                    Setting{"/gguf/gemma2.gguf", ActivationMode::kF32, KvDType::kBF16},
                    Setting{"/gguf/qwen3.gguf", ActivationMode::kF32, KvDType::kF32}),
    [](const auto& instance) {
        std::string name = instance.param.file.substr(instance.param.file.rfind('/') + 1);
        name = name.substr(0, name.find('.'));
        for (char& c : name) c = c == '-' ? '_' : c;
        name += instance.param.activations == ActivationMode::kAuto ? "_auto" : "_f32";
        return instance.param.kv == KvDType::kInt8 ? name + "_int8_kv" : name;
    });

}  // namespace
}  // namespace pagoda::golden
