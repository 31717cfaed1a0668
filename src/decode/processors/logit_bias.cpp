#include "decode/processors/processors.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const EditContext& context) {
    return !context.params.logit_bias.empty();
}

void apply(const EditContext& context, std::span<float> logits) {
    for (const auto& [token, bias] : context.params.logit_bias) {
        logits[static_cast<std::size_t>(token)] += static_cast<float>(bias);
    }
}

}  // namespace

LogitEdit logit_bias_edit() {
    return {"logit_bias", is_wanted, apply};
}

}  // namespace pagoda::decode
