#pragma once
// Readers of the architectures' hyperparameters, one file each, and what they share.

#include "base/result.h"
#include "formats/checkpoint.h"
#include "model/decoder_spec.h"

namespace pagoda::model::arch {

[[nodiscard]] base::Result<DecoderSpec> read_llama(const formats::Checkpoint& checkpoint);
[[nodiscard]] base::Result<DecoderSpec> read_qwen2(const formats::Checkpoint& checkpoint);
[[nodiscard]] base::Result<DecoderSpec> read_qwen3(const formats::Checkpoint& checkpoint);
[[nodiscard]] base::Result<DecoderSpec> read_gemma2(const formats::Checkpoint& checkpoint);
[[nodiscard]] base::Result<DecoderSpec> read_gemma3(const formats::Checkpoint& checkpoint);

// The sizes that every decoder has: layers (all alike, full attention, rope 0), hidden, heads,
// vocabulary, epsilon, one RopeSpec with its scaling. Contradictions are errors that name the key.
[[nodiscard]] base::Result<DecoderSpec> read_sizes(const formats::Checkpoint& checkpoint,
                                                   kernels::RopeStyle style);

// A hyperparameter as a number, or `fallback` when the file has none.
[[nodiscard]] base::Result<std::int64_t> int_or(const formats::Checkpoint& checkpoint,
                                                std::string_view key, std::int64_t fallback);
[[nodiscard]] base::Result<double> float_or(const formats::Checkpoint& checkpoint,
                                            std::string_view key, double fallback);

}  // namespace pagoda::model::arch
