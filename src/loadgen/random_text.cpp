#include "loadgen/random_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace pagoda::loadgen {

std::string random_text(Random& random, std::int64_t count) {
    constexpr std::array<std::string_view, 64> kWords = {
        "the",   "of",   "and",    "to",    "in",   "is",    "was",  "for",  "on",   "are",
        "with",  "they", "at",     "this",  "have", "from",  "one",  "had",  "by",   "word",
        "but",   "not",  "what",   "all",   "were", "when",  "your", "can",  "said", "there",
        "use",   "each", "which",  "she",   "how",  "their", "if",   "will", "up",   "other",
        "about", "out",  "many",   "then",  "them", "these", "so",   "some", "her",  "would",
        "make",  "like", "him",    "into",  "time", "has",   "look", "two",  "more", "write",
        "go",    "see",  "number", "people"};
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) {
        if (i > 0) text += ' ';
        text += kWords[random() % kWords.size()];
    }
    return text;
}

std::int64_t random_length(Random& random, std::int64_t mean, double spread) {
    double factor = 1;
    if (spread > 0) {
        std::lognormal_distribution<double> lengths(-spread * spread / 2, spread);
        factor = lengths(random);
    }
    return std::max<std::int64_t>(std::llround(static_cast<double>(mean) * factor), 1);
}

}  // namespace pagoda::loadgen
