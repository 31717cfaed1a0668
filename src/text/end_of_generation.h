#pragma once
// Which tokens end an answer: the ids that a model's files name, and control tokens whose text ends
// a turn or a text in published chat formats. The one list of such texts. Pure; thread-safe.

#include <vector>

#include "base/ids.h"
#include "text/tokenizer_spec.h"

namespace pagoda::text {

// Control and user-defined tokens that are known by their text alone, sorted. A token of another
// type never counts: its text is ordinary text.
[[nodiscard]] std::vector<base::TokenId> end_tokens_by_name(const TokenizerSpec& spec);

// All ids that end generation: EOS, EOT, extra_eog and those known by name, sorted.
[[nodiscard]] std::vector<base::TokenId> end_of_generation(const TokenizerSpec& spec);

}  // namespace pagoda::text
