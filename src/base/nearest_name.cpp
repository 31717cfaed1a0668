#include "base/nearest_name.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace pagoda::base {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

std::string folded(std::string_view name) {
    std::string out(name);
    for (char& character : out) {
        if (character >= 'A' && character <= 'Z') character = static_cast<char>(character + 32);
        if (character == '-') character = '_';
    }
    return out;
}

// Optimal string alignment distance (Boytsov 2011, 2.1): three rows of the matrix of prefixes.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::array<std::array<std::size_t, kMaxNameBytes + 1>, 3> rows{};
    for (std::size_t col = 0; col <= b.size(); ++col) rows[0][col] = col;
    for (std::size_t row = 1; row <= a.size(); ++row) {
        auto& now = rows[row % 3];
        const auto& above = rows[(row + 2) % 3];
        const auto& two_above = rows[(row + 1) % 3];
        now[0] = row;
        for (std::size_t col = 1; col <= b.size(); ++col) {
            const std::size_t replace = above[col - 1] + (a[row - 1] == b[col - 1] ? 0 : 1);
            now[col] = std::min({replace, above[col] + 1, now[col - 1] + 1});
            const bool swapped =
                row > 1 && col > 1 && a[row - 1] == b[col - 2] && a[row - 2] == b[col - 1];
            if (swapped) now[col] = std::min(now[col], two_above[col - 2] + 1);
        }
    }
    return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view wanted, std::span<const std::string_view> known) {
    if (wanted.empty() || wanted.size() > kMaxNameBytes) return {};
    const std::string folded_wanted = folded(wanted);
    std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
    std::string_view best;
    for (const std::string_view name : known) {
        if (name.size() > kMaxNameBytes) continue;
        const std::size_t distance = edit_distance(folded_wanted, folded(name));
        // A name of which nothing would be left is no likely meaning.
        if (distance >= std::min(best_distance, std::max(wanted.size(), name.size()))) continue;
        best_distance = distance;
        best = name;
    }
    return best;
}

}  // namespace pagoda::base
