// The writing half of packed_file.h.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hash.h"
#include "formats/packed_file.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// A file that is being written is PATH.NUMBER.part. Its writer holds a lock on it, which the system
// takes back when the process ends in whatever way: a .part that can be locked is nobody's.
constexpr std::string_view kUnfinished = ".part";
constexpr std::string_view kPacked = ".packed.";

Error refused(const std::string& path, const char* action, int number) {
    return Error{
        ErrorCode::kIo,
        fmt::format("{}: cannot {}: {}", path, action, std::generic_category().message(number)),
        path};
}

class UnfinishedFile {
  public:
    [[nodiscard]] static Result<UnfinishedFile> create(const std::string& path);
    UnfinishedFile(UnfinishedFile&& other) noexcept
        : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
    UnfinishedFile& operator=(UnfinishedFile&&) = delete;
    ~UnfinishedFile() {
        if (descriptor_ < 0) return;
        if (!has_its_name_) ::unlink(path_.c_str());
        ::close(descriptor_);
    }

    // Takes the room at once, so that a full disk is known before anything is written.
    [[nodiscard]] Status reserve(std::uint64_t bytes) const;
    [[nodiscard]] Status write(std::span<const std::byte> bytes) const;
    // To disk, and under its name.
    [[nodiscard]] Status finish(const std::string& path);

  private:
    UnfinishedFile(std::string path, int descriptor)
        : path_(std::move(path)), descriptor_(descriptor) {}

    std::string path_;
    int descriptor_ = -1;
    bool has_its_name_ = false;
};

Result<UnfinishedFile> UnfinishedFile::create(const std::string& path) {
    // Between its making and its lock a file looks like a dead writer's and may be removed.
    for (int attempt = 0; attempt < 8; ++attempt) {
        const auto number = base::hash128(path, base::HashKey::random()).low;
        const std::string name = fmt::format("{}.{:016x}{}", path, number, kUnfinished);
        const int descriptor =
            ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (descriptor < 0 && errno == EEXIST) continue;
        if (descriptor < 0) return refused(name, "create", errno);
        UnfinishedFile file(name, descriptor);
        struct stat status = {};
        const bool is_mine = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                             ::fstat(descriptor, &status) == 0 && status.st_nlink == 1;
        if (is_mine) return file;
    }
    return Error{ErrorCode::kIo, fmt::format("{}: cannot lock a new file in its folder", path),
                 path};
}

Status UnfinishedFile::reserve(std::uint64_t bytes) const {
    // Going past the limit is a signal that ends the process.
    struct rlimit limit = {};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur)
        return Error{ErrorCode::kIo,
                     fmt::format("{}: needs {} bytes, files may have {} (ulimit -f)", path_, bytes,
                                 limit.rlim_cur),
                     path_};
    if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes)) == 0) return {};
    const int number = errno;
    // Not every file system can; the others refuse for a reason.
    if (number == EOPNOTSUPP || number == ENOSYS || number == EINVAL || number == EINTR) return {};
    return refused(path_, "write", number);
}

Status UnfinishedFile::write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return refused(path_, "write", errno);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
}

Status UnfinishedFile::finish(const std::string& path) {
    if (::fsync(descriptor_) != 0) return refused(path_, "write", errno);
    if (::rename(path_.c_str(), path.c_str()) != 0) return refused(path, "rename", errno);
    has_its_name_ = true;
    // The name, too; where the system can't, a crash now costs the file and nothing else.
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const int parent =
        ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent >= 0) {
        static_cast<void>(::fsync(parent));
        ::close(parent);
    }
    return {};
}

base::Hash128 checksum(std::span<const std::byte> bytes, base::ThreadTeam& team) {
    base::ChunkedHash hash(bytes.size());
    team.for_each(hash.num_chunks(), [&](std::int64_t chunk) {
        hash.set(chunk, bytes.subspan(hash.chunk_begin(chunk), hash.chunk_bytes(chunk)));
    });
    return hash.finish();
}

// One weight and the zeros behind it.
Status write_payload(const UnfinishedFile& file, std::span<const std::byte> bytes,
                     const std::function<void(std::size_t)>& written) {
    constexpr std::size_t kPiece = std::size_t{8} << 20;  // between two reports
    const std::size_t padding =
        (kPackedAlignment - bytes.size() % kPackedAlignment) % kPackedAlignment;
    for (std::size_t begin = 0; begin < bytes.size(); begin += kPiece) {
        const auto piece = bytes.subspan(begin, std::min(kPiece, bytes.size() - begin));
        if (Status done = file.write(piece); !done) return done;
        written(piece.size());
    }
    constexpr std::array<std::byte, kPackedAlignment> kZeros{};
    return file.write(std::span(kZeros).first(padding));
}

}  // namespace

Status write_packed_file(const std::string& path, PackedIndex index,
                         std::span<const std::span<const std::byte>> payloads,
                         base::ThreadTeam& team, const WriteProgress& progress) {
    CHECK(payloads.size() == index.entries.size(), "every entry has its bytes");
    for (std::size_t number = 0; number < payloads.size(); ++number) {
        index.entries[number].bytes = payloads[number].size();
        index.entries[number].checksum = checksum(payloads[number], team);
    }
    if (Status placed = place_packed_entries(index); !placed) return placed;
    const std::string folder = std::filesystem::path(path).parent_path().string();
    if (!folder.empty()) {
        std::error_code problem;
        std::filesystem::create_directories(folder, problem);
        if (problem) return refused(folder, "create the folder", problem.value());
    }
    remove_unfinished_packed_files(folder.empty() ? "." : folder);
    Result<UnfinishedFile> file = UnfinishedFile::create(path);
    if (!file) return file.error();
    if (Status done = file->reserve(index.file_bytes); !done) return done;
    if (Status done = file->write(encode_packed_index(index)); !done) return done;
    std::uint64_t bytes_written = index.index_bytes;
    for (const std::span<const std::byte> payload : payloads) {
        const auto report = [&](std::size_t bytes) {
            bytes_written += bytes;
            if (progress) progress(bytes_written, index.file_bytes);
        };
        if (Status done = write_payload(*file, payload, report); !done) return done;
    }
    return file->finish(path);
}

void remove_unfinished_packed_files(const std::string& folder) {
    std::error_code problem;
    for (std::filesystem::directory_iterator entry(folder, problem), end; !problem && entry != end;
         entry.increment(problem)) {
        const std::string name = entry->path().filename().string();
        if (!name.ends_with(kUnfinished) || name.find(kPacked) == std::string::npos) continue;
        const int descriptor =
            ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (descriptor < 0) continue;
        struct stat status = {};
        if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
            ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            ::unlink(entry->path().c_str());
        ::close(descriptor);
    }
}

}  // namespace pagoda::formats
