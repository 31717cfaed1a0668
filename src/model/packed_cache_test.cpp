#include "model/packed_cache.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "formats/scratch_folder_for_test.h"
#include "kernels/registry.h"
#include "model/registry.h"
#include "model/toy_checkpoint_for_test.h"
#include "model/weights.h"

namespace pagoda::model {
namespace {

using tensor::DType;

// A toy with a matrix of blocks and one of floats that are not all the same.
ToyCheckpoint make_toy(float value = 2) {
    ToyCheckpoint toy;
    toy.add("blk.0.ffn_up.weight", DType::kQ4_0, {ToyCheckpoint::kFfn, ToyCheckpoint::kHidden});
    toy.add("blk.0.attn_q.weight", DType::kF32, {ToyCheckpoint::kHidden, ToyCheckpoint::kHidden},
            value);
    return toy;
}

std::vector<const kernels::Weight*> weights_of(const DecoderWeights& weights) {
    const LayerWeights& layer = weights.layers.front();
    return {&layer.q.weight,    &layer.k.weight,  &layer.v.weight,    &layer.output.weight,
            &layer.gate.weight, &layer.up.weight, &layer.down.weight, &weights.head.weight};
}

void expect_equal(const DecoderWeights& a, const DecoderWeights& b) {
    const auto left = weights_of(a);
    const auto right = weights_of(b);
    for (std::size_t number = 0; number < left.size(); ++number) {
        ASSERT_EQ(left[number]->bytes(), right[number]->bytes());
        EXPECT_EQ(std::memcmp(left[number]->view().data, right[number]->view().data,
                              left[number]->bytes()),
                  0)
            << number;
        EXPECT_EQ(left[number]->rounding(), right[number]->rounding());
        EXPECT_EQ(left[number]->view().layout, right[number]->view().layout);
        EXPECT_EQ(left[number]->view().dtype, right[number]->view().dtype);
        EXPECT_EQ(left[number]->out_features(), right[number]->out_features());
        EXPECT_EQ(left[number]->in_features(), right[number]->in_features());
    }
    EXPECT_EQ(a.layers.front().attention_norm, b.layers.front().attention_norm);
    EXPECT_EQ(a.arena->bytes(), b.arena->bytes());
}

class PackedCaches : public testing::TestWithParam<const kernels::Kernels*> {
  protected:
    void SetUp() override {
        if (!contains(kernels::detect_cpu_features(), GetParam()->required))
            GTEST_SKIP() << "this CPU has no " << GetParam()->name;
    }

    // The weights and, in said_, what the log said of them.
    DecoderWeights load(ToyCheckpoint& toy, const std::string& folder) {
        const auto spec = read_decoder_spec(toy.file());
        EXPECT_TRUE(spec.ok());
        testing::internal::CaptureStderr();
        auto loaded = [&] {
            base::Logger logger({});
            return load_weights(toy.file(), *spec, device_, {},
                                {.folder = folder, .logger = &logger});
        }();
        said_ = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(loaded.ok());
        return std::move(loaded).value();
    }
    DecoderWeights load(ToyCheckpoint& toy) { return load(toy, folder_.path("")); }

    void expect_said(const std::string& part) const {
        EXPECT_NE(said_.find(part), std::string::npos) << said_;
        EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1) << said_;
    }

    // Of the one file there.
    [[nodiscard]] std::string path() const {
        std::string found;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path(""))) {
            EXPECT_EQ(found, "") << entry.path();
            found = entry.path().string();
        }
        return found;
    }
    [[nodiscard]] std::vector<char> bytes() const {
        std::ifstream in(path(), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void overwrite(const std::vector<char>& bytes) const {
        std::ofstream out(path(), std::ios::binary | std::ios::trunc);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }

    formats::ScratchFolder folder_;
    base::ThreadTeam team_{2};
    kernels::DeviceContext device_{.kernels = GetParam(), .team = &team_};
    std::string said_;
};

TEST_P(PackedCaches, TheFirstLoadWritesAndTheNextReadsTheSameWeights) {
    ToyCheckpoint toy = make_toy();
    const DecoderWeights packed = load(toy, "");
    EXPECT_EQ(said_, "");
    const DecoderWeights first = load(toy);
    expect_said("packed weights: wrote");
    EXPECT_NE(said_.find(path()), std::string::npos) << said_;
    const std::vector<char> file = bytes();
    const DecoderWeights second = load(toy);
    expect_said("packed weights: read");
    EXPECT_NE(said_.find(path()), std::string::npos) << said_;
    expect_equal(packed, first);
    expect_equal(packed, second);
    EXPECT_EQ(bytes(), file);
}

TEST_P(PackedCaches, ADamagedFileIsNamedAndWrittenAnew) {
    ToyCheckpoint toy = make_toy();
    const DecoderWeights packed = load(toy);
    const std::vector<char> whole = bytes();
    const auto check = [&](const std::vector<char>& damaged, const std::string& what) {
        overwrite(damaged);
        expect_equal(packed, load(toy));
        EXPECT_NE(said_.find("packed weights are packed anew: " + path()), std::string::npos)
            << said_;
        EXPECT_NE(said_.find(what), std::string::npos) << said_;
        EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 2) << said_;  // and: wrote
        EXPECT_EQ(bytes(), whole);
    };
    check({}, "header");
    check({whole.begin(), whole.end() - 64}, "bytes, not");
    std::vector<char> damaged = whole;
    damaged[200] ^= 1;
    check(damaged, "index does not have its checksum");
    for (const std::size_t place : {std::size_t{4096}, whole.size() / 2, whole.size() - 1}) {
        damaged = whole;
        damaged[place] ^= 1;
        check(damaged, "does not have its checksum");
    }
    check(std::vector<char>(5000, 'x'), "no file of packed weights");
}

TEST_P(PackedCaches, AFileOfAnotherLayoutVersionOrModelIsWrittenAnew) {
    ToyCheckpoint toy = make_toy();
    const DecoderWeights packed = load(toy);
    const std::vector<char> whole = bytes();
    kernels::Kernels older = *device_.kernels;
    older.layout_version += 1;
    device_.kernels = &older;
    expect_equal(packed, load(toy));
    EXPECT_NE(said_.find("packed anew: " + path()), std::string::npos) << said_;
    EXPECT_NE(said_.find("in version 1, not"), std::string::npos) << said_;
    load(toy);
    expect_said("packed weights: read");
    device_.kernels = GetParam();
    expect_equal(packed, load(toy));
    EXPECT_EQ(bytes(), whole);
    // Another model's file under this one's name.
    ToyCheckpoint other = make_toy(3);
    const formats::ScratchFolder elsewhere;
    load(other, elsewhere.path(""));
    for (const auto& entry : std::filesystem::directory_iterator(elsewhere.path("")))
        std::filesystem::rename(entry.path(), path());
    expect_equal(packed, load(toy));
    EXPECT_NE(said_.find("of the model"), std::string::npos) << said_;
    EXPECT_EQ(bytes(), whole);
}

TEST_P(PackedCaches, AModelThatChangedGetsAFileOfItsOwn) {
    ToyCheckpoint toy = make_toy();
    load(toy);
    ToyCheckpoint other = make_toy(3);
    const DecoderWeights packed = load(other, "");
    expect_equal(packed, load(other));
    expect_said("packed weights: wrote");
    expect_equal(packed, load(other));
    expect_said("packed weights: read");
}

TEST_P(PackedCaches, AFolderThatCantBeIsOneWarningAndTheModelIsThere) {
    ToyCheckpoint toy = make_toy();
    const DecoderWeights packed = load(toy, "");
    const std::string file = folder_.file("file", {});
    expect_equal(packed, load(toy, file));
    expect_said("packed weights are not kept: " + file);
    expect_equal(packed, load(toy, "/proc/no/such"));
    expect_said("packed weights are not kept: /proc/no/such: cannot create the folder");
}

std::vector<const kernels::Kernels*> all_kernels() {
    std::vector<const kernels::Kernels*> result;
    for (const kernels::Kernels& variant : kernels::all_variants()) result.push_back(&variant);
    return result;
}

INSTANTIATE_TEST_SUITE_P(Variants, PackedCaches, testing::ValuesIn(all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST(DigestTensors, NamesTypesShapesBytesAndOrderCount) {
    base::ThreadTeam team(2);
    std::vector<base::Hash128> seen;
    const auto is_new = [&](ToyCheckpoint& toy) {
        const base::Hash128 digest = digest_tensors(toy.file(), team);
        base::ThreadTeam alone(1);
        EXPECT_EQ(digest_tensors(toy.file(), alone), digest);
        const bool found = std::find(seen.begin(), seen.end(), digest) != seen.end();
        seen.push_back(digest);
        return !found;
    };
    ToyCheckpoint toy = make_toy();
    EXPECT_TRUE(is_new(toy));
    ToyCheckpoint same = make_toy();
    same.set("context_length", std::int64_t{100});  // packs nothing else
    EXPECT_FALSE(is_new(same));
    ToyCheckpoint value = make_toy(3);
    EXPECT_TRUE(is_new(value));
    ToyCheckpoint name = make_toy();
    name.drop_tensor("output_norm.weight");
    EXPECT_TRUE(is_new(name));
    name.add("output_morn.weight", DType::kF32, {ToyCheckpoint::kHidden});
    EXPECT_TRUE(is_new(name));
    ToyCheckpoint shape = make_toy();
    shape.add("blk.0.attn_q.weight", DType::kF32, {16, 64}, 2);
    EXPECT_TRUE(is_new(shape));
    ToyCheckpoint type = make_toy();
    type.add("blk.0.attn_q.weight", DType::kI32, {32, 32});
    EXPECT_TRUE(is_new(type));
    ToyCheckpoint order = make_toy();
    order.add("output_norm.weight", DType::kF32, {ToyCheckpoint::kHidden});
    order.add("token_embd.weight", DType::kF32, {ToyCheckpoint::kVocab, ToyCheckpoint::kHidden});
    EXPECT_TRUE(is_new(order));
}

}  // namespace
}  // namespace pagoda::model
