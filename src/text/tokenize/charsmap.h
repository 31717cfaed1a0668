#pragma once
// CharsMap: SentencePiece's precompiled normalizer, a double array over byte strings with a
// replacement each. Every unit that a text can reach is checked at creation. Immutable and
// thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::text {

class CharsMap {
  public:
    CharsMap() = default;  // replaces nothing
    // Layout, little endian: u32 size of the array in bytes; the array of u32 units; the
    // replacements, each ended by a zero byte.
    [[nodiscard]] static base::Result<CharsMap> parse(std::string_view blob);

    struct Match {
        std::size_t bytes = 0;  // of the input; 0: nothing matches
        std::string_view replacement;
    };
    // The longest key that text begins with.
    [[nodiscard]] Match longest_prefix(std::string_view text) const;

  private:
    [[nodiscard]] base::Status check() const;
    [[nodiscard]] base::Status check_children(std::size_t unit,
                                              std::vector<std::size_t>& found) const;

    std::vector<std::uint32_t> units_;
    std::string replacements_;
};

}  // namespace pagoda::text
