#pragma once
// MappedFile: a file as read-only memory, for as long as the object lives. Move-only; reading is
// thread-safe.
//
// A file that another program shortens while it is mapped kills the reader with SIGBUS at the next
// touch of a lost page. The truncation guard turns that into one line and exit status 1. Every live
// mapping is entered in a process-wide table for it: a signal handler can be given no context.

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace pagoda::formats {

class MappedFile {
  public:
    // Refuses what is no regular file, and an empty one. Errors name the path.
    [[nodiscard]] static base::Result<MappedFile> open(const std::string& path);

    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
    [[nodiscard]] const std::string& path() const { return path_; }
    // Drops whole pages inside the range from this process's memory; a later read brings them back.
    void release(const std::byte* data, std::size_t bytes) const;

  private:
    MappedFile(std::string path, const std::byte* data, std::size_t size);

    std::string path_;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    int guard_slot_ = -1;  // place in the guard's table, -1 when it was full
};

// Handles SIGBUS inside mapped files from now on: prints "PATH was truncated or could not be read
// while in use" and exits with status 1. Any other SIGBUS keeps its default effect. Called once by
// main().
void install_truncation_guard();

}  // namespace pagoda::formats
