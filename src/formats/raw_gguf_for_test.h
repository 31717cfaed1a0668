#pragma once
// RawGguf: the bytes of a GGUF file without any check, for tests that need a file no writer would
// make.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "formats/gguf_types.h"

namespace pagoda::formats {

class RawGguf {
  public:
    RawGguf& header(std::uint32_t version, std::uint64_t num_tensors, std::uint64_t num_entries) {
        for (const char letter : kGgufMagic) put(letter);
        return put(version).put(num_tensors).put(num_entries);
    }
    template <class T>
    RawGguf& put(T value) {
        static_assert(std::is_arithmetic_v<T>);
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof(T));
        std::memcpy(bytes_.data() + at, &value, sizeof(T));
        return *this;
    }
    RawGguf& text(std::string_view value) {
        put<std::uint64_t>(value.size());
        for (const char letter : value) put(letter);
        return *this;
    }
    RawGguf& key(std::string_view name, GgufType type) {
        return text(name).put(static_cast<std::uint32_t>(type));
    }
    RawGguf& string_entry(std::string_view name, std::string_view value) {
        return key(name, GgufType::kString).text(value);
    }
    RawGguf& u32_entry(std::string_view name, std::uint32_t value) {
        return key(name, GgufType::kUint32).put(value);
    }
    // One F32 row of `values` at `offset`.
    RawGguf& row(std::string_view name, std::uint64_t values, std::uint64_t offset) {
        return text(name).put<std::uint32_t>(1).put(values).put<std::uint32_t>(0).put(offset);
    }
    RawGguf& pad(std::size_t multiple = 32) {
        while (bytes_.size() % multiple != 0) put('\0');
        return *this;
    }
    RawGguf& zeros(std::size_t count) {
        bytes_.resize(bytes_.size() + count);
        return *this;
    }
    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

}  // namespace pagoda::formats
