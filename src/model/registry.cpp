#include "model/registry.h"

#include <array>

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model {

std::span<const Architecture> architectures() {
    static constexpr std::array<Architecture, 5> kArchitectures = {{
        {"llama", arch::read_llama},
        {"qwen2", arch::read_qwen2},
        {"qwen3", arch::read_qwen3},
        {"gemma2", arch::read_gemma2},
        {"gemma3", arch::read_gemma3},
    }};
    return kArchitectures;
}

base::Result<DecoderSpec> read_decoder_spec(const formats::Checkpoint& checkpoint) {
    std::string known;
    for (const Architecture& architecture : architectures()) {
        if (architecture.name == checkpoint.architecture) {
            arch::Hyperparameters keys(checkpoint);
            DecoderSpec spec = architecture.read(keys);
            if (auto status = keys.finish(); !status) return std::move(status).error();
            return spec;
        }
        known += known.empty() ? "" : ", ";
        known += architecture.name;
    }
    return base::Error{base::ErrorCode::kUnsupported,
                       fmt::format("{}: architecture \"{}\" is not supported; supported are: {}",
                                   checkpoint.path, checkpoint.architecture, known),
                       "general.architecture"};
}

}  // namespace pagoda::model
