#include "formats/mapped_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pagoda::formats {
namespace {

constexpr int kMaxGuardedFiles = 1024;
constexpr std::size_t kMaxGuardedPath = 480;

// A mapping as the signal handler sees it. `begin` is written last and cleared first, so that a
// slot with a begin is whole.
struct GuardSlot {
    std::atomic<bool> is_taken{false};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uintptr_t> end{0};
    char path[kMaxGuardedPath] = {};
};

std::array<GuardSlot, kMaxGuardedFiles> guard_slots;

int guard_mapping(const std::string& path, const std::byte* data, std::size_t size) {
    for (int index = 0; index < kMaxGuardedFiles; ++index) {
        GuardSlot& slot = guard_slots[static_cast<std::size_t>(index)];
        if (slot.is_taken.exchange(true)) continue;
        // The end of a long path says more than its start.
        const std::size_t length = std::min(path.size(), kMaxGuardedPath - 1);
        std::memcpy(slot.path, path.data() + (path.size() - length), length);
        slot.path[length] = '\0';
        const auto begin = reinterpret_cast<std::uintptr_t>(data);
        slot.end.store(begin + size);
        slot.begin.store(begin);
        return index;
    }
    return -1;
}

void unguard_mapping(int index) {
    if (index < 0) return;
    GuardSlot& slot = guard_slots[static_cast<std::size_t>(index)];
    slot.begin.store(0);
    slot.is_taken.store(false);
}

const char* path_of_mapping(std::uintptr_t address) {
    for (const GuardSlot& slot : guard_slots) {
        const std::uintptr_t begin = slot.begin.load();
        if (begin != 0 && address >= begin && address < slot.end.load()) return slot.path;
    }
    return nullptr;
}

void write_stderr(const char* text) {
    std::size_t left = std::strlen(text);
    while (left > 0) {
        const ssize_t written = ::write(STDERR_FILENO, text, left);
        if (written <= 0) return;
        text += written;
        left -= static_cast<std::size_t>(written);
    }
}

// Only calls that are safe in a signal handler.
void on_bus_error(int signal, siginfo_t* details, void* /*context*/) {
    const char* path = path_of_mapping(reinterpret_cast<std::uintptr_t>(details->si_addr));
    if (path == nullptr) {
        // Not ours: with the default action back in place, the fault repeats and ends the process.
        struct sigaction default_action = {};
        default_action.sa_handler = SIG_DFL;
        ::sigaction(signal, &default_action, nullptr);
        return;
    }
    write_stderr("pagoda: ");
    write_stderr(path);
    write_stderr(
        " was truncated or could not be read while in use: a part that is needed is gone\n");
    ::_exit(1);
}

base::Error system_error(const std::string& path, const char* action) {
    const int number = errno;
    return base::Error{number == ENOENT ? base::ErrorCode::kNotFound : base::ErrorCode::kIo,
                       fmt::format("{}: cannot {}: {}", path, action, std::strerror(number)), path};
}

// A descriptor that closes itself.
class Descriptor final {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int number() const { return number_; }

  private:
    int number_;
};

}  // namespace

base::Result<MappedFile> MappedFile::open(const std::string& path) {
    // Not blocking, so that a named pipe is refused instead of waited for.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.number() < 0) return system_error(path, "open");
    struct stat status = {};
    if (::fstat(file.number(), &status) != 0) return system_error(path, "examine");
    if (!S_ISREG(status.st_mode)) {
        const char* what = S_ISDIR(status.st_mode) ? "a directory" : "no regular file";
        return base::invalid(fmt::format("{}: is {}; give a model file", path, what), path);
    }
    if (status.st_size == 0)
        return base::Error{base::ErrorCode::kDataLoss, fmt::format("{}: the file is empty", path),
                           path};
    const auto size = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
    if (data == MAP_FAILED) return system_error(path, "map into memory");
    return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(std::string path, const std::byte* data, std::size_t size)
    : path_(std::move(path)),
      data_(data),
      size_(size),
      guard_slot_(guard_mapping(path_, data, size)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      guard_slot_(std::exchange(other.guard_slot_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(guard_slot_, other.guard_slot_);
    return *this;
}

MappedFile::~MappedFile() {
    if (data_ == nullptr) return;
    unguard_mapping(guard_slot_);
    ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(const std::byte* data, std::size_t bytes) const {
    const auto file_begin = reinterpret_cast<std::uintptr_t>(data_);
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    if (begin < file_begin || begin - file_begin > size_ || bytes > size_ - (begin - file_begin))
        return;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = (begin + page - 1) / page * page;
    // The file's last page may go as a whole: nobody else's bytes follow in it.
    const bool is_to_the_end = begin + bytes == file_begin + size_;
    const std::uintptr_t last = (begin + bytes + (is_to_the_end ? page - 1 : 0)) / page * page;
    if (first >= last) return;
    static_cast<void>(::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED));
}

void install_truncation_guard() {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace pagoda::formats
