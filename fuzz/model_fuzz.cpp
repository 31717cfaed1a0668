// Any bytes as a model file, up to the point where memory would be taken: its hyperparameters read,
// its tensors bound and measured, its memory planned. Each step is refused with one line, or its
// result is within the limits that the next one relies on.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/thread_team.h"
#include "formats/gguf_reader.h"
#include "kernels/registry.h"
#include "model/registry.h"
#include "plan/memory_plan.h"

namespace {

using namespace pagoda;

constexpr std::uint64_t kLimit = std::uint64_t{8} << 30;

void check_one_line(const base::Error& error) {
    CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos, error.message);
}

void check_spec(const model::DecoderSpec& spec) {
    CHECK(spec.num_layers() > 0 && spec.hidden > 0 && spec.ffn > 0 && spec.context_length > 0,
          "a size is not positive");
    CHECK(spec.heads % spec.kv_heads == 0 && spec.head_dim <= kernels::kMaxHeadDim,
          "heads that attention can't have");
    for (const model::LayerSpec& layer : spec.layers) {
        CHECK(layer.window >= 0 && layer.window < spec.context_length, "a window out of range");
        CHECK(layer.rope < spec.ropes.size(), "a layer without a rope");
    }
    for (const model::RopeSpec& rope : spec.ropes) {
        const model::RopeTable table(rope, {});
        std::vector<float> cos(static_cast<std::size_t>(table.pairs()));
        std::vector<float> sin(cos.size());
        table.write(spec.context_length - 1, cos.data(), sin.data());
        for (std::size_t pair = 0; pair < cos.size(); ++pair)
            CHECK(std::isfinite(cos[pair]) && std::isfinite(sin[pair]), "an angle is no number");
    }
}

void check_plan(const model::ModelSizes& sizes) {
    plan::MemoryBudget budget{.limit_bytes = kLimit, .utilization = 1.0};
    const auto plan = plan::make_memory_plan(sizes, budget);
    if (!plan.ok()) return check_one_line(plan.error());
    CHECK(plan->max_model_len > 0 && plan->max_model_len <= sizes.context_length,
          "a length that the model does not have");
    for (const std::int64_t blocks : plan->group_blocks)
        CHECK(blocks > 0, "a group without blocks");
    CHECK(plan->weights_bytes + plan->workspace_bytes + plan->other_bytes + plan->kv_bytes <=
              plan->limit_bytes,
          "the plan takes more than there is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static base::ThreadTeam team(1);
    const auto checkpoint =
        formats::checkpoint_from_gguf(std::as_bytes(std::span(data, size)), "fuzz");
    if (!checkpoint.ok()) return 0;  // gguf_fuzz.cpp looks at these
    const auto spec = model::read_decoder_spec(*checkpoint);
    if (spec.ok()) {
        check_spec(*spec);
    } else {
        check_one_line(spec.error());
    }
    for (const kernels::Kernels& variant : kernels::all_variants()) {
        const auto sizes = model::measure(*checkpoint, {.kernels = &variant, .team = &team}, {},
                                          kernels::KvDType::kBF16);
        CHECK(spec.ok() || !sizes.ok(), "measured without a spec");
        if (sizes.ok()) {
            check_plan(*sizes);
        } else {
            check_one_line(sizes.error());
        }
    }
    return 0;
}
