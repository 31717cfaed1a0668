#pragma once
// DecoderSpec: what a decoder-only transformer is made of, as numbers. An architecture
// (arch/x.cpp) reads one from a checkpoint's hyperparameters; model.cpp runs any of them with one
// set of layers. Plain data.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/args.h"

namespace pagoda::model {

enum class RopeScalingKind : std::uint8_t { kNone, kLinear, kYarn };

// Scaling of rotary frequencies. llama3's arrives as one divisor per frequency in the tensor
// rope_freqs.weight, beside kNone.
struct RopeScaling {
    RopeScalingKind kind = RopeScalingKind::kNone;
    double factor = 1.0;
    double original_context = 0;  // YaRN: positions of the original training
    double attention_factor = 1.0;
    double beta_fast = 32.0, beta_slow = 1.0;  // YaRN, section 3.2 of arXiv:2309.00071
};

struct RopeSpec {
    kernels::RopeStyle style = kernels::RopeStyle::kHalves;
    std::int64_t rotary_dim = 0;
    double freq_base = 10000.0;
    RopeScaling scaling;
    bool has_divisors = true;  // those of rope_freqs.weight, where the file has them
};

struct LayerSpec {
    std::int64_t window = 0;  // tokens that attention looks back on; 0: all
    std::size_t rope = 0;     // index into DecoderSpec::ropes
};

enum class Presence : std::uint8_t { kNever, kOptional, kAlways };

struct DecoderSpec {
    std::string architecture;
    std::int64_t hidden = 0;
    std::int64_t ffn = 0;
    std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
    std::int64_t vocab = 0;
    std::int64_t context_length = 0;
    float norm_epsilon = 0;
    kernels::GateKind activation = kernels::GateKind::kSilu;
    Presence qkv_bias = Presence::kNever;
    Presence output_bias = Presence::kNever;  // of attention's output
    Presence mlp_bias = Presence::kNever;
    Presence qk_norm = Presence::kNever;     // RMS norm of each head of q and k
    Presence post_norms = Presence::kNever;  // norms after attention and MLP, before the residual
    float embedding_scale = 1.0F;
    float attention_scale = 0;  // of q.k
    float attention_soft_cap = 0;
    float final_soft_cap = 0;
    std::vector<RopeSpec> ropes;
    std::vector<LayerSpec> layers;

    [[nodiscard]] std::int64_t num_layers() const {
        return static_cast<std::int64_t>(layers.size());
    }
};

// Layers that share a block table: all of one window size.
struct KvGroup {
    std::int64_t window = 0;
    std::vector<std::int64_t> layers;
};
[[nodiscard]] std::vector<KvGroup> kv_groups(const DecoderSpec& spec);

// Cosines and sines of one RopeSpec for given positions.
class RopeTable {
  public:
    // divisors: [rotary_dim / 2] of rope_freqs.weight, or empty.
    RopeTable(const RopeSpec& spec, const std::vector<float>& divisors);
    // Writes rotary_dim / 2 cosines and sines of a position (attention_factor included).
    void write(std::int64_t position, float* cos, float* sin) const;
    [[nodiscard]] std::int64_t pairs() const {
        return static_cast<std::int64_t>(frequencies_.size());
    }

  private:
    std::vector<double> frequencies_;  // radians per position
    double magnitude_;
};

}  // namespace pagoda::model
