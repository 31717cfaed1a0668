// Filters that turn one string into another. As in Jinja they take any value and use its str().

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/format_string.h"
#include "text/jinja/json_text.h"
#include "text/jinja/native.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

template <std::string (*kChange)(std::string_view)>
Value changed_case(Runtime& runtime, const Value& subject, const Bound&) {
    const Value text = to_text(runtime, subject);
    return runtime.heap().text(kChange(text.view()), text.text().is_markup);
}

// Words begin after blanks, hyphens and opening brackets, unlike str.title.
Value title(Runtime& runtime, const Value& subject, const Bound&) {
    const Value text = to_text(runtime, subject);
    const std::string_view view = text.view();
    std::string out;
    for (std::size_t begin = 0; begin < view.size();) {
        std::size_t end = begin;
        bool is_break = false;
        while (end < view.size()) {
            const CodePoint point = first_code_point(view.substr(end));
            const bool breaks = is_space(point.code) || point.code == '-' || point.code == '(' ||
                                point.code == '{' || point.code == '[' || point.code == '<';
            if (end == begin) is_break = breaks;
            if (breaks != is_break) break;
            end += point.bytes;
        }
        const std::string_view word = view.substr(begin, end - begin);
        const std::size_t first = first_code_point(word).bytes;
        out += to_upper(word.substr(0, first));
        out += to_lower(word.substr(first));
        begin = end;
    }
    return runtime.heap().text(std::move(out));
}

Value trim(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const Value text = to_text(runtime, subject);
    runtime.meter().tick_bytes(text.view().size());
    const std::string_view stripped = arguments.is_none(0)
                                          ? strip_space(text.view())
                                          : strip_characters(text.view(), arguments.view(0, ""));
    if (stripped.size() == text.view().size()) return text;
    return runtime.heap().text(std::string(stripped), text.text().is_markup);
}

Value replace(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const Value from = to_text(runtime, arguments.at(0));
    const Value to = to_text(runtime, arguments.at(1));
    const std::int64_t count = arguments.is_none(2) ? -1 : arguments.integer(2, -1);
    return runtime.heap().text(
        replace_text(runtime, to_text(runtime, subject).view(), from.view(), to.view(), count));
}

Value string(Runtime& runtime, const Value& subject, const Bound&) {
    return to_text(runtime, subject);
}

Value format(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const CallArguments& given = arguments.all();
    if (!given.positional.empty() && !given.named.empty()) {
        fail("format takes positional or keyword arguments, not both");
    }
    const Value text = to_text(runtime, subject);
    if (given.named.empty()) {
        return format_percent(runtime, text, runtime.heap().tuple(given.positional));
    }
    auto values = runtime.heap().new_dict(given.named.size());
    for (const auto& [name, value] : given.named) values->append(runtime.heap().text(name), value);
    return format_percent(runtime, text, runtime.heap().dict(std::move(values)));
}

Value tojson(Runtime& runtime, const Value& subject, const Bound& arguments) {
    JsonStyle style;
    style.ensure_ascii = arguments.boolean(0, false);
    style.sort_keys = arguments.boolean(3, false);
    if (!arguments.is_none(1)) {
        style.is_indented = true;
        style.item_separator = ",";
        if (arguments.at(1).is_text()) {
            style.indent = arguments.at(1).view();
        } else {
            const std::int64_t width = std::max<std::int64_t>(arguments.integer(1, 0), 0);
            runtime.heap().require(static_cast<std::size_t>(width));
            style.indent.assign(static_cast<std::size_t>(width), ' ');
        }
    }
    if (!arguments.is_none(2)) {
        const Value& pair = arguments.at(2);
        if (!pair.is_sequence() || pair.items().size() != 2 || !pair.items()[0].is_text() ||
            !pair.items()[1].is_text()) {
            fail("tojson() needs two strings for 'separators'");
        }
        style.item_separator = pair.items()[0].view();
        style.key_separator = pair.items()[1].view();
    }
    return runtime.heap().text(dump_json(runtime, subject, style));
}

bool is_unreserved(char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '.' || c == '-' || c == '~';
}

std::string percent_encoded(std::string_view text, bool is_query) {
    std::string out;
    for (const char c : text) {
        if (is_unreserved(c) || (c == '/' && !is_query)) {
            out += c;
        } else if (c == ' ' && is_query) {
            out += '+';
        } else {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        }
    }
    return out;
}

Value urlencode(Runtime& runtime, const Value& subject, const Bound&) {
    if (subject.is_text() || !is_iterable(subject)) {
        return runtime.heap().text(percent_encoded(to_string(runtime, subject), false));
    }
    TextBuilder out(runtime.heap());
    const auto append = [&](const Value& key, const Value& value) {
        if (!out.str().empty()) out.append('&');
        out.append(percent_encoded(to_string(runtime, key), true));
        out.append('=');
        out.append(percent_encoded(to_string(runtime, value), true));
    };
    if (subject.is_dict()) {
        for (const auto& [key, value] : subject.dict().entries()) append(key, value);
    } else {
        const Value sequence = to_sequence(runtime, subject);
        for (const Value& item : sequence.items()) {
            const Value pair = to_sequence(runtime, item);
            if (pair.items().size() != 2) fail("urlencode() needs pairs of name and value");
            append(pair.items()[0], pair.items()[1]);
        }
    }
    return runtime.heap().text(out.take());
}

constexpr NativeSpec kTextFilters[] = {
    {"upper", "", 0, changed_case<to_upper>},
    {"lower", "", 0, changed_case<to_lower>},
    {"capitalize", "", 0, changed_case<to_capitalized>},
    {"title", "", 0, title},
    {"trim", "chars", 0, trim},
    {"replace", "old new count", 2, replace},
    {"string", "", 0, string},
    {"format", "*", 0, format},
    {"tojson", "ensure_ascii indent separators sort_keys", 0, tojson},
    {"urlencode", "", 0, urlencode},
};

}  // namespace

std::span<const NativeSpec> text_filters() {
    return kTextFilters;
}

}  // namespace pagoda::text::jinja
