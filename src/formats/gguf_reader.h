#pragma once
// A GGUF model as a Checkpoint: one file, or the parts of a split one, mapped into memory.
// Thread-safe.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "formats/checkpoint.h"

namespace pagoda::formats {

// From the first or only file of a model.
[[nodiscard]] base::Result<Checkpoint> open_gguf(const std::string& path);

// From the bytes of a whole, unsplit file, which must outlive the checkpoint: its storage is null.
[[nodiscard]] base::Result<Checkpoint> checkpoint_from_gguf(std::span<const std::byte> bytes,
                                                            const std::string& path);

}  // namespace pagoda::formats
