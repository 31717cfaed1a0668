#pragma once
// Texts of a number of common English words, and lengths. One thread.

#include <cstdint>
#include <random>
#include <string>

namespace pagoda::loadgen {

using Random = std::mt19937_64;

// `count` words, each with a space before it but for the first.
[[nodiscard]] std::string random_text(Random& random, std::int64_t count);

// Log-normal with that mean and that deviation of the logarithm, at least 1.
[[nodiscard]] std::int64_t random_length(Random& random, std::int64_t mean, double spread);

}  // namespace pagoda::loadgen
