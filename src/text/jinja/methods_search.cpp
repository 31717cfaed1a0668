// Methods of str that ask something about it.

#include <algorithm>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

// The part of a text between two optional indices, clipped as a slice would be.
struct Window {
    std::string_view text;
    std::size_t first = 0;  // code points in front of it
    bool is_valid = true;   // the start is not beyond the end of the text
};

Window window_of(const Value& self, const Bound& arguments) {
    const auto length = static_cast<std::int64_t>(self.text().length);
    const auto resolve = [&](std::size_t parameter, std::int64_t otherwise) {
        std::int64_t place =
            arguments.is_none(parameter) ? otherwise : arguments.integer(parameter, otherwise);
        if (place < 0) place = std::max<std::int64_t>(place + length, 0);
        return place;
    };
    const std::int64_t start = resolve(1, 0);
    const std::int64_t stop = std::min(resolve(2, length), length);
    if (start > length || start > stop) return {{}, 0, start <= stop};
    const std::size_t begin = offset_of(self.view(), static_cast<std::size_t>(start));
    const std::string_view rest = self.view().substr(begin);
    return {rest.substr(0, offset_of(rest, static_cast<std::size_t>(stop - start))),
            static_cast<std::size_t>(start), true};
}

template <bool kFromRight>
std::int64_t find_in_window(Runtime& runtime, const Value& self, const Bound& arguments) {
    const Window window = window_of(self, arguments);
    if (!window.is_valid) return -1;
    const std::string_view part = arguments.view(0, "");
    const auto found = kFromRight ? find_last_text(runtime, window.text, part)
                                  : find_text(runtime, window.text, part);
    if (!found) return -1;
    return static_cast<std::int64_t>(window.first +
                                     count_code_points(window.text.substr(0, *found)));
}

template <bool kFromRight>
Value find(Runtime& runtime, const Value& self, const Bound& arguments) {
    return Value(find_in_window<kFromRight>(runtime, self, arguments));
}

template <bool kFromRight>
Value index(Runtime& runtime, const Value& self, const Bound& arguments) {
    const std::int64_t found = find_in_window<kFromRight>(runtime, self, arguments);
    if (found < 0) fail("substring not found");
    return Value(found);
}

Value count(Runtime& runtime, const Value& self, const Bound& arguments) {
    const Window window = window_of(self, arguments);
    const std::string_view part = arguments.view(0, "");
    if (!window.is_valid) return Value(std::int64_t{0});
    if (part.empty()) return Value(static_cast<std::int64_t>(count_code_points(window.text)) + 1);
    std::int64_t occurrences = 0;
    std::string_view rest = window.text;
    while (const auto found = find_text(runtime, rest, part)) {
        ++occurrences;
        rest.remove_prefix(*found + part.size());
        runtime.tick();
    }
    return Value(occurrences);
}

template <bool kAtEnd>
Value has_end(Runtime&, const Value& self, const Bound& arguments) {
    const Window window = window_of(self, arguments);
    const auto matches = [&](const Value& part) {
        if (!part.is_text()) {
            fail(fmt::format("{}() needs a string or a tuple of strings, got {}",
                             arguments.function_name(), type_name(part)));
        }
        if (!window.is_valid) return false;
        return kAtEnd ? window.text.ends_with(part.view()) : window.text.starts_with(part.view());
    };
    const Value& part = arguments.at(0);
    if (!part.is_tuple()) return Value(matches(part));
    return Value(std::any_of(part.items().begin(), part.items().end(), matches));
}

// True when the text is not empty and all its characters are of a class.
template <bool (*kIsOfClass)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Bound&) {
    std::string_view text = self.view();
    runtime.meter().tick_bytes(text.size());
    if (text.empty()) return Value(false);
    while (!text.empty()) {
        const CodePoint point = first_code_point(text);
        if (!kIsOfClass(point.code)) return Value(false);
        text.remove_prefix(point.bytes);
    }
    return Value(true);
}

Value isascii(Runtime&, const Value& self, const Bound&) {
    return Value(self.text().is_ascii());
}

Value isprintable(Runtime& runtime, const Value& self, const Bound& arguments) {
    return self.view().empty() ? Value(true) : all_are<is_printable>(runtime, self, arguments);
}

template <bool kWantsUpper>
Value is_cased_as(Runtime&, const Value& self, const Bound&) {
    bool has_cased = false;
    std::string_view text = self.view();
    while (!text.empty()) {
        const CodePoint point = first_code_point(text);
        text.remove_prefix(point.bytes);
        const bool lower = is_lower(point.code);
        const bool upper = is_upper(point.code);
        if (is_title(point.code) || (kWantsUpper ? lower : upper)) return Value(false);
        has_cased = has_cased || (kWantsUpper ? upper : lower);
    }
    return Value(has_cased);
}

Value istitle(Runtime&, const Value& self, const Bound&) {
    bool has_cased = false, follows_cased = false;
    std::string_view text = self.view();
    while (!text.empty()) {
        const CodePoint point = first_code_point(text);
        text.remove_prefix(point.bytes);
        const bool opens = is_upper(point.code) || is_title(point.code);
        const bool continues = is_lower(point.code);
        if ((opens && follows_cased) || (continues && !follows_cased)) return Value(false);
        follows_cased = opens || continues;
        has_cased = has_cased || follows_cased;
    }
    return Value(has_cased);
}

Value isidentifier(Runtime&, const Value& self, const Bound&) {
    std::string_view text = self.view();
    if (text.empty() || !is_identifier_start(first_code_point(text).code)) return Value(false);
    while (!text.empty()) {
        const CodePoint point = first_code_point(text);
        if (!is_word(point.code)) return Value(false);
        text.remove_prefix(point.bytes);
    }
    return Value(true);
}

constexpr NativeSpec kSearchMethods[] = {
    {"startswith", "prefix start end", 1, has_end<false>},
    {"endswith", "suffix start end", 1, has_end<true>},
    {"find", "sub start end", 1, find<false>},
    {"rfind", "sub start end", 1, find<true>},
    {"index", "sub start end", 1, index<false>},
    {"rindex", "sub start end", 1, index<true>},
    {"count", "sub start end", 1, count},
    {"isalpha", "", 0, all_are<is_alpha>},
    {"isdigit", "", 0, all_are<is_digit>},
    {"isdecimal", "", 0, all_are<is_decimal>},
    {"isnumeric", "", 0, all_are<is_numeric>},
    {"isalnum", "", 0, all_are<is_alnum>},
    {"isspace", "", 0, all_are<is_space>},
    {"isascii", "", 0, isascii},
    {"isprintable", "", 0, isprintable},
    {"isidentifier", "", 0, isidentifier},
    {"islower", "", 0, is_cased_as<false>},
    {"isupper", "", 0, is_cased_as<true>},
    {"istitle", "", 0, istitle},
};

}  // namespace

std::span<const NativeSpec> text_search_methods() {
    return kSearchMethods;
}

}  // namespace pagoda::text::jinja
