#include "formats/packed_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/packed_index_for_test.h"
#include "formats/scratch_folder_for_test.h"

namespace pagoda::formats {
namespace {

namespace fs = std::filesystem;
using Payloads = std::vector<std::vector<std::byte>>;

// Payloads of several chunks, of one, and of a byte.
Payloads sample_payloads() {
    Payloads payloads;
    std::uint8_t next = 1;
    for (const std::size_t size :
         {3 * base::ChunkedHash::kChunkBytes + 100, std::size_t{2047}, std::size_t{1}}) {
        std::vector<std::byte>& bytes = payloads.emplace_back(size);
        for (std::byte& byte : bytes) {
            next = static_cast<std::uint8_t>(next * 5U + 3U);
            byte = static_cast<std::byte>(next);
        }
    }
    return payloads;
}

class PackedFiles : public testing::Test {
  protected:
    base::Status write(const std::string& path) {
        const Payloads payloads = sample_payloads();
        std::vector<std::span<const std::byte>> spans(payloads.begin(), payloads.end());
        last_report_ = 0;
        return write_packed_file(path, sample_packed_index(), spans, team_,
                                 [this](std::uint64_t done, std::uint64_t total) {
                                     EXPECT_LE(done, total);
                                     EXPECT_GE(done, last_report_);
                                     last_report_ = done;
                                 });
    }

    // What the file holds; an error's message where it can't be read.
    std::string read(const std::string& path, Payloads* read_bytes = nullptr) {
        const auto file = PackedFile::open(path);
        if (!file) return file.error().message;
        for (std::size_t number = 0; number < file->index().entries.size(); ++number) {
            std::vector<std::byte> memory(
                static_cast<std::size_t>(file->index().entries[number].bytes));
            if (const auto done = file->read(number, memory, team_); !done)
                return done.error().message;
            if (read_bytes != nullptr) read_bytes->push_back(std::move(memory));
        }
        return "";
    }

    std::vector<std::byte> bytes_of(const std::string& path) {
        std::ifstream in(path, std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(in)), {});
        const auto bytes = std::as_bytes(std::span(text));
        return {bytes.begin(), bytes.end()};
    }

    void put(const std::string& name, std::span<const std::byte> bytes) const {
        static_cast<void>(folder_.file(name, bytes));
    }

    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(folder_.path("")))
            found.push_back(entry.path().filename().string());
        std::sort(found.begin(), found.end());
        return found;
    }

    void expect_part(const std::string& message, const std::string& part) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }

    ScratchFolder folder_;
    std::string path_ = folder_.path("a.packed");
    base::ThreadTeam team_{2};
    std::uint64_t last_report_ = 0;
};

TEST_F(PackedFiles, WhatIsWrittenIsReadAndNothingElseIsLeft) {
    ASSERT_TRUE(write(path_).ok());
    EXPECT_EQ(names(), std::vector<std::string>{"a.packed"});
    Payloads found;
    EXPECT_EQ(read(path_, &found), "");
    EXPECT_EQ(found, sample_payloads());
    const auto file = PackedFile::open(path_);
    EXPECT_EQ(file->index().file_bytes, fs::file_size(path_));
    EXPECT_GT(last_report_, 0);
}

TEST_F(PackedFiles, OfTheSameWeightsAreTheSameBytesWithAnyNumberOfThreads) {
    ASSERT_TRUE(write(path_).ok());
    const Payloads payloads = sample_payloads();
    std::vector<std::span<const std::byte>> spans(payloads.begin(), payloads.end());
    base::ThreadTeam alone(1);
    const std::string other = folder_.path("b.packed");
    ASSERT_TRUE(write_packed_file(other, sample_packed_index(), spans, alone).ok());
    EXPECT_EQ(bytes_of(path_), bytes_of(other));
}

TEST_F(PackedFiles, OneThatIsNotThereIsNotFound) {
    const auto file = PackedFile::open(path_);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code, base::ErrorCode::kNotFound);
}

TEST_F(PackedFiles, CutAnywhereTheyAreRefused) {
    ASSERT_TRUE(write(path_).ok());
    const auto size = static_cast<std::size_t>(fs::file_size(path_));
    fs::resize_file(path_, size + 1);
    EXPECT_NE(read(path_), "");
    // Ever shorter: the end byte by byte, the long middle in steps, the index byte by byte.
    for (std::size_t length = size - 1;;) {
        fs::resize_file(path_, length);
        const std::string message = read(path_);
        ASSERT_NE(message, "") << length;
        ASSERT_TRUE(message.starts_with(path_ + ": ")) << message;
        if (length == 0) break;
        const bool is_middle = length > 14'200 && length < size - 3000;
        length -= is_middle ? 9973 : 1;
    }
}

TEST_F(PackedFiles, AFlippedBitAnywhereIsSeen) {
    ASSERT_TRUE(write(path_).ok());
    const auto size = static_cast<std::size_t>(fs::file_size(path_));
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < size; place += 3001) places.push_back(place);
    for (std::size_t back = 1; back <= 200; ++back) places.push_back(size - back);
    const std::size_t first_end = 4096 + sample_payloads().front().size();
    for (std::size_t place = first_end - 2; place < first_end + 64; ++place)
        places.push_back(place);  // with the zeros behind the first weight
    const int descriptor = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(descriptor, 0);
    for (const std::size_t place : places) {
        unsigned char byte = 0;
        ASSERT_EQ(::pread(descriptor, &byte, 1, static_cast<off_t>(place)), 1);
        byte ^= 0x10U;
        ASSERT_EQ(::pwrite(descriptor, &byte, 1, static_cast<off_t>(place)), 1);
        EXPECT_NE(read(path_), "") << place;
        byte ^= 0x10U;
        ASSERT_EQ(::pwrite(descriptor, &byte, 1, static_cast<off_t>(place)), 1);
    }
    ::close(descriptor);
    EXPECT_EQ(read(path_), "");
}

TEST_F(PackedFiles, OneThatShrinksBetweenOpeningAndReadingIsRefused) {
    ASSERT_TRUE(write(path_).ok());
    const auto file = PackedFile::open(path_);
    ASSERT_TRUE(file.ok());
    fs::resize_file(path_, 5000);
    std::vector<std::byte> memory(static_cast<std::size_t>(file->index().entries[0].bytes));
    const auto done = file->read(0, memory, team_);
    ASSERT_FALSE(done.ok());
    expect_part(done.error().message, "it was cut");
}

TEST_F(PackedFiles, OfAnotherModelVariantOrLayoutAreRefusedWithBothNames) {
    ASSERT_TRUE(write(path_).ok());
    const auto file = PackedFile::open(path_);
    ASSERT_TRUE(file.ok());
    const PackedIndex& index = file->index();
    EXPECT_TRUE(file->expect(index.key, index.entries).ok());
    PackedKey key = index.key;
    key.model.low ^= 1;
    expect_part(file->expect(key, index.entries).error().message, "of the model");
    key = index.key;
    key.variant = "ref";
    expect_part(file->expect(key, index.entries).error().message, "kernels avx2, not ref");
    key = index.key;
    key.layout_version = 7;
    expect_part(file->expect(key, index.entries).error().message,
                "layout 2 in version 1, not 2 in version 7");
    key = index.key;
    key.layout = 3;
    expect_part(file->expect(key, index.entries).error().message, "not 3 in version 1");
    const auto changed = [&](const auto& change) {
        std::vector<PackedEntry> entries = index.entries;
        change(entries);
        return !file->expect(index.key, entries).ok();
    };
    EXPECT_TRUE(changed([](auto& entries) { entries.pop_back(); }));
    EXPECT_TRUE(changed([](auto& entries) { entries[1].name += "x"; }));
    EXPECT_TRUE(changed([](auto& entries) { entries[1].dtype = tensor::DType::kBF16; }));
    EXPECT_TRUE(changed([](auto& entries) { entries[1].rows += 1; }));
    EXPECT_TRUE(changed([](auto& entries) { entries[1].cols += 1; }));
    EXPECT_TRUE(changed([](auto& entries) { entries[1].bytes += 1; }));
}

TEST_F(PackedFiles, WhatIsNoRegularFileIsRefused) {
    EXPECT_NE(read(folder_.path("")), "");
    const std::string pipe = folder_.path("pipe.packed");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    expect_part(read(pipe), "no regular file");
}

TEST_F(PackedFiles, AFolderIsMadeAndOneThatCantBeIsAReason) {
    EXPECT_TRUE(write(folder_.path("new/deep/a.packed")).ok());
    EXPECT_EQ(read(folder_.path("new/deep/a.packed")), "");
    put("file", {});
    const auto below_a_file = write(folder_.path("file/a.packed"));
    ASSERT_FALSE(below_a_file.ok());
    expect_part(below_a_file.error().message, "cannot create the folder");
    // The name is a folder's: all is written, the name can't be had, nothing is left.
    fs::create_directories(folder_.path("taken.packed/full"));
    const auto taken = write(folder_.path("taken.packed"));
    ASSERT_FALSE(taken.ok());
    expect_part(taken.error().message, "cannot rename");
    EXPECT_EQ(names(), (std::vector<std::string>{"file", "new", "taken.packed"}));
}

TEST_F(PackedFiles, AFileThatTheSystemRefusesLeavesNothingBehind) {
    struct rlimit before = {};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 100'000;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto refused = write(path_);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_FALSE(refused.ok());
    expect_part(refused.error().message, "files may have 100000 (ulimit -f)");
    EXPECT_TRUE(names().empty());
}

TEST_F(PackedFiles, AnOldFileStaysWholeUntilTheNewOneIs) {
    put("a.packed", std::vector<std::byte>(10));
    ASSERT_TRUE(write(path_).ok());
    EXPECT_EQ(read(path_), "");
    EXPECT_EQ(names(), std::vector<std::string>{"a.packed"});
}

TEST_F(PackedFiles, WhatDeadWritersLeftIsRemovedAndWhatALiveOneWritesIsNot) {
    put("dead.packed.00.part", std::vector<std::byte>(10));
    put("theirs.gguf.part", std::vector<std::byte>(10));
    const std::string live = folder_.file("live.packed.01.part", std::vector<std::byte>(10));
    const int descriptor = ::open(live.c_str(), O_RDONLY);
    ASSERT_EQ(::flock(descriptor, LOCK_EX | LOCK_NB), 0);
    ASSERT_TRUE(write(path_).ok());
    EXPECT_EQ(names(),
              (std::vector<std::string>{"a.packed", "live.packed.01.part", "theirs.gguf.part"}));
    ::close(descriptor);
    remove_unfinished_packed_files(folder_.path(""));
    EXPECT_EQ(names(), (std::vector<std::string>{"a.packed", "theirs.gguf.part"}));
}

}  // namespace
}  // namespace pagoda::formats
