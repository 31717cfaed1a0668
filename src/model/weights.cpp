#include "model/weights.h"

#include <optional>
#include <unordered_set>

#include <fmt/core.h>

#include "base/clock.h"
#include "model/packed_cache.h"

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

    // From now on the packed bytes come from a file that has just these weights in this order.
    void read_from(const formats::PackedFile& file) { file_ = &file; }

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
        entries_.push_back({.name = tensor.name,
                            .dtype = tensor.view.dtype,
                            .rows = tensor.view.rows(),
                            .cols = tensor.view.cols(),
                            .bytes = bytes});
        if (device_ == nullptr) return {};
        const std::span<std::byte> memory = arena_->take(bytes);
        payloads_.emplace_back(memory);
        kernels::Weight weight = file_ == nullptr
                                     ? kernels::Weight(*device_, tensor.view, memory, rounding)
                                     : read(tensor, memory, rounding);
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
    // What was packed, or would be, in order.
    [[nodiscard]] const std::vector<formats::PackedEntry>& entries() const { return entries_; }
    [[nodiscard]] const std::vector<std::span<const std::byte>>& payloads() const {
        return payloads_;
    }
    // Why the packed file turned out to be of no use.
    [[nodiscard]] const std::optional<Error>& file_fault() const { return file_fault_; }
    [[nodiscard]] std::uint64_t arena_bytes() const { return arena_bytes_; }
    [[nodiscard]] std::uint64_t bytes() const { return arena_bytes_ + vector_bytes_; }

  private:
    kernels::Weight read(const CheckpointTensor& tensor, std::span<std::byte> memory,
                         kernels::Rounding rounding) {
        const std::size_t number = entries_.size() - 1;
        if (Status done = file_->read(number, memory, *device_->team); !done) {
            file_fault_ = done.error();
            refuse(std::move(done).error());
            return {};
        }
        return kernels::Weight::adopt(*device_, tensor.view, memory, rounding);
    }

    const Checkpoint& checkpoint_;
    const kernels::Kernels& table_;
    const kernels::DeviceContext* device_ = nullptr;  // null: measure only
    kernels::WeightArena* arena_ = nullptr;
    LoadProgress progress_;
    std::uint64_t done_ = 0, total_ = 0;                // of the file
    std::uint64_t arena_bytes_ = 0, vector_bytes_ = 0;  // packed
    std::vector<formats::PackedEntry> entries_;
    std::vector<std::span<const std::byte>> payloads_;
    const formats::PackedFile* file_ = nullptr;  // null: packs
    std::optional<Error> file_fault_;
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

// What every load of one model is given.
struct LoadContext {
    const Checkpoint& checkpoint;
    const DecoderSpec& spec;
    const kernels::DeviceContext& device;
    const LoadProgress& progress;
    std::uint64_t arena_bytes;  // measured
};

base::Result<kernels::WeightArena> make_arena(const LoadContext& load) {
    auto arena = kernels::WeightArena::try_allocate(load.arena_bytes);
    if (!arena)
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("{}: the system does not give the {} bytes of the packed weights",
                                 load.checkpoint.path, load.arena_bytes),
                     {}};
    return std::move(*arena);
}

// The weights from the cache's file; nothing when there is none or it is of no use.
base::Result<std::optional<DecoderWeights>> read_weights(
    const LoadContext& load, const PackedCache& cache,
    const std::vector<formats::PackedEntry>& expected) {
    const std::optional<formats::PackedFile> file = cache.open(expected);
    if (!file) return std::optional<DecoderWeights>();
    const base::TimePoint began = base::system_clock().now();
    auto arena = make_arena(load);
    if (!arena) return std::move(arena).error();
    Binder binder(load.checkpoint, load.device, *arena, load.progress);
    binder.read_from(*file);
    DecoderWeights weights = bind_all(binder, load.spec);
    const Status status = binder.finish();
    if (binder.file_fault()) {
        cache.tell_unusable(*binder.file_fault());
        return std::optional<DecoderWeights>();
    }
    if (!status) return status.error();
    weights.arena = std::move(arena).value();
    cache.tell_read(load.arena_bytes,
                    std::chrono::duration<double>(base::system_clock().now() - began).count());
    return std::optional<DecoderWeights>(std::move(weights));
}

// `cache` gets what was packed; null: there is none.
base::Result<DecoderWeights> pack_weights(const LoadContext& load, const PackedCache* cache) {
    auto arena = make_arena(load);
    if (!arena) return std::move(arena).error();
    Binder binder(load.checkpoint, load.device, *arena, load.progress);
    DecoderWeights weights = bind_all(binder, load.spec);
    if (auto status = binder.finish(); !status) return std::move(status).error();
    weights.arena = std::move(arena).value();
    if (cache != nullptr) cache->write(binder.entries(), binder.payloads());
    return weights;
}

}  // namespace

base::Result<DecoderWeights> load_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                          const kernels::DeviceContext& device,
                                          const LoadProgress& progress,
                                          const PackedCacheOptions& cache_options) {
    Binder measured(checkpoint, *device.kernels);
    static_cast<void>(bind_all(measured, spec));
    if (auto status = measured.finish(); !status) return std::move(status).error();
    const LoadContext load{checkpoint, spec, device, progress, measured.arena_bytes()};
    if (cache_options.folder.empty()) return pack_weights(load, nullptr);
    const PackedCache cache(cache_options, checkpoint, device);
    auto kept = read_weights(load, cache, measured.entries());
    if (!kept) return std::move(kept).error();
    if (kept->has_value()) return std::move(**kept);
    return pack_weights(load, &cache);
}

base::Result<std::uint64_t> measure_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                            const kernels::Kernels& kernels) {
    Binder binder(checkpoint, kernels);
    static_cast<void>(bind_all(binder, spec));
    if (auto status = binder.finish(); !status) return std::move(status).error();
    return binder.bytes();
}

}  // namespace pagoda::model
