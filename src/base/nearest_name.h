#pragma once
// "Did you mean": the known name that a mistyped one most likely stands for. Thread-safe.

#include <span>
#include <string_view>

namespace pagoda::base {

// The nearest of the known names by edit distance (insert, delete, replace, swap neighbours; case
// and '-' against '_' cost nothing), the first of several. Empty when more than a third of the
// wanted name's characters would change, or when the name is over 64 bytes long.
[[nodiscard]] std::string_view nearest_name(std::string_view wanted,
                                            std::span<const std::string_view> known);

}  // namespace pagoda::base
