#pragma once
// ByteReader: little-endian numbers and length-prefixed strings from bytes of unknown quality. A
// read past the end gives nothing and moves nothing. Borrows the bytes; not thread-safe.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace pagoda::formats {

static_assert(std::endian::native == std::endian::little);

class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] std::size_t position() const { return position_; }
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - position_; }

    template <class T>
    [[nodiscard]] std::optional<T> read() {
        static_assert(std::is_arithmetic_v<T>);
        if (remaining() < sizeof(T)) return std::nullopt;
        T value;
        std::memcpy(&value, bytes_.data() + position_, sizeof(T));
        position_ += sizeof(T);
        return value;
    }
    [[nodiscard]] std::optional<std::span<const std::byte>> read_bytes(std::uint64_t count) {
        if (count > remaining()) return std::nullopt;
        const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(count));
        position_ += taken.size();
        return taken;
    }

  private:
    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
};

}  // namespace pagoda::formats
