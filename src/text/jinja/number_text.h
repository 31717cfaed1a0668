#pragma once
// Numbers as Python writes them. Free functions, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pagoda::text::jinja {

// repr(float): the shortest digits that read back equal; "1e+16", "0.1", "inf", "nan".
[[nodiscard]] std::string float_repr(double value);

// One conversion of format() or of the % operator.
struct NumberFormat {
    std::string fill_text = " ";  // one character
    char align = 0;               // '<', '>', '=', '^', or 0: the type's own
    char sign = '-';              // '+', '-' or ' '
    bool alternate = false;       // '#'
    char grouping = 0;            // ',' or '_'
    std::int64_t width = 0;
    std::int64_t precision = -1;  // -1: not given
    char type = 0;                // 0: the type's own
};

// A format specification of str.format, as "*>10.3f". Nothing when it is malformed.
[[nodiscard]] std::optional<NumberFormat> parse_format(std::string_view spec);

// Digits, sign, prefix and grouping, padded to the width. REQUIRES: the type fits the value (an
// integer type, or one of eEfFgG% and 0), width and precision were checked against a limit.
[[nodiscard]] std::string format_integer(std::int64_t value, const NumberFormat& format);
[[nodiscard]] std::string format_float(double value, const NumberFormat& format);
// Text cut to the precision and padded to the width.
[[nodiscard]] std::string format_text(std::string_view text, const NumberFormat& format);

}  // namespace pagoda::text::jinja
