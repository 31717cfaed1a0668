#include "model/weights.h"

#include <optional>
#include <unordered_set>

#include <fmt/core.h>

namespace pagoda::model {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using formats::Checkpoint;
using formats::CheckpointTensor;

constexpr std::string_view kHead = "output";

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t extent : shape)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
    return "[" + text + "]";
}

// Rounding the inputs of q, k, v and of the head costs the most quality (docs/performance.md).
kernels::Rounding rounding_of(std::string_view stem) {
    const bool is_sensitive = stem.ends_with("attn_q") || stem.ends_with("attn_k") ||
                              stem.ends_with("attn_v") || stem == kHead;
    return is_sensitive ? kernels::Rounding::kTwice : kernels::Rounding::kOnce;
}

bool is_weight_type(tensor::DType dtype) {
    return tensor::info(dtype).is_quantized || dtype == tensor::DType::kF32 ||
           dtype == tensor::DType::kF16 || dtype == tensor::DType::kBF16;
}

// Finds tensors, checks them, and remembers which were used. The first fault is kept, ends all
// further work and comes out of finish(). Without a device it only measures.
class Binder {
  public:
    Binder(const Checkpoint& checkpoint, const kernels::Kernels& table)
        : checkpoint_(checkpoint), table_(table) {}
    // Packs into the arena, which has what another Binder measured.
    Binder(const Checkpoint& checkpoint, const kernels::DeviceContext& device,
           kernels::WeightArena& arena, const LoadProgress& progress)
        : checkpoint_(checkpoint),
          table_(*device.kernels),
          device_(&device),
          arena_(&arena),
          progress_(progress),
          total_(checkpoint.tensor_bytes()) {}

    LinearWeight linear(const std::string& stem, std::int64_t out, std::int64_t in, Presence bias) {
        LinearWeight weight;
        const CheckpointTensor* tensor = find(stem + ".weight", {out, in}, Presence::kAlways);
        if (tensor != nullptr) weight.weight = pack(*tensor, rounding_of(stem));
        weight.bias = vector(stem + ".bias", out, bias);
        return weight;
    }

    kernels::Weight pack(const CheckpointTensor& tensor, kernels::Rounding rounding) {
        if (fault_) return {};
        if (auto supported = kernels::supports_weight(table_, tensor.view); !supported) {
            const std::string reason = std::move(supported).error().message;
            refuse(ErrorCode::kUnsupported, tensor, reason);
            return {};
        }
        const std::size_t bytes = kernels::packed_weight_bytes(table_, tensor.view);
        arena_bytes_ += kernels::WeightArena::padded(bytes);
        if (device_ == nullptr) return {};
        kernels::Weight weight(*device_, tensor.view, arena_->take(bytes), rounding);
        done_ += tensor.view.bytes;
        if (checkpoint_.storage) checkpoint_.storage->release(tensor.view.data, tensor.view.bytes);
        if (progress_) progress_(done_, total_);
        return weight;
    }

    // A small tensor as floats, whatever its type.
    Vector vector(const std::string& name, std::int64_t size, Presence presence) {
        const CheckpointTensor* tensor = find(name, {size}, presence);
        if (tensor == nullptr || fault_) return {};
        vector_bytes_ += static_cast<std::uint64_t>(size) * sizeof(float);
        if (device_ == nullptr) return {};
        Vector values(static_cast<std::size_t>(size));
        table_.dequantize({.dtype = tensor->view.dtype,
                           .source = tensor->view.data,
                           .rows = 1,
                           .cols = size,
                           .out = values.data()});
        done_ += tensor->view.bytes;
        return values;
    }

    // The tensor of that name and shape; null when it is absent or at fault.
    const CheckpointTensor* find(const std::string& name, const std::vector<std::int64_t>& shape,
                                 Presence presence) {
        if (presence == Presence::kNever) return nullptr;
        const CheckpointTensor* tensor = checkpoint_.find_tensor(name);
        if (tensor == nullptr) {
            if (presence == Presence::kAlways)
                refuse(Error{ErrorCode::kDataLoss,
                             fmt::format("{}: tensor {} is missing", checkpoint_.path, name),
                             name});
            return nullptr;
        }
        used_.insert(tensor);
        if (tensor->view.shape != shape) {
            refuse(ErrorCode::kDataLoss, *tensor,
                   fmt::format("has shape {}, the hyperparameters say {}",
                               shape_text(tensor->view.shape), shape_text(shape)));
            return nullptr;
        }
        if (!is_weight_type(tensor->view.dtype)) {
            refuse(ErrorCode::kUnsupported, *tensor,
                   fmt::format("holds {} values; weights are F32, F16, BF16 or block-quantised",
                               tensor::info(tensor->view.dtype).name));
            return nullptr;
        }
        return tensor;
    }

    void refuse(Error error) {
        if (!fault_) fault_ = std::move(error);
    }
    void refuse(ErrorCode code, const CheckpointTensor& tensor, const std::string& reason) {
        refuse(Error{code, fmt::format("{}: tensor {} {}", tensor.file, tensor.name, reason),
                     tensor.name});
    }

    // The first fault; or a tensor that played no part.
    [[nodiscard]] Status finish() {
        for (const CheckpointTensor& tensor : checkpoint_.tensors) {
            if (!used_.contains(&tensor))
                refuse(ErrorCode::kUnsupported, tensor,
                       fmt::format("has no place in a {} model as it is known here",
                                   checkpoint_.architecture));
        }
        if (fault_) return *fault_;
        return {};
    }

    [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
    [[nodiscard]] std::uint64_t arena_bytes() const { return arena_bytes_; }
    [[nodiscard]] std::uint64_t bytes() const { return arena_bytes_ + vector_bytes_; }

  private:
    const Checkpoint& checkpoint_;
    const kernels::Kernels& table_;
    const kernels::DeviceContext* device_ = nullptr;  // null: measure only
    kernels::WeightArena* arena_ = nullptr;
    LoadProgress progress_;
    std::uint64_t done_ = 0, total_ = 0;                // of the file
    std::uint64_t arena_bytes_ = 0, vector_bytes_ = 0;  // packed
    std::unordered_set<const CheckpointTensor*> used_;
    std::optional<Error> fault_;
};

void bind_attention(Binder& binder, const DecoderSpec& spec, const std::string& prefix,
                    LayerWeights& layer) {
    const std::int64_t q_size = spec.heads * spec.head_dim;
    const std::int64_t kv_size = spec.kv_heads * spec.head_dim;
    layer.attention_norm =
        binder.vector(prefix + "attn_norm.weight", spec.hidden, Presence::kAlways);
    layer.q = binder.linear(prefix + "attn_q", q_size, spec.hidden, spec.qkv_bias);
    layer.k = binder.linear(prefix + "attn_k", kv_size, spec.hidden, spec.qkv_bias);
    layer.v = binder.linear(prefix + "attn_v", kv_size, spec.hidden, spec.qkv_bias);
    layer.output = binder.linear(prefix + "attn_output", spec.hidden, q_size, spec.output_bias);
    layer.q_norm = binder.vector(prefix + "attn_q_norm.weight", spec.head_dim, spec.qk_norm);
    layer.k_norm = binder.vector(prefix + "attn_k_norm.weight", spec.head_dim, spec.qk_norm);
    layer.post_attention_norm =
        binder.vector(prefix + "post_attention_norm.weight", spec.hidden, spec.post_norms);
}

void bind_mlp(Binder& binder, const DecoderSpec& spec, const std::string& prefix,
              LayerWeights& layer) {
    layer.ffn_norm = binder.vector(prefix + "ffn_norm.weight", spec.hidden, Presence::kAlways);
    layer.gate = binder.linear(prefix + "ffn_gate", spec.ffn, spec.hidden, spec.mlp_bias);
    layer.up = binder.linear(prefix + "ffn_up", spec.ffn, spec.hidden, spec.mlp_bias);
    layer.down = binder.linear(prefix + "ffn_down", spec.hidden, spec.ffn, spec.mlp_bias);
    layer.post_ffn_norm =
        binder.vector(prefix + "post_ffw_norm.weight", spec.hidden, spec.post_norms);
}

Vector bind_rope_divisors(Binder& binder, const DecoderSpec& spec) {
    constexpr float kLeast = 1e-3F;  // below it angles leave double precision
    constexpr float kMost = 1e9F;
    constexpr const char* kName = "rope_freqs.weight";
    Vector divisors = binder.vector(kName, spec.ropes.front().rotary_dim / 2, Presence::kOptional);
    for (const float divisor : divisors) {
        if (divisor >= kLeast && divisor <= kMost) continue;
        binder.refuse(Error{ErrorCode::kDataLoss,
                            fmt::format("{}: tensor {} holds {}, must be between {} and {}",
                                        binder.checkpoint().path, kName, divisor, kLeast, kMost),
                            kName});
    }
    return divisors;
}

DecoderWeights bind_all(Binder& binder, const DecoderSpec& spec) {
    DecoderWeights weights;
    const CheckpointTensor* embedding =
        binder.find("token_embd.weight", {spec.vocab, spec.hidden}, Presence::kAlways);
    if (embedding != nullptr) weights.embedding = embedding->view;
    weights.layers.resize(spec.layers.size());
    for (std::size_t number = 0; number < spec.layers.size(); ++number) {
        const std::string prefix = fmt::format("blk.{}.", number);
        bind_attention(binder, spec, prefix, weights.layers[number]);
        bind_mlp(binder, spec, prefix, weights.layers[number]);
    }
    weights.output_norm = binder.vector("output_norm.weight", spec.hidden, Presence::kAlways);
    weights.rope_divisors = bind_rope_divisors(binder, spec);
    const CheckpointTensor* head =
        binder.find("output.weight", {spec.vocab, spec.hidden}, Presence::kOptional);
    if (head == nullptr) head = embedding;  // tied
    if (head != nullptr) weights.head.weight = binder.pack(*head, rounding_of(kHead));
    return weights;
}

}  // namespace

base::Result<DecoderWeights> load_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                          const kernels::DeviceContext& device,
                                          const LoadProgress& progress) {
    Binder measured(checkpoint, *device.kernels);
    static_cast<void>(bind_all(measured, spec));
    if (auto status = measured.finish(); !status) return std::move(status).error();
    auto arena = kernels::WeightArena::try_allocate(measured.arena_bytes());
    if (!arena)
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("{}: the system does not give the {} bytes of the packed weights",
                                 checkpoint.path, measured.arena_bytes()),
                     {}};
    Binder binder(checkpoint, device, *arena, progress);
    DecoderWeights weights = bind_all(binder, spec);
    if (auto status = binder.finish(); !status) return std::move(status).error();
    weights.arena = std::move(arena);
    return weights;
}

base::Result<std::uint64_t> measure_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                            const kernels::Kernels& kernels) {
    Binder binder(checkpoint, kernels);
    static_cast<void>(bind_all(binder, spec));
    if (auto status = binder.finish(); !status) return std::move(status).error();
    return binder.bytes();
}

}  // namespace pagoda::model
