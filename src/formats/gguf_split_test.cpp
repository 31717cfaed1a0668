#include "formats/gguf_split.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "formats/gguf_writer.h"
#include "formats/mapped_file.h"
#include "formats/sample_gguf_for_test.h"
#include "formats/scratch_folder_for_test.h"

namespace pagoda::formats {
namespace {

namespace fs = std::filesystem;

// A model in four parts, one tensor in each.
class SplitModel : public testing::Test {
  protected:
    void SetUp() override { paths = write("model"); }

    // REQUIRES: nothing of that name exists.
    std::vector<std::string> write(const std::string& prefix) {
        auto written = write_split_gguf(folder.path(prefix), sample.file, 1);
        EXPECT_TRUE(written.ok()) << written.error().message;
        return *written;
    }
    static std::string refusal(const std::string& path) {
        const auto checkpoint = open_checkpoint(path);
        if (checkpoint.ok()) return "accepted";
        EXPECT_EQ(checkpoint.error().message.find('\n'), std::string::npos);
        return checkpoint.error().message;
    }
    static void expect_refusal(const std::string& path, const std::vector<std::string>& parts) {
        const std::string message = refusal(path);
        for (const std::string& part : parts)
            EXPECT_NE(message.find(part), std::string::npos)
                << "\"" << part << "\" is not in: " << message;
    }

    ScratchFolder folder;
    SampleGguf sample;
    std::vector<std::string> paths;
};

TEST(SplitName, IsReadFromTheEndOfAPath) {
    const auto name = parse_split_name("/a-b/model-Q4-00002-of-00010.gguf");
    ASSERT_TRUE(name.has_value());
    EXPECT_EQ(name->prefix, "/a-b/model-Q4");
    EXPECT_EQ(name->part, 2);
    EXPECT_EQ(name->num_parts, 10);
    EXPECT_EQ(split_part_path(*name, 7), "/a-b/model-Q4-00007-of-00010.gguf");
    for (const char* other :
         {"model.gguf", "model-00001-of-00002.bin", "model-00003-of-00002.gguf",
          "model-00000-of-00002.gguf", "model-0001-of-00002.gguf", "-00001-of-00002.gguf",
          "model_00001-of-00002.gguf", "model-0000x-of-00002.gguf", ""})
        EXPECT_FALSE(parse_split_name(other).has_value()) << other;
}

TEST_F(SplitModel, IsFoundFromItsFirstPart) {
    ASSERT_EQ(paths.size(), 4U);
    const auto checkpoint = open_checkpoint(paths[0]);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    ASSERT_EQ(checkpoint->files.size(), 4U);
    EXPECT_EQ(checkpoint->files[3].path, paths[3]);
    EXPECT_EQ(checkpoint->files[3].bytes, fs::file_size(paths[3]));
    ASSERT_EQ(checkpoint->tensors.size(), sample.file.tensors.size());
    for (const GgufTensor& expected : sample.file.tensors) {
        const CheckpointTensor* tensor = checkpoint->find_tensor(expected.name);
        ASSERT_NE(tensor, nullptr) << expected.name;
        EXPECT_EQ(tensor->view.shape, expected.shape);
        EXPECT_TRUE(std::equal(expected.data.begin(), expected.data.end(), tensor->view.data,
                               tensor->view.data + tensor->view.bytes));
    }
    EXPECT_EQ(checkpoint->tensors[2].file, paths[2]);
    EXPECT_TRUE(checkpoint->tokenizer.has_value());
}

TEST_F(SplitModel, IsRefusedFromALaterPart) {
    expect_refusal(paths[1], {paths[1], "part 2 of 4", "first part", "model-00001-of-00004.gguf"});
    fs::rename(paths[1], folder.path("renamed.gguf"));
    expect_refusal(folder.path("renamed.gguf"), {"renamed.gguf", "part 2 of 4", "first part"});
}

TEST_F(SplitModel, NamesThePartThatIsMissing) {
    fs::remove(paths[2]);
    expect_refusal(paths[0], {paths[0], "part 3 of 4", "missing", paths[2]});
}

TEST_F(SplitModel, IsRefusedWhenItsFirstPartWasRenamed) {
    fs::rename(paths[0], folder.path("model.gguf"));
    expect_refusal(folder.path("model.gguf"), {"part 1 of 4", "NAME-00001-of-00004.gguf"});
}

TEST_F(SplitModel, NamesThePartThatIsCut) {
    fs::resize_file(paths[2], fs::file_size(paths[2]) - 32);
    expect_refusal(paths[0], {paths[2], "blk.0.attn_q.weight"});
}

TEST_F(SplitModel, IsRefusedWhenPartsAreSwapped) {
    fs::rename(paths[1], folder.path("swap"));
    fs::rename(paths[2], paths[1]);
    fs::rename(folder.path("swap"), paths[2]);
    expect_refusal(paths[0], {paths[1], "named part 2 of 4", "says that it is part 3"});
}

TEST_F(SplitModel, IsRefusedWithAPartOfAnotherSplit) {
    // Same model, other number of parts.
    sample.file.tensors.pop_back();
    const std::vector<std::string> three = write("other");
    fs::copy_file(three[1], paths[1], fs::copy_options::overwrite_existing);
    expect_refusal(paths[0], {paths[1], "3 parts", "4"});
}

TEST_F(SplitModel, IsRefusedWithAPartThatHoldsOtherTensors) {
    // Same number of parts, another number of tensors.
    const std::size_t last = sample.file.tensors.size() - 1;
    sample.add_tensor("extra", tensor::DType::kF32, {1});
    auto other = write_split_gguf(folder.path("other"), sample.file, 64);
    ASSERT_TRUE(other.ok());
    ASSERT_EQ(other->size(), 4U);
    fs::copy_file(other->at(1), paths[1], fs::copy_options::overwrite_existing);
    expect_refusal(paths[0], {paths[1], "another model", "5 and 4 tensors"});
    // Same numbers, and a tensor that another part has too.
    sample.file.tensors.resize(last + 1);
    std::swap(sample.file.tensors[1], sample.file.tensors[2]);
    const std::vector<std::string> reordered = write("reordered");
    fs::copy_file(reordered[1], paths[1], fs::copy_options::overwrite_existing);
    expect_refusal(paths[0], {paths[2], "blk.0.attn_q.weight", "different models"});
}

TEST_F(SplitModel, IsRefusedWhenItsPartsHoldLessThanAnnounced) {
    auto parts = write_split_gguf(folder.path("short"), sample.file, 1);
    ASSERT_TRUE(parts.ok());
    GgufFile empty;
    empty.entries = {{"split.no", GgufType::kUint16, std::int64_t{2}},
                     {"split.count", GgufType::kUint16, std::int64_t{4}},
                     {"split.tensors.count", GgufType::kInt32, std::int64_t{4}}};
    ASSERT_TRUE(write_gguf(parts->at(2), empty).ok());
    expect_refusal(parts->at(0), {"announces 4 tensors", "hold 3"});
}

TEST_F(SplitModel, NamesThePartThatAnnouncesNoNumberOfTensors) {
    GgufFile empty;
    empty.entries = {{"split.no", GgufType::kUint16, std::int64_t{1}},
                     {"split.count", GgufType::kUint16, std::int64_t{4}}};
    ASSERT_TRUE(write_gguf(paths[1], empty).ok());
    expect_refusal(paths[0], {paths[1], "key 'split.tensors.count' is missing or no integer"});
}

TEST_F(SplitModel, IsRefusedWhenItsPartsWereGlued) {
    std::vector<std::byte> glued;
    for (const std::string& path : paths) {
        const auto part = MappedFile::open(path);
        ASSERT_TRUE(part.ok());
        glued.insert(glued.end(), part->bytes().begin(), part->bytes().end());
    }
    const std::string path = folder.file("glued.gguf", glued);
    expect_refusal(path, {path, "another GGUF file follows", "separate files"});
}

TEST_F(SplitModel, IsRefusedWithImpossibleNumbers) {
    GgufFile file;
    file.entries = {string_entry("general.architecture", "llama"),
                    {"split.count", GgufType::kUint32, std::int64_t{4'000'000'000}},
                    {"split.no", GgufType::kUint16, std::int64_t{0}}};
    const std::string path = folder.path("odd.gguf");
    ASSERT_TRUE(write_gguf(path, file).ok());
    expect_refusal(path, {"split.count", "4000000000", "9999"});
    file.entries[1] = string_entry("split.count", "two");
    ASSERT_TRUE(write_gguf(path, file).ok());
    expect_refusal(path, {"split.count", "integer"});
    file.entries.erase(file.entries.begin() + 1);
    ASSERT_TRUE(write_gguf(path, file).ok());
    expect_refusal(path, {"split.count", "missing"});
}

TEST_F(SplitModel, OfOnePartIsAnOrdinaryFile) {
    auto whole = write_split_gguf(folder.path("whole"), sample.file, 1U << 30);
    ASSERT_TRUE(whole.ok());
    ASSERT_EQ(whole->size(), 1U);
    fs::rename(whole->at(0), folder.path("any name.gguf"));
    EXPECT_EQ(refusal(folder.path("any name.gguf")), "accepted");
}

}  // namespace
}  // namespace pagoda::formats
