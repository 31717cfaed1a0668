#include "formats/mapped_file.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/scratch_folder_for_test.h"

namespace pagoda::formats {
namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

TEST(MappedFile, RefusesWhatIsNoModelFile) {
    const ScratchFolder folder;
    const auto refusal = [](const std::string& path) {
        const auto file = MappedFile::open(path);
        return file.ok() ? std::string("accepted") : file.error().message;
    };
    EXPECT_NE(refusal(folder.path("missing")).find("No such file"), std::string::npos);
    EXPECT_NE(refusal(folder.path("")).find("directory"), std::string::npos);
    EXPECT_NE(refusal(folder.file("empty", {})).find("empty"), std::string::npos);
    ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
    EXPECT_NE(refusal(folder.path("pipe")).find("no regular file"), std::string::npos);
}

TEST(MappedFile, ReadsReleasedPagesAgain) {
    const ScratchFolder folder;
    const std::vector<std::byte> bytes(5 * kPage + 100, std::byte{42});
    const auto file = MappedFile::open(folder.file("data", bytes));
    ASSERT_TRUE(file.ok());
    const auto all_read = [&] {
        for (const std::byte value : file->bytes())
            if (value != std::byte{42}) return false;
        return true;
    };
    EXPECT_TRUE(all_read());
    const std::byte* begin = file->bytes().data();
    file->release(begin + 10, 3 * kPage);
    file->release(begin, bytes.size());
    file->release(begin + 1, 5);
    file->release(begin + bytes.size(), 0);
    EXPECT_TRUE(all_read());
}

// Pages of the mapping that this process has in its page tables, by /proc/self/pagemap.
std::size_t present_pages(std::span<const std::byte> bytes) {
    std::FILE* map = std::fopen("/proc/self/pagemap", "rb");
    if (map == nullptr) return 0;
    std::size_t present = 0;
    const std::size_t first = reinterpret_cast<std::uintptr_t>(bytes.data()) / kPage;
    for (std::size_t page = 0; page < (bytes.size() + kPage - 1) / kPage; ++page) {
        std::uint64_t entry = 0;
        std::fseek(map, static_cast<long>((first + page) * sizeof entry), SEEK_SET);
        if (std::fread(&entry, sizeof entry, 1, map) == 1 && (entry >> 63) != 0) ++present;
    }
    std::fclose(map);
    return present;
}

TEST(MappedFile, ReleaseDropsWholePagesInsideTheRangeOnly) {
    const ScratchFolder folder;
    const std::vector<std::byte> bytes(64 * kPage + 100, std::byte{1});
    const auto file = MappedFile::open(folder.file("data", bytes));
    ASSERT_TRUE(file.ok());
    unsigned sum = 0;
    for (const std::byte value : file->bytes()) sum += std::to_integer<unsigned>(value);
    ASSERT_EQ(sum, bytes.size());
    ASSERT_EQ(present_pages(file->bytes()), 65U);
    file->release(file->bytes().data() + 1, 3 * kPage);  // two whole pages lie inside
    EXPECT_EQ(present_pages(file->bytes()), 63U);
    file->release(file->bytes().data() + 60 * kPage, 4 * kPage + 100);
    EXPECT_EQ(present_pages(file->bytes()), 58U);
}

TEST(TruncationGuardDeathTest, NamesAFileThatWasCutWhileMapped) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const ScratchFolder folder;
    const std::string path = folder.file("model.gguf", std::vector<std::byte>(8 * kPage));
    const auto read_after_cut = [&] {
        install_truncation_guard();
        const auto file = MappedFile::open(path);
        std::filesystem::resize_file(path, 10);
        const volatile std::byte* last = file->bytes().data() + 7 * kPage;
        static_cast<void>(*last);
    };
    EXPECT_EXIT(read_after_cut(), testing::ExitedWithCode(1), "model.gguf was truncated");
}

TEST(TruncationGuardDeathTest, LeavesOtherBusErrorsAlone) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto raise_elsewhere = [] {
        // What a sanitizer would catch itself is put back to the system's default first.
        std::signal(SIGBUS, SIG_DFL);
        install_truncation_guard();
        const ScratchFolder folder;
        const std::string path = folder.file("other", std::vector<std::byte>(8 * kPage));
        std::FILE* file = std::fopen(path.c_str(), "rb");
        void* memory = ::mmap(nullptr, 8 * kPage, PROT_READ, MAP_SHARED, ::fileno(file), 0);
        std::filesystem::resize_file(path, 10);
        const volatile char* last = static_cast<const char*>(memory) + 7 * kPage;
        static_cast<void>(*last);
    };
    EXPECT_EXIT(raise_elsewhere(), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace pagoda::formats
