#include "formats/packed_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Error system_error(const std::string& path, const char* action, int number) {
    const bool is_absent = number == ENOENT || number == ENOTDIR;
    return Error{
        is_absent ? ErrorCode::kNotFound : ErrorCode::kIo,
        fmt::format("{}: cannot {}: {}", path, action, std::generic_category().message(number)),
        path};
}

// Reads all of `memory`; 0, an errno, or -1 where the file ends before.
int read_at(int descriptor, std::span<std::byte> memory, std::uint64_t offset) noexcept {
    while (!memory.empty()) {
        const ssize_t got =
            ::pread(descriptor, memory.data(), memory.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return -1;
        memory = memory.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
    return 0;
}

}  // namespace

Result<PackedFile> PackedFile::open(const std::string& path) {
    // Not blocking, so that a named pipe is refused instead of waited for.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return system_error(path, "open", errno);
    PackedFile file(path, descriptor);
    if (Status done = file.read_index(); !done) return std::move(done).error();
    return file;
}

PackedFile::PackedFile(PackedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      index_(std::move(other.index_)) {}

PackedFile::~PackedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Error PackedFile::wrong(const std::string& reason) const {
    return Error{ErrorCode::kDataLoss, fmt::format("{}: {}", path_, reason), path_};
}

Status PackedFile::read_index() {
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) return system_error(path_, "examine", errno);
    if (!S_ISREG(status.st_mode)) return wrong("it is no regular file");
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(std::min<std::uint64_t>(file_bytes, kPackedHeaderBytes)));
    if (const int fault = read_at(descriptor_, bytes, 0); fault != 0)
        return fault < 0 ? wrong("it was cut") : system_error(path_, "read", fault);
    const auto index_bytes = packed_index_bytes(bytes, file_bytes);
    if (!index_bytes) return wrong(index_bytes.error().message);
    bytes.resize(static_cast<std::size_t>(*index_bytes));
    if (const int fault = read_at(descriptor_, bytes, 0); fault != 0)
        return fault < 0 ? wrong("it was cut") : system_error(path_, "read", fault);
    auto index = parse_packed_index(bytes, file_bytes);
    if (!index) return wrong(index.error().message);
    index_ = std::move(index).value();
    return {};
}

Status PackedFile::expect(const PackedKey& key, const std::vector<PackedEntry>& expected) const {
    const PackedKey& found = index_.key;
    if (found.model != key.model)
        return wrong(
            fmt::format("it is of the model {}, not {}", found.model.hex(), key.model.hex()));
    if (found.variant != key.variant)
        return wrong(fmt::format("it is of the kernels {}, not {}", found.variant, key.variant));
    if (found.layout != key.layout || found.layout_version != key.layout_version)
        return wrong(fmt::format("it has layout {} in version {}, not {} in version {}",
                                 found.layout, found.layout_version, key.layout,
                                 key.layout_version));
    if (index_.entries.size() != expected.size())
        return wrong(
            fmt::format("it has {} weights, not {}", index_.entries.size(), expected.size()));
    for (std::size_t number = 0; number < expected.size(); ++number) {
        PackedEntry entry = index_.entries[number];
        entry.offset = expected[number].offset;
        entry.checksum = expected[number].checksum;
        if (entry != expected[number])
            return wrong(fmt::format("its weight {} is not '{}' of this model", number,
                                     expected[number].name));
    }
    return {};
}

Status PackedFile::read(std::size_t number, std::span<std::byte> memory,
                        base::ThreadTeam& team) const {
    const PackedEntry& entry = index_.entries.at(number);
    CHECK(memory.size() == entry.bytes, "memory of another weight");
    base::ChunkedHash hash(memory.size());
    std::atomic<int> fault{0};
    team.for_each(hash.num_chunks(), [&](std::int64_t chunk) {
        const std::size_t begin = hash.chunk_begin(chunk);
        const auto part = memory.subspan(begin, hash.chunk_bytes(chunk));
        if (const int problem = read_at(descriptor_, part, entry.offset + begin); problem != 0)
            fault.store(problem, std::memory_order_relaxed);
        hash.set(chunk, part);
    });
    std::array<std::byte, kPackedAlignment> padding{};
    const std::uint64_t end = entry.offset + entry.bytes;
    const auto behind = std::span(padding).first(
        static_cast<std::size_t>((kPackedAlignment - end % kPackedAlignment) % kPackedAlignment));
    if (fault.load() == 0) fault.store(read_at(descriptor_, behind, end));
    if (const int problem = fault.load(); problem != 0)
        return problem < 0 ? wrong("it was cut") : system_error(path_, "read", problem);
    const bool is_padded =
        std::all_of(behind.begin(), behind.end(), [](std::byte b) { return b == std::byte{0}; });
    if (hash.finish() != entry.checksum || !is_padded)
        return wrong(fmt::format("weight '{}' does not have its checksum", entry.name));
    return {};
}

}  // namespace pagoda::formats
