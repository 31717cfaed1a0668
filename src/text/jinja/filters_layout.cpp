// Filters that lay text out: indentation, width, words.

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/operations.h"
#include "text/jinja/pretty_print.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode.h"
#include "text/jinja/word_wrap.h"

namespace pagoda::text::jinja {

namespace {

Value center(Runtime& runtime, const Value& subject, const Bound& arguments) {
    return runtime.heap().text(
        padded(runtime, to_text(runtime, subject).view(), arguments.integer(0, 80), '^', " "));
}

// Jinja adds a newline in front of splitting, so that a last empty line is kept.
std::vector<std::string_view> lines_of(const std::string& text_and_newline) {
    return split_lines(text_and_newline, false);
}

Value indent(Runtime& runtime, const Value& subject, const Bound& arguments) {
    require_defined(subject);
    if (!subject.is_text())
        fail(fmt::format("indent() needs a string, got {}", type_name(subject)));
    std::string indentation;
    if (arguments.has(0) && arguments.at(0).is_text()) {
        indentation = arguments.at(0).view();
    } else {
        const std::int64_t width = std::max<std::int64_t>(arguments.integer(0, 4), 0);
        runtime.heap().require(static_cast<std::size_t>(width));
        indentation.assign(static_cast<std::size_t>(width), ' ');
    }
    const bool indents_first = arguments.boolean(1, false);
    const bool indents_blank = arguments.boolean(2, false);
    const std::string text = std::string(subject.view()) + "\n";
    TextBuilder out(runtime.heap());
    if (indents_first) out.append(indentation);
    bool is_first = true;
    for (const std::string_view line : lines_of(text)) {
        if (!is_first) {
            out.append('\n');
            if (indents_blank || !line.empty()) out.append(indentation);
        }
        is_first = false;
        out.append(line);
        runtime.tick();
    }
    return runtime.heap().text(out.take(), subject.text().is_markup);
}

Value truncate(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const std::int64_t length = arguments.integer(0, 255);
    const std::string_view end = arguments.view(2, "...");
    const std::int64_t leeway = arguments.is_none(3) ? 5 : arguments.integer(3, 5);
    const auto end_length = static_cast<std::int64_t>(count_code_points(end));
    if (length < end_length) {
        fail(fmt::format("truncate() needs a length of at least {}, got {}", end_length, length));
    }
    if (leeway < 0) fail(fmt::format("truncate() needs a leeway of at least 0, got {}", leeway));
    const auto size = length_of(subject);
    if (!size) fail(fmt::format("object of type '{}' has no len()", type_name(subject)));
    if (*size <= length || *size - length <= leeway) return subject;
    if (!subject.is_text()) {
        fail(fmt::format("truncate() can't shorten a value of type {}", type_name(subject)));
    }
    const Value& text = subject;
    std::string_view kept = text.view().substr(
        0, offset_of(text.view(), static_cast<std::size_t>(length - end_length)));
    if (!arguments.boolean(1, false)) kept = kept.substr(0, kept.rfind(' '));
    return runtime.heap().text(std::string(kept) + std::string(end));
}

Value wordwrap(Runtime& runtime, const Value& subject, const Bound& arguments) {
    require_defined(subject);
    if (!subject.is_text()) {
        fail(fmt::format("wordwrap() needs a string, got {}", type_name(subject)));
    }
    const Value& text = subject;
    WrapOptions options;
    options.width = arguments.integer(0, 79);
    options.break_long_words = arguments.boolean(1, true);
    options.break_on_hyphens = arguments.boolean(3, true);
    const std::string_view separator = arguments.is_none(2) ? "\n" : arguments.view(2, "\n");
    TextBuilder out(runtime.heap());
    bool is_first = true;
    for (const std::string_view line : split_lines(text.view(), false)) {
        if (!is_first) out.append(separator);
        is_first = false;
        bool is_first_part = true;
        for (const std::string& part : wrap_line(runtime, line, options)) {
            if (!is_first_part) out.append(separator);
            is_first_part = false;
            out.append(part);
        }
    }
    return runtime.heap().text(out.take());
}

Value wordcount(Runtime& runtime, const Value& subject, const Bound&) {
    const Value text = to_text(runtime, subject);
    runtime.meter().tick_bytes(text.view().size());
    std::int64_t words = 0;
    bool in_word = false;
    for (std::string_view rest = text.view(); !rest.empty();) {
        const CodePoint point = first_code_point(rest);
        rest.remove_prefix(point.bytes);
        const bool is_part = is_word(point.code);
        if (is_part && !in_word) ++words;
        in_word = is_part;
    }
    return Value(words);
}

Value pprint(Runtime& runtime, const Value& subject, const Bound&) {
    return runtime.heap().text(pretty_print(runtime, subject));
}

constexpr NativeSpec kLayoutFilters[] = {
    {"center", "width", 0, center},
    {"indent", "width first blank", 0, indent},
    {"truncate", "length killwords end leeway", 0, truncate},
    {"wordwrap", "width break_long_words wrapstring break_on_hyphens", 0, wordwrap},
    {"wordcount", "", 0, wordcount},
    {"pprint", "", 0, pprint},
};

}  // namespace

std::span<const NativeSpec> layout_filters() {
    return kLayoutFilters;
}

}  // namespace pagoda::text::jinja
