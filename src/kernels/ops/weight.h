#pragma once
// Weight: a matrix packed for the kernels, once, at load. WeightArena: the memory of a model's
// weights. Engine thread only.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "kernels/ops/device_context.h"
#include "tensor/aligned_buffer.h"
#include "tensor/tensor_view.h"

namespace pagoda::kernels {

// How finely int8 activations are rounded where they meet a weight.
enum class Rounding : std::uint8_t {
    kOnce,
    // What the first rounding lost is rounded to int8 again and multiplied in a second pass over
    // the same cached tile. For the layers whose inputs cost the most quality in small models
    // (README.md); above kMaxTwiceRoundedInputs inputs it is the same as kOnce.
    kTwice,
};
inline constexpr std::int64_t kMaxTwiceRoundedInputs = 1024;

// Error that names the value and the limit when a weight of that type and size can't be packed.
[[nodiscard]] base::Status supports_weight(const Kernels& kernels,
                                           const tensor::TensorView& source);
// Bytes a Weight of that source takes, for planning.
[[nodiscard]] std::size_t packed_weight_bytes(const Kernels& kernels,
                                              const tensor::TensorView& source);

// One mapping for many weights, so that small ones too lie in 2 MiB pages; a page comes into being
// when the thread that packs it, which is the one that will multiply it, first writes it.
class WeightArena {
  public:
    // Nothing where the system doesn't give the memory.
    [[nodiscard]] static std::optional<WeightArena> try_allocate(std::size_t bytes);
    // What a weight of that many packed bytes takes of the arena.
    [[nodiscard]] static std::size_t padded(std::size_t bytes);

    // The next `bytes`, zeroed, on a line of the cache. REQUIRES: there are padded(bytes) left.
    [[nodiscard]] std::span<std::byte> take(std::size_t bytes);
    [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

  private:
    explicit WeightArena(tensor::AlignedBuffer memory) : memory_(std::move(memory)) {}

    tensor::AlignedBuffer memory_;
    std::size_t used_ = 0;
};

class Weight {
  public:
    Weight() = default;
    // source: [out, in]. Packs on all threads. REQUIRES: a type and K that supports_weight().
    Weight(const DeviceContext& device, const tensor::TensorView& source,
           Rounding rounding = Rounding::kOnce);
    // The same in borrowed memory: packed_weight_bytes() of an arena that outlives the weight.
    Weight(const DeviceContext& device, const tensor::TensorView& source,
           std::span<std::byte> memory, Rounding rounding = Rounding::kOnce);

    // Packs nothing: `packed` holds what packing `source` with these kernels gave, and outlives the
    // weight. Of the source only type and shape are looked at.
    [[nodiscard]] static Weight adopt(const DeviceContext& device, const tensor::TensorView& source,
                                      std::span<const std::byte> packed, Rounding rounding);

    [[nodiscard]] bool empty() const { return view_.data == nullptr; }
    [[nodiscard]] const PackedWeightView& view() const { return view_; }
    [[nodiscard]] std::int64_t out_features() const { return view_.out_features; }
    [[nodiscard]] std::int64_t in_features() const { return view_.in_features; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] Rounding rounding() const { return rounding_; }

  private:
    tensor::AlignedBuffer own_;  // empty: borrowed
    PackedWeightView view_;
    std::size_t bytes_ = 0;
    Rounding rounding_ = Rounding::kOnce;
};

// Whether a weight meets activations as int8 groups, and whether in two passes.
[[nodiscard]] bool takes_int8(const DeviceContext& device, const Weight& weight);
// Whether a weight meets activations rounded to bf16 (Kernels::linear_bf16).
[[nodiscard]] bool takes_bf16(const DeviceContext& device, const Weight& weight);
[[nodiscard]] bool rounds_twice(const DeviceContext& device, const Weight& weight);

}  // namespace pagoda::kernels
