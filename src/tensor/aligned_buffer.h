#pragma once
// AlignedBuffer: owned, zeroed memory on a 64-byte boundary; large ones are mapped and ask for 2
// MiB pages, and their pages come into being when first touched. Move-only; not thread-safe.

#include <cstddef>
#include <optional>
#include <span>

namespace pagoda::tensor {

class AlignedBuffer {
  public:
    static constexpr std::size_t kAlignment = 64;

    AlignedBuffer() = default;
    // Aborts when the system has no memory: sizes are planned before.
    explicit AlignedBuffer(std::size_t bytes);
    // For what is so large that a limit of the system (RLIMIT_AS, vm.overcommit_memory=2) may
    // refuse it though the plan allows it: nothing when it does.
    [[nodiscard]] static std::optional<AlignedBuffer> try_allocate(std::size_t bytes);
    ~AlignedBuffer();
    AlignedBuffer(AlignedBuffer&& other) noexcept;
    AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
    AlignedBuffer(const AlignedBuffer&) = delete;
    AlignedBuffer& operator=(const AlignedBuffer&) = delete;

    [[nodiscard]] std::byte* data() { return data_; }
    [[nodiscard]] const std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    // The memory as values of a trivial type.
    template <class T>
    [[nodiscard]] std::span<T> as() {
        return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
    }
    template <class T>
    [[nodiscard]] std::span<const T> as() const {
        return {reinterpret_cast<const T*>(data_), bytes_ / sizeof(T)};
    }

  private:
    // Takes the memory; false when there is none.
    [[nodiscard]] bool take(std::size_t bytes);

    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool mapped_ = false;
};

}  // namespace pagoda::tensor
