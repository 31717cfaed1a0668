#include "base/double_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace pagoda::base {
namespace {

// value = 0.DIGITS * 10^point, in the fewest digits that identify the double.
struct Decimal {
    std::string digits;
    int point = 0;
};

Decimal shortest_decimal(double magnitude) {
    std::array<char, 64> buffer{};
    const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude,
                                       std::chars_format::scientific);
    const std::string_view text(buffer.data(),
                                static_cast<std::size_t>(written.ptr - buffer.data()));
    const std::size_t exponent_at = text.find('e');
    Decimal decimal;
    for (const char digit : text.substr(0, exponent_at)) {
        if (digit != '.') decimal.digits.push_back(digit);
    }
    // from_chars reads no plus sign.
    std::size_t number_at = exponent_at + 1;
    if (text[number_at] == '+') ++number_at;
    std::from_chars(text.data() + number_at, text.data() + text.size(), decimal.point);
    ++decimal.point;
    return decimal;
}

void append_scientific(std::string& out, const Decimal& decimal) {
    const int exponent = decimal.point - 1;
    out.push_back(decimal.digits[0]);
    if (decimal.digits.size() > 1) out.append(".").append(decimal.digits, 1);
    out.append(exponent < 0 ? "e-" : "e+");
    if (std::abs(exponent) < 10) out.push_back('0');
    out.append(std::to_string(std::abs(exponent)));
}

void append_fixed(std::string& out, const Decimal& decimal) {
    const auto num_digits = static_cast<int>(decimal.digits.size());
    if (decimal.point <= 0) {
        out.append("0.")
            .append(static_cast<std::size_t>(-decimal.point), '0')
            .append(decimal.digits);
    } else if (decimal.point >= num_digits) {
        out.append(decimal.digits);
        out.append(static_cast<std::size_t>(decimal.point - num_digits), '0').append(".0");
    } else {
        const auto whole = static_cast<std::size_t>(decimal.point);
        out.append(decimal.digits, 0, whole).append(".").append(decimal.digits, whole);
    }
}

}  // namespace

std::string shortest_double(double value) {
    if (std::isnan(value)) return "nan";
    std::string out = std::signbit(value) ? "-" : "";
    if (std::isinf(value)) return out + "inf";
    const Decimal decimal = shortest_decimal(std::fabs(value));
    if (value != 0 && (decimal.point < -3 || decimal.point > 16)) {
        append_scientific(out, decimal);
    } else {
        append_fixed(out, decimal);
    }
    return out;
}

}  // namespace pagoda::base
