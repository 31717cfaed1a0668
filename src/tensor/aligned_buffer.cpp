#include "tensor/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>

#include "base/check.h"

namespace pagoda::tensor {
namespace {

// From here on a buffer is a mapping of its own, which can have 2 MiB pages and gives its memory
// back to the system when freed.
constexpr std::size_t kMinMappedBytes = std::size_t{4} << 20;

std::byte* map_zeroed(std::size_t bytes) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    // A wish only: without huge pages the memory is as good, just slower to walk.
    static_cast<void>(::madvise(memory, bytes, MADV_HUGEPAGE));
    return static_cast<std::byte*>(memory);
}

std::byte* allocate_zeroed(std::size_t bytes) {
    const std::size_t padded = (bytes + AlignedBuffer::kAlignment - 1) / AlignedBuffer::kAlignment *
                               AlignedBuffer::kAlignment;
    void* memory = std::aligned_alloc(AlignedBuffer::kAlignment, padded);
    if (memory != nullptr) std::memset(memory, 0, padded);
    return static_cast<std::byte*>(memory);
}

}  // namespace

bool AlignedBuffer::take(std::size_t bytes) {
    if (bytes == 0) return true;
    const bool is_mapped = bytes >= kMinMappedBytes;
    std::byte* const memory = is_mapped ? map_zeroed(bytes) : allocate_zeroed(bytes);
    if (memory == nullptr) return false;
    data_ = memory;
    bytes_ = bytes;
    mapped_ = is_mapped;
    return true;
}

AlignedBuffer::AlignedBuffer(std::size_t bytes) {
    const bool is_taken = take(bytes);
    CHECK(is_taken, fmt::format("no memory for a buffer of {} bytes", bytes));
}

std::optional<AlignedBuffer> AlignedBuffer::try_allocate(std::size_t bytes) {
    AlignedBuffer buffer;
    if (!buffer.take(bytes)) return std::nullopt;
    return buffer;
}

AlignedBuffer::~AlignedBuffer() {
    if (mapped_) {
        ::munmap(data_, bytes_);
    } else {
        std::free(data_);
    }
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, false)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

}  // namespace pagoda::tensor
