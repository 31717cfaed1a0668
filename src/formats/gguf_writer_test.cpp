#include "formats/gguf_writer.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/gguf_parser.h"
#include "formats/mapped_file.h"
#include "formats/sample_gguf_for_test.h"
#include "formats/scratch_folder_for_test.h"

namespace pagoda::formats {
namespace {

void expect_same(const GgufFile& a, const GgufFile& b) {
    EXPECT_EQ(a.version, b.version);
    EXPECT_EQ(a.alignment, b.alignment);
    ASSERT_EQ(a.entries.size(), b.entries.size());
    for (std::size_t index = 0; index < a.entries.size(); ++index) {
        EXPECT_EQ(a.entries[index].key, b.entries[index].key);
        EXPECT_EQ(a.entries[index].type, b.entries[index].type) << a.entries[index].key;
        EXPECT_EQ(a.entries[index].item_type, b.entries[index].item_type) << a.entries[index].key;
        EXPECT_EQ(a.entries[index].value, b.entries[index].value) << a.entries[index].key;
    }
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (std::size_t index = 0; index < a.tensors.size(); ++index) {
        EXPECT_EQ(a.tensors[index].name, b.tensors[index].name);
        EXPECT_EQ(a.tensors[index].dtype, b.tensors[index].dtype);
        EXPECT_EQ(a.tensors[index].shape, b.tensors[index].shape);
        EXPECT_TRUE(std::equal(a.tensors[index].data.begin(), a.tensors[index].data.end(),
                               b.tensors[index].data.begin(), b.tensors[index].data.end()));
    }
}

// A random array of one type, or of arrays.
MetaArray random_array(std::mt19937& random, GgufType type, int depth) {
    const std::size_t count = random() % 5;
    if (depth < 3 && random() % 4 == 0) {
        std::vector<MetaArray> arrays(1 + count);
        for (MetaArray& inner : arrays) inner = random_array(random, type, depth + 1);
        return MetaArray{std::move(arrays)};
    }
    switch (type) {
        case GgufType::kBool: {
            std::vector<bool> items(count);
            for (std::size_t index = 0; index < count; ++index) items[index] = random() % 2 == 0;
            return MetaArray{std::move(items)};
        }
        case GgufType::kString: {
            std::vector<std::string> items(count);
            for (std::string& item : items) item.assign(random() % 40, static_cast<char>(random()));
            return MetaArray{std::move(items)};
        }
        case GgufType::kFloat64: {
            std::vector<double> items(count);
            for (double& item : items) item = static_cast<double>(random()) / 3.0;
            return MetaArray{std::move(items)};
        }
        default: {
            std::vector<std::int64_t> items(count);
            for (std::int64_t& item : items)
                item = static_cast<std::int64_t>(random()) - (1LL << 31);
            return MetaArray{std::move(items)};
        }
    }
}

TEST(GgufWriter, WritesWhatTheParserReadsBack) {
    const SampleGguf sample;
    const auto bytes = encode_gguf(sample.file);
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    const auto file = parse_gguf(*bytes, "sample.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    expect_same(*file, sample.file);
}

TEST(GgufWriter, RoundTripsRandomFiles) {
    std::mt19937 random(20240817);
    constexpr std::array kItemTypes{GgufType::kBool, GgufType::kString, GgufType::kFloat64,
                                    GgufType::kInt64};
    for (int round = 0; round < 200; ++round) {
        SampleGguf sample;
        sample.file.version = 2 + random() % 2;
        sample.file.alignment = std::uint64_t{8} << random() % 6;
        sample.file.entries.push_back(
            u32_entry("general.alignment", static_cast<std::int64_t>(sample.file.alignment)));
        for (std::uint32_t index = 0; index < random() % 6; ++index) {
            const GgufType type = kItemTypes[random() % kItemTypes.size()];
            MetaArray array = random_array(random, type, 1);
            sample.file.entries.push_back(
                {"random." + std::to_string(index), GgufType::kArray, std::move(array), type});
        }
        sample.file.tensors.resize(random() % (sample.file.tensors.size() + 1));
        const auto bytes = encode_gguf(sample.file);
        ASSERT_TRUE(bytes.ok()) << bytes.error().message;
        const auto file = parse_gguf(*bytes, "random.gguf");
        ASSERT_TRUE(file.ok()) << file.error().message;
        expect_same(*file, sample.file);
        const auto again = encode_gguf(*file);
        ASSERT_TRUE(again.ok());
        EXPECT_EQ(*again, *bytes);
    }
}

TEST(GgufWriter, StatesAnAlignmentThatIsNotTheDefault) {
    SampleGguf sample;
    sample.file.alignment = 4096;
    const auto bytes = encode_gguf(sample.file);
    ASSERT_TRUE(bytes.ok());
    const auto file = parse_gguf(*bytes, "sample.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file->alignment, 4096U);
    EXPECT_EQ((file->tensors[1].data.data() - bytes->data()) % 4096, 0);
}

TEST(GgufWriter, RefusesWhatAReaderWouldRefuse) {
    const auto refused = [](const auto& change) {
        SampleGguf sample;
        change(sample);
        const auto bytes = encode_gguf(sample.file);
        return bytes.ok() ? std::string("accepted") : bytes.error().message;
    };
    EXPECT_NE(refused([](SampleGguf& s) { s.file.version = 1; }).find("version 1"),
              std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) { s.file.alignment = 24; }).find("24"), std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) { s.file.entries[1].key = ""; }).find("0 bytes"),
              std::string::npos);
    EXPECT_NE(
        refused([](SampleGguf& s) { s.file.entries[1].key = s.file.entries[0].key; }).find("twice"),
        std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) {
                  s.file.tensors[1].name = s.file.tensors[0].name;
              }).find("twice"),
              std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) { s.entry("x") = u32_entry("x", -1); }).find("'x' is -1"),
              std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) {
                  s.entry("x") = {"x", GgufType::kUint8, true};
              }).find("u8"),
              std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) {
                  s.file.tensors[0].shape = {4, 33};
              }).find("33 values"),
              std::string::npos);
    EXPECT_NE(refused([](SampleGguf& s) { s.file.tensors[0].data = {}; }).find("0 bytes of data"),
              std::string::npos);
}

TEST(GgufFileWriter, GivesTheFileItsNameOnlyWhenComplete) {
    const ScratchFolder folder;
    const SampleGguf sample;
    const std::string path = folder.path("model.gguf");
    {
        auto writer = GgufFileWriter::create(path, sample.file);
        ASSERT_TRUE(writer.ok()) << writer.error().message;
        ASSERT_TRUE(writer->append(sample.file.tensors[0].data).ok());
        EXPECT_FALSE(
            writer->append(sample.file.tensors[0].data).ok());  // not the size of the next tensor
        const base::Status early = writer->finish();
        ASSERT_FALSE(early.ok());
        EXPECT_NE(early.error().message.find("blk.0.norm"), std::string::npos);
        EXPECT_FALSE(std::filesystem::exists(path));
        EXPECT_TRUE(std::filesystem::exists(path + ".part"));
    }
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    ASSERT_TRUE(write_gguf(path, sample.file).ok());
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
    const auto mapped = MappedFile::open(path);
    ASSERT_TRUE(mapped.ok());
    const auto file = parse_gguf(mapped->bytes(), path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    expect_same(*file, sample.file);
}

TEST(GgufFileWriter, NamesTheFileThatCannotBeCreated) {
    const SampleGguf sample;
    const base::Status status = write_gguf("/nonexistent/folder/model.gguf", sample.file);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("/nonexistent/folder/model.gguf"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::formats
