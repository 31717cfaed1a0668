#pragma once
// The tokens of a prompt's text. Pure; any thread.

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "serve/api/api_context.h"
#include "text/tokenizer.h"

namespace pagoda::api {

// A text that can't fit into the context, by its length alone, is refused before it is tokenised:
// megabytes take seconds. The error's param is engine::kContextLength.
[[nodiscard]] base::Result<std::vector<base::TokenId>> prompt_tokens(
    const ApiContext& context, std::string_view text, text::EncodeOptions::SpecialEnds ends);

}  // namespace pagoda::api
