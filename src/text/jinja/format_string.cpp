#include "text/jinja/format_string.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/number_text.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

constexpr std::int64_t kMaxPrecision = 10000;

void check_sizes(Runtime& runtime, const NumberFormat& format) {
    if (format.width > 0) runtime.heap().require(static_cast<std::size_t>(format.width) * 4);
    if (format.precision > kMaxPrecision && format.type != 's' && format.type != 0) {
        fail(fmt::format("a precision of {} is over the limit of {}", format.precision,
                         kMaxPrecision));
    }
}

std::string to_ascii(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = first_code_point(text.substr(at));
        at += point.bytes;
        const auto code = static_cast<std::uint32_t>(point.code);
        if (code < 0x80) {
            out += static_cast<char>(code);
        } else if (code <= 0xFF) {
            out += fmt::format("\\x{:02x}", code);
        } else if (code <= 0xFFFF) {
            out += fmt::format("\\u{:04x}", code);
        } else {
            out += fmt::format("\\U{:08x}", code);
        }
    }
    return out;
}

std::string repr_of(Runtime& runtime, const Value& value) {
    TextBuilder out(runtime.heap());
    append_repr(runtime, out, value);
    return out.take();
}

std::int64_t truncated(double value) {
    if (!std::isfinite(value)) fail("cannot convert float infinity or NaN to integer");
    if (std::fabs(value) >= 9.2e18) fail("the number does not fit in 64 bits");
    return static_cast<std::int64_t>(value);
}

class PercentFormatter {
  public:
    PercentFormatter(Runtime& runtime, std::string_view format, const Value& values)
        : runtime_(runtime), format_(format), values_(values), out_(runtime.heap()) {}

    std::string run() {
        while (at_ < format_.size()) {
            const std::size_t percent = std::min(format_.find('%', at_), format_.size());
            out_.append(format_.substr(at_, percent - at_));
            at_ = percent;
            if (at_ < format_.size()) convert();
        }
        const bool takes_all = values_.is_dict() || is_named_;
        if (!takes_all && next_value_ < count()) {
            fail("not all arguments converted during string formatting");
        }
        return out_.take();
    }

  private:
    [[nodiscard]] std::size_t count() const {
        return values_.is_tuple() ? values_.items().size() : 1;
    }

    char peek() {
        if (at_ >= format_.size()) fail("incomplete format");
        return format_[at_];
    }

    Value next_value() {
        if (next_value_ >= count()) fail("not enough arguments for format string");
        const std::size_t place = next_value_++;
        return values_.is_tuple() ? values_.items()[place] : values_;
    }

    std::int64_t parse_size() {
        if (peek() == '*') {
            ++at_;
            const Value size = next_value();
            if (!size.is_integral()) fail("* wants int");
            return size.integral();
        }
        std::int64_t size = 0;
        const char* const begin = format_.data() + at_;
        const auto parsed = std::from_chars(begin, format_.data() + format_.size(), size);
        if (parsed.ec == std::errc::result_out_of_range) fail("width or precision too big");
        at_ += static_cast<std::size_t>(parsed.ptr - begin);
        return size;
    }

    void convert() {
        ++at_;
        bool has_key = false;
        Value keyed;
        if (peek() == '(') {
            const std::size_t close = format_.find(')', at_);
            if (close == std::string_view::npos) fail("incomplete format key");
            const std::string_view key = format_.substr(at_ + 1, close - at_ - 1);
            at_ = close + 1;
            if (!values_.is_dict()) fail("format requires a mapping");
            const Value* const found = values_.dict().find(key);
            if (found == nullptr) fail(fmt::format("the format needs the key '{}'", key));
            keyed = *found;
            has_key = is_named_ = true;
        }
        NumberFormat format;
        format.align = '>';
        parse_flags(format);
        if (peek() == '*' || (peek() >= '0' && peek() <= '9')) format.width = parse_size();
        if (format.width < 0) {
            format.width = -std::max(format.width, -std::numeric_limits<std::int64_t>::max());
            format.align = '<';
        }
        if (peek() == '.') {
            ++at_;
            format.precision = std::max<std::int64_t>(parse_size(), 0);
        }
        while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
        format.type = peek();
        ++at_;
        if (format.type == '%') return out_.append('%');
        append_value(has_key ? keyed : next_value(), format);
    }

    void parse_flags(NumberFormat& format) {
        for (;; ++at_) {
            switch (peek()) {
                case '-':
                    format.align = '<';
                    break;
                case '+':
                    format.sign = '+';
                    break;
                case ' ':
                    if (format.sign != '+') format.sign = ' ';
                    break;
                case '#':
                    format.alternate = true;
                    break;
                case '0':
                    has_zero_flag_ = true;
                    break;
                default:
                    if (has_zero_flag_ && format.align != '<') format.align = '=';
                    has_zero_flag_ = false;
                    return;
            }
        }
    }

    void append_value(const Value& value, NumberFormat format) {
        check_sizes(runtime_, format);
        switch (format.type) {
            case 's':
            case 'r':
            case 'a': {
                if (format.align == '=') format.align = '>';
                std::string text =
                    format.type == 's' ? to_string(runtime_, value) : repr_of(runtime_, value);
                if (format.type == 'a') text = to_ascii(text);
                return out_.append(format_text(text, format));
            }
            case 'c':
                return append_character(value, format);
            default:
                append_number(value, format);
        }
    }

    void append_character(const Value& value, NumberFormat format) {
        std::string text;
        if (value.is_text() && value.text().length == 1) {
            text = value.view();
        } else if (value.is_integral() && value.integral() >= 0 && value.integral() < 0x110000) {
            base::append_utf8(text, static_cast<char32_t>(value.integral()));
        } else {
            fail("%c requires int or char");
        }
        if (format.align == '=') format.align = '>';
        format.precision = -1;
        out_.append(format_text(text, format));
    }

    void append_number(const Value& value, NumberFormat format) {
        const bool is_integer =
            std::string_view("diuxXo").find(format.type) != std::string_view::npos;
        if (!is_integer && std::string_view("eEfFgG").find(format.type) == std::string_view::npos) {
            fail(fmt::format("unsupported format character '{}'", format.type));
        }
        if (!value.is_number()) {
            require_defined(value);
            fail(fmt::format("%{} format: a number is required, not {}", format.type,
                             type_name(value)));
        }
        if (format.align == '=') format.fill_text = "0";
        if (!is_integer) return out_.append(format_float(value.number(), format));
        if (value.is_float() && (format.type == 'x' || format.type == 'X' || format.type == 'o')) {
            fail(fmt::format("%{} format: an integer is required, not float", format.type));
        }
        if (format.type == 'i' || format.type == 'u') format.type = 'd';
        out_.append(format_integer(value.is_float() ? truncated(value.number()) : value.integral(),
                                   format));
    }

    Runtime& runtime_;
    std::string_view format_;
    const Value& values_;
    TextBuilder out_;
    std::size_t at_ = 0;
    std::size_t next_value_ = 0;
    bool is_named_ = false;
    bool has_zero_flag_ = false;
};

class BraceFormatter {
  public:
    BraceFormatter(Runtime& runtime, const CallArguments& arguments)
        : runtime_(runtime), arguments_(arguments) {}

    std::string run(std::string_view format, int depth) {
        if (depth > 1) fail("Max string recursion exceeded");
        TextBuilder out(runtime_.heap());
        for (std::size_t at = 0; at < format.size();) {
            const char c = format[at];
            if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
                out.append(c);
                at += 2;
            } else if (c == '}') {
                fail("Single '}' encountered in format string");
            } else if (c == '{') {
                const std::size_t end = field_end(format, at + 1);
                append_field(out, format.substr(at + 1, end - at - 1), depth);
                at = end + 1;
            } else {
                const std::size_t end = std::min(format.find_first_of("{}", at), format.size());
                out.append(format.substr(at, end - at));
                at = end;
            }
        }
        return out.take();
    }

  private:
    static std::size_t field_end(std::string_view format, std::size_t at) {
        int open = 0;
        for (; at < format.size(); ++at) {
            if (format[at] == '{') ++open;
            if (format[at] == '}' && open-- == 0) return at;
        }
        fail("Single '{' encountered in format string");
    }

    void append_field(TextBuilder& out, std::string_view field, int depth) {
        // The conversion and the specification come after the name; brackets may hold anything.
        std::size_t end = 0;
        for (bool in_brackets = false; end < field.size(); ++end) {
            if (field[end] == '[') in_brackets = true;
            if (field[end] == ']') in_brackets = false;
            if (!in_brackets && (field[end] == '!' || field[end] == ':')) break;
        }
        Value value = find_value(field.substr(0, end));
        std::string_view rest = field.substr(end);
        if (!rest.empty() && rest[0] == '!') {
            if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
                fail("expected ':' after conversion specifier");
            }
            value = converted(value, rest[1]);
            rest.remove_prefix(2);
        }
        if (!rest.empty()) rest.remove_prefix(1);
        const std::string spec = rest.empty() ? std::string() : run(rest, depth + 1);
        out.append(formatted(value, spec));
    }

    Value converted(const Value& value, char conversion) {
        if (conversion == 's') return to_text(runtime_, value);
        if (conversion == 'r') return runtime_.heap().text(repr_of(runtime_, value));
        if (conversion == 'a') return runtime_.heap().text(to_ascii(repr_of(runtime_, value)));
        fail(fmt::format("Unknown conversion specifier '{}'", conversion));
    }

    Value find_value(std::string_view path) {
        const std::size_t end = std::min(path.find_first_of(".["), path.size());
        Value value = find_argument(path.substr(0, end));
        path.remove_prefix(end);
        while (!path.empty()) {
            if (path[0] == '.') {
                const std::size_t stop = std::min(path.find_first_of(".[", 1), path.size());
                value = get_attribute(runtime_, value, path.substr(1, stop - 1));
                path.remove_prefix(stop);
                continue;
            }
            const std::size_t close = path.find(']');
            if (path[0] != '[' || close == std::string_view::npos)
                fail("Missing ']' in format string");
            value = get_item(runtime_, value, key_of(path.substr(1, close - 1)));
            path.remove_prefix(close + 1);
        }
        return value;
    }

    Value key_of(std::string_view text) {
        std::int64_t index = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
        const bool is_number = !text.empty() && text[0] != '-' && parsed.ec == std::errc() &&
                               parsed.ptr == text.data() + text.size();
        return is_number ? Value(index) : runtime_.heap().text(text);
    }

    Value find_argument(std::string_view name) {
        const Value key =
            name.empty() ? Value(static_cast<std::int64_t>(next_automatic())) : key_of(name);
        if (key.is_int()) {
            if (!name.empty() && next_ > 0) {
                fail("cannot switch from automatic field numbering to manual field specification");
            }
            is_manual_ = is_manual_ || !name.empty();
            const auto index = static_cast<std::size_t>(key.integer());
            if (index < arguments_.positional.size()) return arguments_.positional[index];
            fail(fmt::format("Replacement index {} out of range for positional args tuple", index));
        }
        for (const auto& [known, value] : arguments_.named) {
            if (known == name) return value;
        }
        fail(fmt::format("the format needs the argument '{}'", name));
    }

    std::size_t next_automatic() {
        if (is_manual_) {
            fail("cannot switch from manual field specification to automatic field numbering");
        }
        return next_++;
    }

    std::string formatted(const Value& value, std::string_view spec) {
        if (spec.empty()) return to_string(runtime_, value);
        auto format = parse_format(spec);
        if (!format) fail(fmt::format("invalid format specifier '{}'", spec));
        check_sizes(runtime_, *format);
        const auto is_type = [&](std::string_view types) {
            return format->type == 0 || types.find(format->type) != std::string_view::npos;
        };
        if (value.is_text() && is_type("s") && format->align != '=') {
            return format_text(value.view(), *format);
        }
        if (value.is_text() && is_type("s") && format->fill_text == "0") {
            format->align = '<';
            return format_text(value.view(), *format);
        }
        if (value.is_integral() && is_type("bdoxXneEfFgG%")) {
            if (format->precision >= 0 && is_type("bdoxXn")) {
                fail("Precision not allowed in integer format specifier");
            }
            return format_integer(value.integral(), *format);
        }
        if (value.is_float() && is_type("eEfFgGn%")) {
            if (format->type == 'n') format->type = 'g';
            return format_float(value.number(), *format);
        }
        if (value.is_integral() && format->type == 'c') {
            std::string text;
            base::append_utf8(text, static_cast<char32_t>(value.integral() & 0x1FFFFF));
            return format_text(text, *format);
        }
        fail(
            fmt::format("the format '{}' does not fit a value of type {}", spec, type_name(value)));
    }

    Runtime& runtime_;
    const CallArguments& arguments_;
    std::size_t next_ = 0;
    bool is_manual_ = false;
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& format, const Value& values) {
    return runtime.heap().text(PercentFormatter(runtime, format.view(), values).run(),
                               format.text().is_markup);
}

Value format_braces(Runtime& runtime, const Value& format, const CallArguments& arguments) {
    return runtime.heap().text(BraceFormatter(runtime, arguments).run(format.view(), 0),
                               format.text().is_markup);
}

}  // namespace pagoda::text::jinja
