#pragma once
// Decimal text of doubles, independent of the locale. Free functions, thread-safe.

#include <string>

namespace pagoda::base {

// The shortest text that reads back equal, laid out as Python's repr() does: 1.0, 0.0001, 1e-05,
// 123456789012345.0, 1e+16, -0.0, inf, -inf, nan.
[[nodiscard]] std::string shortest_double(double value);

}  // namespace pagoda::base
