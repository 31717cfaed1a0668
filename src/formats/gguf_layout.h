#pragma once
// Where the tensors of a GGUF file lie, and whether they can lie there. Pure; thread-safe. Errors
// name the tensor, not the file.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {

// A tensor as its header describes it.
struct TensorPlace {
    GgufTensor tensor;         // data still empty
    std::uint64_t offset = 0;  // from the start of the data section
    std::uint64_t bytes = 0;
};

// Fills shape and bytes from the extents as stored, innermost first.
[[nodiscard]] base::Status measure(std::span<const std::uint64_t> extents, TensorPlace& place);

// Points every tensor at its bytes. The data section starts after `header_bytes`, aligned. Refuses
// names that occur twice, tensors that are misaligned, overlap or reach beyond the end, and bytes
// after the last one.
[[nodiscard]] base::Result<std::vector<GgufTensor>> lay_out_tensors(
    std::span<const std::byte> file, std::size_t header_bytes, std::uint64_t alignment,
    std::vector<TensorPlace> places);

// A name that occurs more than once. In O(n log n) for any names.
[[nodiscard]] std::optional<std::string_view> find_duplicate(std::vector<std::string_view> names);

}  // namespace pagoda::formats
