#pragma once
// Readers of the architectures' hyperparameters, one file each, and what they share. Faults are
// recorded in the Hyperparameters; a spec is valid only when its finish() succeeds.

#include "model/arch/hyperparameters.h"
#include "model/decoder_spec.h"

namespace pagoda::model::arch {

[[nodiscard]] DecoderSpec read_llama(Hyperparameters& keys);
[[nodiscard]] DecoderSpec read_qwen2(Hyperparameters& keys);
[[nodiscard]] DecoderSpec read_qwen3(Hyperparameters& keys);
[[nodiscard]] DecoderSpec read_gemma2(Hyperparameters& keys);
[[nodiscard]] DecoderSpec read_gemma3(Hyperparameters& keys);

// The sizes that every decoder has: layers (all alike, full attention, rope 0), hidden, heads,
// vocabulary, epsilon, one RopeSpec with its scaling. `other_base`: see read_rope().
[[nodiscard]] DecoderSpec read_sizes(Hyperparameters& keys, kernels::RopeStyle style,
                                     std::string_view other_base = {});

// rope.*: how `head_dim` dimensions are rotated, with the scaling of a model of that context.
// `other_base` is another key that some files have in place of rope.freq_base; empty: none.
[[nodiscard]] RopeSpec read_rope(Hyperparameters& keys, const DecoderSpec& sizes,
                                 kernels::RopeStyle style, std::string_view other_base);

inline constexpr FloatRange kFreqBase = {1.0, 1e12};

// attention.sliding_window: 0 when there is none, or when it covers the whole context.
[[nodiscard]] std::int64_t read_window(Hyperparameters& keys, std::int64_t context_length);

// The largest context a file may claim; damaged and hostile files claim more.
inline constexpr std::int64_t kMaxContext = std::int64_t{1} << 31;

}  // namespace pagoda::model::arch
