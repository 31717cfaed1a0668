#pragma once
// The TokenizerSpec of a model from its tokenizer.* metadata. Pure; thread-safe.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "text/tokenizer_spec.h"

namespace pagoda::formats {

using Metadata = std::vector<std::pair<std::string, MetaValue>>;

// Empty when the file brings no tokenizer. Errors name the key: a tokenizer model that is not
// known, lists that differ in length from the tokens, ids beyond them, values of a wrong type.
[[nodiscard]] base::Result<std::optional<text::TokenizerSpec>> read_tokenizer_spec(
    const Metadata& metadata);

}  // namespace pagoda::formats
