// Filters for HTML: few chat templates use them.

#include <charconv>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/markup.h"
#include "text/jinja/native.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_operations.h"

namespace pagoda::text::jinja {

std::string escape_html(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '\'':
                out += "&#39;";
                break;
            case '"':
                out += "&#34;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

namespace {

Value escape(Runtime& runtime, const Value& subject, const Bound&) {
    if (subject.is_text() && subject.text().is_markup) return subject;
    const Value text = to_text(runtime, subject);
    runtime.heap().require(text.view().size() * 5);
    return runtime.heap().text(escape_html(text.view()), true);
}

Value forceescape(Runtime& runtime, const Value& subject, const Bound&) {
    const Value text = to_text(runtime, subject);
    runtime.heap().require(text.view().size() * 5);
    return runtime.heap().text(escape_html(text.view()), true);
}

Value safe(Runtime& runtime, const Value& subject, const Bound&) {
    return runtime.heap().text(to_string(runtime, subject), true);
}

// Everything between the two marks is dropped; an opening one without a closing one stays.
std::string without_between(std::string_view text, std::string_view open, std::string_view close) {
    std::string out;
    for (;;) {
        const std::size_t begin = text.find(open);
        const std::size_t end = begin == std::string_view::npos ? begin : text.find(close, begin);
        if (end == std::string_view::npos) break;
        out += text.substr(0, begin);
        text.remove_prefix(end + close.size());
    }
    out += text;
    return out;
}

struct Entity {
    std::string_view name;
    char32_t code;
};
constexpr Entity kEntities[] = {{"amp", '&'},      {"lt", '<'},       {"gt", '>'},
                                {"quot", '"'},     {"apos", '\''},    {"nbsp", 0xA0},
                                {"copy", 0xA9},    {"reg", 0xAE},     {"ndash", 0x2013},
                                {"mdash", 0x2014}, {"hellip", 0x2026}};

char32_t entity_code(std::string_view name) {
    if (name.starts_with('#')) {
        const bool is_hex = name.size() > 1 && (name[1] | 0x20) == 'x';
        const std::string_view digits = name.substr(is_hex ? 2 : 1);
        std::uint32_t code = 0;
        const auto parsed =
            std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
        const bool is_valid = parsed.ec == std::errc() && !digits.empty() &&
                              parsed.ptr == digits.data() + digits.size() && code <= 0x10FFFF &&
                              (code < 0xD800 || code > 0xDFFF);
        return is_valid ? static_cast<char32_t>(code) : 0;
    }
    for (const Entity& entity : kEntities) {
        if (entity.name == name) return entity.code;
    }
    return 0;
}

std::string unescape_html(std::string_view text) {
    constexpr std::size_t kMaxEntity = 12;
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text[at] == '&' ? text.substr(at, kMaxEntity).find(';') : 0;
        if (text[at] == '&' && end != std::string_view::npos) {
            if (const char32_t code = entity_code(text.substr(at + 1, end - 1)); code != 0) {
                base::append_utf8(out, code);
                at += end + 1;
                continue;
            }
        }
        out += text[at++];
    }
    return out;
}

Value striptags(Runtime& runtime, const Value& subject, const Bound&) {
    std::string text = without_between(to_string(runtime, subject), "<!--", "-->");
    text = without_between(text, "<", ">");
    const Value words = split_text(runtime, text, {});
    TextBuilder out(runtime.heap());
    bool is_first = true;
    for (const Value& word : words.items()) {
        if (!is_first) out.append(' ');
        is_first = false;
        out.append(word.view());
    }
    return runtime.heap().text(unescape_html(out.str()));
}

Value xmlattr(Runtime& runtime, const Value& subject, const Bound& arguments) {
    require_defined(subject);
    if (!subject.is_dict())
        fail(fmt::format("xmlattr() needs a mapping, got {}", type_name(subject)));
    TextBuilder out(runtime.heap());
    const auto escaped = [&](const Value& value) {
        const std::string text = to_string(runtime, value);
        return value.is_text() && value.text().is_markup ? text : escape_html(text);
    };
    for (const auto& [key, value] : subject.dict().entries()) {
        if (value.is_none() || value.is_undefined()) continue;
        const std::string name = to_string(runtime, key);
        if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
            fail(fmt::format("Invalid character in attribute name: {}", quoted(name)));
        }
        if (!out.str().empty() || arguments.boolean(0, true)) out.append(' ');
        out.append(escaped(key) + "=\"" + escaped(value) + "\"");
    }
    return runtime.heap().text(out.take());
}

constexpr NativeSpec kMarkupFilters[] = {
    {"escape", "", 0, escape},           {"e", "", 0, escape},
    {"forceescape", "", 0, forceescape}, {"safe", "", 0, safe},
    {"striptags", "", 0, striptags},     {"xmlattr", "autospace", 0, xmlattr},
};

}  // namespace

std::span<const NativeSpec> markup_filters() {
    return kMarkupFilters;
}

}  // namespace pagoda::text::jinja
