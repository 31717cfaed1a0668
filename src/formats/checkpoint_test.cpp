#include "formats/checkpoint.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/sample_gguf_for_test.h"
#include "formats/scratch_folder_for_test.h"

namespace pagoda::formats {
namespace {

Checkpoint small_checkpoint() {
    Checkpoint checkpoint;
    checkpoint.path = "model.gguf";
    checkpoint.architecture = "llama";
    checkpoint.metadata = {
        {"llama.count", std::int64_t{4}},
        {"llama.scale", 0.5},
        {"llama.flag", true},
        {"llama.kind", std::string("yarn")},
        {"llama.layers", MetaArray{std::vector<std::int64_t>{1, 2, 3}}},
        {"llama.pattern", MetaArray{std::vector<bool>{true, false}}},
        {"llama.words", MetaArray{std::vector<std::string>{"a"}}},
        {"qwen2.count", std::int64_t{9}},
    };
    return checkpoint;
}

template <class T>
std::string message(const base::Result<T>& result) {
    return result.ok() ? "accepted" : result.error().message;
}

TEST(Checkpoint, ReadsValuesUnderItsArchitecture) {
    const Checkpoint checkpoint = small_checkpoint();
    EXPECT_EQ(*checkpoint.arch_int("count"), 4);
    EXPECT_EQ(*checkpoint.arch_float("scale"), 0.5);
    EXPECT_EQ(*checkpoint.arch_float("count"), 4.0);
    EXPECT_EQ(*checkpoint.arch_bool("flag"), true);
    EXPECT_EQ(*checkpoint.arch_string("kind"), "yarn");
    EXPECT_EQ(*checkpoint.arch_ints("layers"), (std::vector<std::int64_t>{1, 2, 3}));
    EXPECT_EQ(*checkpoint.arch_ints("pattern"), (std::vector<std::int64_t>{1, 0}));
    EXPECT_EQ(*checkpoint.arch_ints("count"), (std::vector<std::int64_t>{4}));
    EXPECT_EQ(*checkpoint.arch_ints("flag"), (std::vector<std::int64_t>{1}));
    EXPECT_EQ(checkpoint.find_meta("count"), nullptr);
    EXPECT_NE(checkpoint.find_meta("qwen2.count"), nullptr);
}

TEST(Checkpoint, GivesNothingForAbsentKeys) {
    const Checkpoint checkpoint = small_checkpoint();
    EXPECT_EQ(*checkpoint.arch_int("absent"), std::nullopt);
    EXPECT_EQ(*checkpoint.arch_float("absent"), std::nullopt);
    EXPECT_EQ(*checkpoint.arch_bool("absent"), std::nullopt);
    EXPECT_EQ(*checkpoint.arch_string("absent"), std::nullopt);
    EXPECT_TRUE(checkpoint.arch_ints("absent")->empty());
}

TEST(Checkpoint, NamesTheKeyOfAWrongType) {
    const Checkpoint checkpoint = small_checkpoint();
    EXPECT_EQ(message(checkpoint.arch_int("scale")),
              "model.gguf: key 'llama.scale' must be an integer, but is a number with a fraction");
    EXPECT_NE(message(checkpoint.arch_float("kind")).find("'llama.kind' must be a number"),
              std::string::npos);
    EXPECT_NE(message(checkpoint.arch_bool("count")).find("'llama.count' must be a boolean"),
              std::string::npos);
    EXPECT_NE(message(checkpoint.arch_string("layers")).find("but is an array"), std::string::npos);
    EXPECT_NE(message(checkpoint.arch_ints("words")).find("'llama.words'"), std::string::npos);
    EXPECT_NE(message(checkpoint.arch_ints("kind")).find("'llama.kind'"), std::string::npos);
}

TEST(OpenCheckpoint, MapsAFileAndReleasesItsPages) {
    const ScratchFolder folder;
    const SampleGguf sample;
    const std::string path = folder.path("model.gguf");
    ASSERT_TRUE(write_gguf(path, sample.file).ok());
    const auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->path, path);
    EXPECT_EQ(checkpoint->format, "GGUF 3");
    EXPECT_EQ(checkpoint->architecture, "llama");
    EXPECT_EQ(checkpoint->name, "sample");
    EXPECT_EQ(checkpoint->find_tensor("nothing"), nullptr);
    const CheckpointTensor* tensor = checkpoint->find_tensor("blk.0.attn_q.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->view.rows(), 2);
    EXPECT_EQ(tensor->view.cols(), 256);
    EXPECT_EQ(checkpoint->tensor_bytes(), 4 * 18U + 28U + 2 * 210U + 60U);
    checkpoint->storage->release(tensor->view.data, tensor->view.bytes);
    EXPECT_TRUE(std::equal(tensor->view.data, tensor->view.data + tensor->view.bytes,
                           sample.file.tensors[2].data.begin()));
}

TEST(OpenCheckpoint, NamesAModelWithoutANameAfterItsFile) {
    const ScratchFolder folder;
    SampleGguf sample;
    sample.erase("general.name");
    const std::string path = folder.path("my model.gguf");
    ASSERT_TRUE(write_gguf(path, sample.file).ok());
    const auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->name, "my model");
}

TEST(OpenCheckpoint, AcceptsAVocabularyWithoutTensors) {
    const ScratchFolder folder;
    SampleGguf sample;
    sample.file.tensors.clear();
    const std::string path = folder.path("vocabulary.gguf");
    ASSERT_TRUE(write_gguf(path, sample.file).ok());
    const auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->tokenizer->tokens.size(), 4U);
    EXPECT_EQ(checkpoint->tensor_bytes(), 0U);
}

TEST(OpenCheckpoint, NamesFileAndKeyOfABadTokenizer) {
    const ScratchFolder folder;
    SampleGguf sample;
    sample.entry("tokenizer.ggml.eos_token_id").value = std::int64_t{4};
    const std::string path = folder.path("model.gguf");
    ASSERT_TRUE(write_gguf(path, sample.file).ok());
    const std::string refusal = message(open_checkpoint(path));
    EXPECT_EQ(refusal, path + ": key 'tokenizer.ggml.eos_token_id' is 4, but there are 4 tokens");
}

TEST(OpenCheckpoint, RefusesTokensWithoutAnEmbedding) {
    SampleGguf sample;
    sample.file.tensors[0].shape = {3, 32};
    sample.file.tensors[0].data = sample.file.tensors[0].data.first(3 * 18);
    const auto bytes = encode_gguf(sample.file);
    ASSERT_TRUE(bytes.ok());
    const std::string refusal = message(checkpoint_from_gguf(*bytes, "m.gguf"));
    EXPECT_NE(refusal.find("'token_embd.weight' has 3 rows, but the tokenizer has 4 tokens"),
              std::string::npos)
        << refusal;
}

TEST(OpenCheckpoint, RefusesAFileWithoutAnArchitecture) {
    SampleGguf sample;
    sample.erase("general.architecture");
    const auto bytes = encode_gguf(sample.file);
    ASSERT_TRUE(bytes.ok());
    EXPECT_NE(message(checkpoint_from_gguf(*bytes, "m.gguf")).find("general.architecture"),
              std::string::npos);
    EXPECT_FALSE(open_checkpoint("").ok());
}

}  // namespace
}  // namespace pagoda::formats
