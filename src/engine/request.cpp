#include "engine/request.h"

#include <fmt/core.h>

namespace pagoda::engine {

std::string_view finish_name(FinishReason reason) {
    switch (reason) {
        case FinishReason::kStop:
            return "stop";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kAborted:
            return "abort";
        case FinishReason::kError:
            break;
    }
    return "error";
}

base::Result<std::int64_t> resolve_max_tokens(const std::optional<std::int64_t>& asked,
                                              std::int64_t num_prompt_tokens,
                                              std::int64_t max_model_len) {
    if (num_prompt_tokens >= max_model_len)
        return base::invalid(fmt::format("the prompt has {} tokens, the context is {} tokens, and "
                                         "at least one must be left for the answer",
                                         num_prompt_tokens, max_model_len),
                             std::string(kContextLength));
    const std::int64_t room = max_model_len - num_prompt_tokens;
    if (asked && *asked > room)
        return base::invalid(fmt::format("the prompt has {} tokens and max_tokens is {}, together "
                                         "more than the context of {} tokens",
                                         num_prompt_tokens, *asked, max_model_len),
                             std::string(kContextLength));
    return asked.value_or(room);
}

}  // namespace pagoda::engine
