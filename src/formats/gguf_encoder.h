#pragma once
// The header of a GGUF file, from magic to padding, as bytes. Pure; thread-safe.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {

struct GgufHeader {
    std::vector<std::byte> bytes;             // a multiple of the alignment
    std::vector<std::uint64_t> tensor_bytes;  // of each tensor, without padding
};

// Tensors are placed one after the other, each at the next multiple of the alignment. Their data
// are not looked at. Errors name key or tensor.
[[nodiscard]] base::Result<GgufHeader> encode_gguf_header(const GgufFile& file);

}  // namespace pagoda::formats
