#include <limits>

#include "decode/processors/processors.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const EditContext& context) {
    return context.num_outputs < context.params.min_tokens && !context.held_back.empty();
}

void apply(const EditContext& context, std::span<float> logits) {
    for (const base::TokenId token : context.held_back) {
        logits[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
}

}  // namespace

LogitEdit min_tokens_edit() {
    return {"min_tokens", is_wanted, apply};
}

}  // namespace pagoda::decode
