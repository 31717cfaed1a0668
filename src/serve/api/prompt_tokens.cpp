#include "serve/api/prompt_tokens.h"

#include <cstdint>

#include <fmt/core.h>

namespace pagoda::api {

base::Result<std::vector<base::TokenId>> prompt_tokens(const ApiContext& context,
                                                       std::string_view text,
                                                       text::EncodeOptions::SpecialEnds ends) {
    const std::int64_t least = context.tokenizer->least_tokens(text);
    if (least >= context.engine->max_model_len())
        return base::invalid(
            fmt::format("the prompt has {} bytes and so at least {} tokens, the context is {} "
                        "tokens, and at least one must be left for the answer",
                        text.size(), least, context.engine->max_model_len()),
            std::string(engine::kContextLength));
    return context.tokenizer->encode(text, {.ends = ends});
}

}  // namespace pagoda::api
