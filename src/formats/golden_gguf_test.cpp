// Every GGUF file of the golden data opens, whole, and says what it is.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "formats/describe.h"
#include "formats/gguf_parser.h"
#include "formats/gguf_writer.h"
#include "formats/mapped_file.h"
#include "formats/scratch_folder_for_test.h"

namespace pagoda::formats {
namespace {

namespace fs = std::filesystem;

// The files of a folder of the golden data. Fails when there are none.
std::vector<fs::path> golden_files(const std::string& folder) {
    const char* root = std::getenv("PAGODA_GOLDEN");
    std::vector<fs::path> files;
    if (root == nullptr || !fs::is_directory(fs::path(root) / folder)) {
        ADD_FAILURE() << "PAGODA_GOLDEN does not name a folder with " << folder;
        return files;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root) / folder))
        if (entry.path().extension() == ".gguf") files.push_back(entry.path());
    EXPECT_FALSE(files.empty()) << folder;
    return files;
}

TEST(GoldenGguf, OpensEveryArchitecture) {
    const std::map<std::string, std::string> architectures{{"cohere2", "cohere2"},
                                                           {"deepseek-v3", "deepseek2"},
                                                           {"falcon", "falcon"},
                                                           {"gemma2", "gemma2"},
                                                           {"gemma3", "gemma3"},
                                                           {"gpt-oss", "gpt-oss"},
                                                           {"llama", "llama"},
                                                           {"llama-tied", "llama"},
                                                           {"mistral-full", "llama"},
                                                           {"mixtral", "llama"},
                                                           {"phi3", "phi3"},
                                                           {"qwen2", "qwen2"},
                                                           {"qwen3", "qwen3"},
                                                           {"qwen3-moe", "qwen3moe"},
                                                           {"starcoder2", "starcoder2"}};
    std::size_t opened = 0;
    std::size_t with_weights = 0;
    for (const fs::path& path : golden_files("gguf")) {
        const auto checkpoint = open_checkpoint(path.string());
        ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
        const auto expected = architectures.find(path.stem().string());
        ASSERT_NE(expected, architectures.end()) << path;
        EXPECT_EQ(checkpoint->architecture, expected->second);
        EXPECT_EQ(checkpoint->tokenizer->tokens.size(), 512U);
        // Some are vocabularies without weights.
        const CheckpointTensor* embedding = checkpoint->find_tensor("token_embd.weight");
        ASSERT_EQ(embedding == nullptr, checkpoint->tensors.empty()) << path;
        if (embedding != nullptr) {
            EXPECT_EQ(embedding->view.shape, (std::vector<std::int64_t>{512, 128}));
            ++with_weights;
        }
        EXPECT_FALSE(checkpoint->tokenizer->chat_template.empty());
        EXPECT_EQ(describe(*checkpoint).find("tensors")->as_array().size(),
                  checkpoint->tensors.size());
        ++opened;
    }
    EXPECT_EQ(opened, architectures.size());
    EXPECT_GE(with_weights, 4U);
}

TEST(GoldenGguf, OpensEveryQuantizedType) {
    for (const fs::path& path : golden_files("gguf-quant")) {
        const auto checkpoint = open_checkpoint(path.string());
        ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
        const std::string type = path.stem().string().substr(std::string("llama-").size());
        const CheckpointTensor* tensor = checkpoint->find_tensor("blk.0.ffn_down.weight");
        ASSERT_NE(tensor, nullptr);
        EXPECT_EQ(tensor::info(tensor->view.dtype).name, type);
    }
}

TEST(GoldenGguf, IsWrittenAgainByteForByte) {
    for (const fs::path& path : golden_files("gguf")) {
        const auto mapped = MappedFile::open(path.string());
        ASSERT_TRUE(mapped.ok());
        const auto file = parse_gguf(mapped->bytes(), path.string());
        ASSERT_TRUE(file.ok()) << file.error().message;
        const auto written = encode_gguf(*file);
        ASSERT_TRUE(written.ok()) << written.error().message;
        // Only the padding at the end is left to the writer.
        ASSERT_GE(written->size(), mapped->bytes().size()) << path;
        EXPECT_LT(written->size(), mapped->bytes().size() + file->alignment) << path;
        EXPECT_TRUE(std::equal(mapped->bytes().begin(), mapped->bytes().end(), written->begin()))
            << path;
    }
}

TEST(GoldenGguf, IsRefusedWhenCutAndNamesTheTensor) {
    const ScratchFolder folder;
    for (const fs::path& path : golden_files("gguf-quant")) {
        const auto mapped = MappedFile::open(path.string());
        ASSERT_TRUE(mapped.ok());
        const std::size_t size = mapped->bytes().size();
        for (const std::size_t length : {size / 10, size / 2, size - 1}) {
            const std::string cut = folder.file("cut.gguf", mapped->bytes().first(length));
            const auto checkpoint = open_checkpoint(cut);
            ASSERT_FALSE(checkpoint.ok()) << path << " at " << length;
            EXPECT_NE(checkpoint.error().message.find("cut.gguf: "), std::string::npos);
            EXPECT_NE(checkpoint.error().message.find("truncated"), std::string::npos)
                << checkpoint.error().message;
        }
    }
}

}  // namespace
}  // namespace pagoda::formats
