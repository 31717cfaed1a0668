#include "tests/golden/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "base/check.h"
#include "kernels/registry.h"

namespace pagoda::golden {

std::string data_folder() {
    const char* folder = std::getenv("PAGODA_GOLDEN");
    if (folder == nullptr) ADD_FAILURE() << "PAGODA_GOLDEN is not set";
    return folder == nullptr ? "" : folder;
}

base::Json read_json(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    auto parsed = base::Json::parse(text.str());
    EXPECT_TRUE(parsed.ok()) << path << ": " << (parsed.ok() ? "" : parsed.error().message);
    return parsed.ok() ? std::move(parsed).value() : base::Json();
}

std::vector<base::TokenId> token_ids(const base::Json& array) {
    std::vector<base::TokenId> ids;
    for (const base::Json& id : array.as_array())
        ids.push_back(static_cast<base::TokenId>(id.as_int()));
    return ids;
}

const kernels::Kernels* chosen_kernels() {
    const char* wanted = std::getenv("PAGODA_ISA");
    const auto chosen =
        kernels::choose_variant(wanted == nullptr ? "" : wanted, kernels::detect_cpu_features());
    CHECK(chosen.ok(), chosen.error().message);
    return chosen.value();
}

std::vector<double> log_softmax(const std::vector<float>& logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
    std::vector<double> result;
    result.reserve(logits.size());
    for (const float logit : logits)
        result.push_back(static_cast<double>(logit) - largest - std::log(sum));
    return result;
}

TinyModel::TinyModel(const std::string& path, const TinyModelOptions& options)
    : options_(options), team_(std::make_unique<base::ThreadTeam>(options.threads)) {
    device_ = {.kernels = options.variant != nullptr ? options.variant : chosen_kernels(),
               .team = team_.get(),
               .activation_mode = options.activations};
    auto checkpoint = formats::open_checkpoint(path);
    CHECK(checkpoint.ok(), checkpoint.error().message);
    if (options.alter) options.alter(checkpoint.value());
    auto model = model::Model::load(checkpoint.value(), device_,
                                    {.max_rows = options.max_rows,
                                     .max_sequences = 64,
                                     .max_positions = options.max_positions,
                                     .max_logit_rows = options.max_rows},
                                    nullptr, {.folder = options.packed_cache_folder});
    CHECK(model.ok(), model.error().message);
    model_ = std::move(model).value();
    const auto groups = model::kv_groups(model_->spec());
    num_groups_ = groups.size();
    const std::int64_t blocks =
        (options.max_positions + kernels::kBlockTokens - 1) / kernels::kBlockTokens +
        options.spare_blocks;
    store_ = engine::make_kv_store(model_->spec(), options.kv,
                                   std::vector<std::int64_t>(num_groups_, blocks))
                 .value();
    if (!options.poison_kv) return;
    for (int layer = 0; layer < static_cast<int>(model_->spec().num_layers()); ++layer) {
        const kernels::PagedKvView view = store_->layer_view(layer);
        std::memset(view.data, 0xff, static_cast<std::size_t>(view.num_blocks) * view.block_bytes);
    }
}

std::vector<std::vector<float>> TinyModel::step(const std::vector<Slice>& slices, bool all_rows) {
    std::vector<base::TokenId> tokens;
    std::vector<model::SequenceSlice> parts;
    std::vector<std::int32_t> wanted;
    for (const Slice& slice : slices) {
        const auto first = static_cast<std::int64_t>(tokens.size());
        const auto count = static_cast<std::int64_t>(slice.tokens.size());
        model::SequenceSlice part{
            .first_row = first, .num_rows = count, .first_position = slice.first_position};
        part.block_tables.assign(num_groups_, slice.blocks);
        parts.push_back(std::move(part));
        tokens.insert(tokens.end(), slice.tokens.begin(), slice.tokens.end());
        for (std::int64_t row = all_rows ? 0 : count - 1; row < count; ++row)
            wanted.push_back(static_cast<std::int32_t>(first + row));
    }
    std::vector<kernels::PagedKvView> views;
    views.reserve(static_cast<std::size_t>(model_->spec().num_layers()));
    for (int layer = 0; layer < static_cast<int>(model_->spec().num_layers()); ++layer)
        views.push_back(store_->layer_view(layer));
    model_->forward({.tokens = tokens, .sequences = parts}, views);
    const auto width = static_cast<std::size_t>(vocab());
    std::vector<float> flat(wanted.size() * width);
    model_->logits(wanted, flat);
    std::vector<std::vector<float>> result;
    for (std::size_t row = 0; row < wanted.size(); ++row)
        result.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(row * width),
                            flat.begin() + static_cast<std::ptrdiff_t>((row + 1) * width));
    return result;
}

std::vector<std::int32_t> TinyModel::all_blocks() const {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(
        (options_.max_positions + kernels::kBlockTokens - 1) / kernels::kBlockTokens));
    std::iota(blocks.begin(), blocks.end(), 0);
    return blocks;
}

std::vector<float> TinyModel::prompt(const std::vector<base::TokenId>& tokens) {
    return step({{.tokens = tokens, .first_position = 0, .blocks = all_blocks()}}, false).front();
}

std::vector<float> TinyModel::next(base::TokenId token, std::int64_t position) {
    return step({{.tokens = {token}, .first_position = position, .blocks = all_blocks()}}, false)
        .front();
}

std::vector<double> TinyModel::logprobs(const std::vector<base::TokenId>& tokens) {
    const auto rows = step({{.tokens = tokens, .first_position = 0, .blocks = all_blocks()}}, true);
    std::vector<double> result;
    for (std::size_t index = 0; index + 1 < tokens.size(); ++index)
        result.push_back(log_softmax(rows[index])[static_cast<std::size_t>(tokens[index + 1])]);
    return result;
}

}  // namespace pagoda::golden
