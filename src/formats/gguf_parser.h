#pragma once
// Reads the bytes of one GGUF file. Every number in them is taken as hostile: all arithmetic is
// checked, and nothing is allocated that the remaining bytes could not fill. Pure; thread-safe.

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {

// The tensors' data borrow `bytes`; everything else is copied. `label` names the file in errors,
// which are one line: file, key or tensor, reason.
[[nodiscard]] base::Result<GgufFile> parse_gguf(std::span<const std::byte> bytes,
                                                std::string_view label);

}  // namespace pagoda::formats
