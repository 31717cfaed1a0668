#include "text/jinja/string_literal.h"

#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "base/utf8.h"

namespace pagoda::text::jinja {

namespace {

std::optional<char32_t> parse_code(std::string_view digits, int base) {
    std::uint32_t code = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return {};
    return static_cast<char32_t>(code);
}

// Lone surrogates have no UTF-8 and become U+FFFD.
void append_code(std::string& out, char32_t code) {
    const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    base::append_utf8(out, is_surrogate ? 0xFFFD : code);
}

class Decoder {
  public:
    explicit Decoder(std::string_view body) : body_(body) {}

    StringLiteral run() {
        while (at_ < body_.size() && result_.error.empty()) {
            if (body_[at_] != '\\' || at_ + 1 >= body_.size()) {
                result_.text += body_[at_++];
            } else {
                decode_escape();
            }
        }
        return std::move(result_);
    }

  private:
    void decode_escape() {
        const char kind = body_[at_ + 1];
        static constexpr std::string_view kSimple = "\\'\"abfnrtv";
        static constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
        if (const auto known = kSimple.find(kind); known != std::string_view::npos) {
            result_.text += kMeanings[known];
            at_ += 2;
        } else if (kind == '\n') {
            at_ += 2;
        } else if (kind >= '0' && kind <= '7') {
            std::size_t count = 1;
            while (count < 3 && at_ + 1 + count < body_.size() && body_[at_ + 1 + count] >= '0' &&
                   body_[at_ + 1 + count] <= '7') {
                ++count;
            }
            append_code(result_.text, *parse_code(body_.substr(at_ + 1, count), 8));
            at_ += 1 + count;
        } else if (kind == 'x' || kind == 'u' || kind == 'U') {
            decode_hex(kind == 'x' ? 2 : kind == 'u' ? 4 : 8);
        } else if (kind == 'N') {
            result_.error = "characters by name (\\N{...}) are not supported in strings";
        } else {
            result_.text += '\\';
            ++at_;
        }
    }

    void decode_hex(std::size_t digits) {
        const auto code = at_ + 2 + digits <= body_.size()
                              ? parse_code(body_.substr(at_ + 2, digits), 16)
                              : std::nullopt;
        if (!code || *code > 0x10FFFF) {
            result_.error =
                fmt::format("the escape \\{} needs {} hexadecimal digits of a character",
                            body_[at_ + 1], digits);
            return;
        }
        append_code(result_.text, *code);
        at_ += 2 + digits;
    }

    std::string_view body_;
    std::size_t at_ = 0;
    StringLiteral result_;
};

}  // namespace

StringLiteral decode_string_literal(std::string_view body) {
    return Decoder(body).run();
}

}  // namespace pagoda::text::jinja
