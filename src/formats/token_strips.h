#pragma once
// Special tokens that strip the white space beside them. GGUF has no key for this property of a
// tokenizer, so the models that have it are known by pre-tokenizer, architecture or name. Pure;
// thread-safe.

#include <string_view>

#include "text/tokenizer_spec.h"

namespace pagoda::formats {

// Fills lstrip and rstrip of a spec whose other parts are read. `name` is general.name; the case
// of its letters does not count.
void add_known_strips(text::TokenizerSpec& spec, std::string_view architecture,
                      std::string_view name);

}  // namespace pagoda::formats
