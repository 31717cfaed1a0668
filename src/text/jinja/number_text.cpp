#include "text/jinja/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

bool is_ascii_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string special_float(double value) {
    if (std::isnan(value)) return "nan";
    return std::signbit(value) ? "-inf" : "inf";
}

std::string to_chars_text(double value, std::chars_format format, int precision) {
    // The longest fixed form has 309 digits in front of the point.
    std::string out(static_cast<std::size_t>(precision) + 340, '\0');
    const auto written =
        std::to_chars(out.data(), out.data() + out.size(), value, format, precision);
    out.resize(static_cast<std::size_t>(written.ptr - out.data()));
    return out;
}

// %g keeps trailing zeros only with '#'.
std::string general_text(double value, int precision, bool keeps_zeros) {
    precision = std::max(precision, 1);
    std::string scientific = to_chars_text(value, std::chars_format::scientific, precision - 1);
    const std::size_t e = scientific.find('e');
    const int exponent = std::atoi(scientific.c_str() + e + 1);
    const bool is_fixed = exponent >= -4 && exponent < precision;
    std::string digits =
        is_fixed ? to_chars_text(value, std::chars_format::fixed, precision - 1 - exponent)
                 : scientific.substr(0, e);
    if (!keeps_zeros && digits.find('.') != std::string::npos) {
        digits.erase(digits.find_last_not_of('0') + 1);
        if (digits.back() == '.') digits.pop_back();
    }
    return is_fixed ? digits : digits + scientific.substr(e);
}

void group_digits(std::string& digits, char separator, std::size_t size) {
    std::size_t end = 0;
    while (end < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[end])) != 0)
        ++end;
    for (std::size_t at = end; at > size; at -= size) digits.insert(at - size, 1, separator);
}

std::string sign_text(bool is_negative, char sign) {
    if (is_negative) return "-";
    return sign == '-' ? "" : std::string(1, sign);
}

// Pads a number: '=' puts the fill between sign and digits.
std::string padded_number(const std::string& sign, const std::string& digits,
                          const NumberFormat& format) {
    const std::size_t width = static_cast<std::size_t>(std::max<std::int64_t>(format.width, 0));
    const std::size_t size = sign.size() + digits.size();
    if (size >= width) return sign + digits;
    if (format.align == '=') {
        std::string fill;
        for (std::size_t count = width - size; count > 0; --count) fill += format.fill_text;
        return sign + fill + digits;
    }
    NumberFormat text_format = format;
    text_format.precision = -1;
    if (text_format.align == 0) text_format.align = '>';
    return format_text(sign + digits, text_format);
}

std::string upper_ascii(std::string text) {
    for (char& c : text) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    }
    return text;
}

}  // namespace

std::string float_repr(double value) {
    if (!std::isfinite(value)) return special_float(value);
    std::array<char, 64> buffer{};
    const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                       std::chars_format::scientific);
    const std::string scientific(buffer.data(), written.ptr);
    const std::size_t e = scientific.find('e');
    const int exponent = std::atoi(scientific.c_str() + e + 1);
    if (exponent < -4 || exponent >= 16) return scientific;
    std::string digits;
    for (const char c : scientific.substr(0, e)) {
        if (is_ascii_digit(c)) digits += c;
    }
    const std::string sign = scientific[0] == '-' ? "-" : "";
    if (exponent < 0) {
        return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    }
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole)
        return sign + digits + std::string(whole - digits.size(), '0') + ".0";
    return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

// A run of digits; nothing when it does not fit.
bool parse_count(std::string_view& spec, std::int64_t& count) {
    const auto parsed = std::from_chars(spec.data(), spec.data() + spec.size(), count);
    if (parsed.ec != std::errc()) return false;
    spec.remove_prefix(static_cast<std::size_t>(parsed.ptr - spec.data()));
    return true;
}

bool is_align(char c) {
    return c == '<' || c == '>' || c == '=' || c == '^';
}

}  // namespace

std::optional<NumberFormat> parse_format(std::string_view spec) {
    NumberFormat format;
    const auto skip = [&spec](char c) {
        if (spec.empty() || spec[0] != c) return false;
        spec.remove_prefix(1);
        return true;
    };
    if (!spec.empty()) {
        const std::size_t fill_bytes = first_code_point(spec).bytes;
        if (spec.size() > fill_bytes && is_align(spec[fill_bytes])) {
            format.fill_text = spec.substr(0, fill_bytes);
            format.align = spec[fill_bytes];
            spec.remove_prefix(fill_bytes + 1);
        } else if (is_align(spec[0])) {
            format.align = spec[0];
            spec.remove_prefix(1);
        }
    }
    if (!spec.empty() && (spec[0] == '+' || spec[0] == '-' || spec[0] == ' ')) {
        format.sign = spec[0];
        spec.remove_prefix(1);
    }
    format.alternate = skip('#');
    if (skip('0') && format.align == 0) {
        format.fill_text = "0";
        format.align = '=';
    }
    if (!spec.empty() && is_ascii_digit(spec[0]) && !parse_count(spec, format.width)) return {};
    if (skip(',')) format.grouping = ',';
    if (skip('_')) format.grouping = '_';
    if (skip('.') &&
        (spec.empty() || !is_ascii_digit(spec[0]) || !parse_count(spec, format.precision))) {
        return {};
    }
    if (!spec.empty()) {
        format.type = spec[0];
        spec.remove_prefix(1);
    }
    if (!spec.empty()) return {};
    return format;
}

std::string format_integer(std::int64_t value, const NumberFormat& format) {
    if (format.type != 0 &&
        std::string_view("eEfFgG%").find(format.type) != std::string_view::npos) {
        return format_float(static_cast<double>(value), format);
    }
    const bool is_negative = value < 0;
    const std::uint64_t magnitude =
        is_negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
    int base = 10;
    std::string prefix;
    if (format.type == 'x' || format.type == 'X') base = 16, prefix = "0x";
    if (format.type == 'o') base = 8, prefix = "0o";
    if (format.type == 'b') base = 2, prefix = "0b";
    std::array<char, 72> buffer{};
    const auto written =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, base);
    std::string digits(buffer.data(), written.ptr);
    if (format.precision > 0 && digits.size() < static_cast<std::size_t>(format.precision)) {
        digits.insert(0, static_cast<std::size_t>(format.precision) - digits.size(), '0');
    }
    if (format.grouping != 0) group_digits(digits, format.grouping, base == 10 ? 3 : 4);
    std::string sign = sign_text(is_negative, format.sign);
    if (format.alternate) sign += prefix;
    if (format.type == 'X') {
        sign = upper_ascii(sign);
        digits = upper_ascii(digits);
    }
    return padded_number(sign, digits, format);
}

std::string format_float(double value, const NumberFormat& format) {
    const std::string sign = sign_text(std::signbit(value) && !std::isnan(value), format.sign);
    const bool is_upper = format.type == 'E' || format.type == 'F' || format.type == 'G';
    const int precision = format.precision < 0 ? 6 : static_cast<int>(format.precision);
    double magnitude = std::fabs(value);
    if (format.type == '%') magnitude *= 100;
    std::string digits;
    if (!std::isfinite(magnitude)) {
        digits = std::isnan(magnitude) ? "nan" : "inf";
    } else if (format.type == 'f' || format.type == 'F' || format.type == '%') {
        digits = to_chars_text(magnitude, std::chars_format::fixed, precision);
        if (precision == 0 && format.alternate) digits += '.';
    } else if (format.type == 'e' || format.type == 'E') {
        digits = to_chars_text(magnitude, std::chars_format::scientific, precision);
    } else if (format.type == 'g' || format.type == 'G') {
        digits = general_text(magnitude, precision, format.alternate);
    } else if (format.precision >= 0) {
        digits = general_text(magnitude, precision, false);
        if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    } else {
        digits = float_repr(magnitude);
    }
    if (is_upper) digits = upper_ascii(digits);
    if (format.grouping != 0 && std::isfinite(magnitude)) group_digits(digits, format.grouping, 3);
    if (format.type == '%') digits += '%';
    return padded_number(sign, digits, format);
}

std::string format_text(std::string_view text, const NumberFormat& format) {
    if (format.precision >= 0) {
        text = text.substr(0, offset_of(text, static_cast<std::size_t>(format.precision)));
    }
    const std::size_t length = count_code_points(text);
    const auto width = static_cast<std::size_t>(std::max<std::int64_t>(format.width, 0));
    if (length >= width) return std::string(text);
    const std::size_t missing = width - length;
    std::size_t before = 0;
    if (format.align == '>') before = missing;
    if (format.align == '^') before = missing / 2;
    std::string out;
    for (std::size_t count = 0; count < before; ++count) out += format.fill_text;
    out += text;
    for (std::size_t count = before; count < missing; ++count) out += format.fill_text;
    return out;
}

}  // namespace pagoda::text::jinja
