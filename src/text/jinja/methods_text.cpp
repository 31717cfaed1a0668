// Methods of str that make new strings or split them.

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/format_string.h"
#include "text/jinja/native.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

template <std::string (*kChange)(std::string_view)>
Value changed_case(Runtime& runtime, const Value& self, const Bound&) {
    return runtime.heap().text(kChange(self.view()), self.text().is_markup);
}

template <Side kSide>
Value strip(Runtime& runtime, const Value& self, const Bound& arguments) {
    runtime.meter().tick_bytes(self.view().size());
    const std::string_view stripped =
        arguments.is_none(0) ? strip_space(self.view(), kSide)
                             : strip_characters(self.view(), arguments.view(0, ""), kSide);
    if (stripped.size() == self.view().size()) return self;
    return runtime.heap().text(std::string(stripped), self.text().is_markup);
}

template <bool kFromRight>
Value split(Runtime& runtime, const Value& self, const Bound& arguments) {
    SplitOptions options;
    options.from_right = kFromRight;
    options.limit = arguments.integer(1, -1);
    if (!arguments.is_none(0)) {
        options.separator = arguments.view(0, "");
        if (options.separator.empty()) fail("empty separator");
    }
    return split_text(runtime, self.view(), options);
}

Value splitlines(Runtime& runtime, const Value& self, const Bound& arguments) {
    std::vector<Value> lines;
    for (const std::string_view line : split_lines(self.view(), arguments.boolean(0, false))) {
        lines.push_back(runtime.heap().text(line));
    }
    return runtime.heap().list(std::move(lines));
}

Value replace(Runtime& runtime, const Value& self, const Bound& arguments) {
    return runtime.heap().text(replace_text(runtime, self.view(), arguments.view(0, ""),
                                            arguments.view(1, ""), arguments.integer(2, -1)),
                               self.text().is_markup);
}

Value format(Runtime& runtime, const Value& self, const Bound& arguments) {
    return format_braces(runtime, self, arguments.all());
}

Value format_map(Runtime& runtime, const Value& self, const Bound& arguments) {
    if (!arguments.at(0).is_dict()) fail("format_map() needs a mapping");
    CallArguments named;
    for (const auto& [key, value] : arguments.at(0).dict().entries()) {
        if (key.is_text()) named.named.emplace_back(std::string(key.view()), value);
    }
    return format_braces(runtime, self, named);
}

Value join(Runtime& runtime, const Value& self, const Bound& arguments) {
    const Value sequence = to_sequence(runtime, arguments.at(0));
    TextBuilder out(runtime.heap());
    bool is_first = true;
    for (const Value& item : sequence.items()) {
        if (!item.is_text()) {
            fail(fmt::format("sequence item: expected str instance, {} found", type_name(item)));
        }
        runtime.tick();
        if (!is_first) out.append(self.view());
        is_first = false;
        out.append(item.view());
    }
    return runtime.heap().text(out.take(), self.text().is_markup);
}

template <char kAlign>
Value pad(Runtime& runtime, const Value& self, const Bound& arguments) {
    const std::string_view fill = arguments.view(1, " ");
    if (count_code_points(fill) != 1) fail("The fill character must be exactly one character long");
    return runtime.heap().text(padded(runtime, self.view(), arguments.integer(0, 0), kAlign, fill));
}

Value zfill(Runtime& runtime, const Value& self, const Bound& arguments) {
    std::string_view text = self.view();
    const std::int64_t width = arguments.integer(0, 0);
    const bool is_signed = !text.empty() && (text[0] == '+' || text[0] == '-');
    const std::string sign(text.substr(0, is_signed ? 1 : 0));
    text.remove_prefix(sign.size());
    return runtime.heap().text(
        sign + padded(runtime, text, width - static_cast<std::int64_t>(sign.size()), '>', "0"));
}

Value removeprefix(Runtime& runtime, const Value& self, const Bound& arguments) {
    const std::string_view prefix = arguments.view(0, "");
    if (!self.view().starts_with(prefix)) return self;
    return runtime.heap().text(self.view().substr(prefix.size()));
}

Value removesuffix(Runtime& runtime, const Value& self, const Bound& arguments) {
    const std::string_view suffix = arguments.view(0, "");
    if (!self.view().ends_with(suffix)) return self;
    return runtime.heap().text(self.view().substr(0, self.view().size() - suffix.size()));
}

template <bool kFromRight>
Value partition(Runtime& runtime, const Value& self, const Bound& arguments) {
    const std::string_view text = self.view(), separator = arguments.view(0, "");
    if (separator.empty()) fail("empty separator");
    const auto found =
        kFromRight ? find_last_text(runtime, text, separator) : find_text(runtime, text, separator);
    Heap& heap = runtime.heap();
    if (!found) {
        return kFromRight ? heap.tuple({heap.text(""), heap.text(""), self})
                          : heap.tuple({self, heap.text(""), heap.text("")});
    }
    return heap.tuple({heap.text(text.substr(0, *found)), arguments.at(0),
                       heap.text(text.substr(*found + separator.size()))});
}

Value expandtabs(Runtime& runtime, const Value& self, const Bound& arguments) {
    const std::int64_t size = arguments.integer(0, 8);
    TextBuilder out(runtime.heap());
    std::int64_t column = 0;
    for (std::size_t at = 0; at < self.view().size();) {
        const CodePoint point = first_code_point(self.view().substr(at));
        if (point.code == '\t') {
            const std::int64_t blanks = size > 0 ? size - column % size : 0;
            out.fill(static_cast<std::size_t>(blanks), " ");
            column += blanks;
        } else {
            out.append(self.view().substr(at, point.bytes));
            column = point.code == '\n' || point.code == '\r' ? 0 : column + 1;
        }
        at += point.bytes;
    }
    return runtime.heap().text(out.take());
}

constexpr NativeSpec kTextMethods[] = {
    {"split", "sep maxsplit", 0, split<false>},
    {"rsplit", "sep maxsplit", 0, split<true>},
    {"strip", "chars", 0, strip<Side::kBoth>},
    {"lstrip", "chars", 0, strip<Side::kLeft>},
    {"rstrip", "chars", 0, strip<Side::kRight>},
    {"replace", "old new count", 2, replace},
    {"upper", "", 0, changed_case<to_upper>},
    {"lower", "", 0, changed_case<to_lower>},
    {"title", "", 0, changed_case<to_title>},
    {"capitalize", "", 0, changed_case<to_capitalized>},
    {"swapcase", "", 0, changed_case<swap_case>},
    {"casefold", "", 0, changed_case<fold_case>},
    {"format", "*", 0, format},
    {"format_map", "mapping", 1, format_map},
    {"join", "iterable", 1, join},
    {"splitlines", "keepends", 0, splitlines},
    {"center", "width fillchar", 1, pad<'^'>},
    {"ljust", "width fillchar", 1, pad<'<'>},
    {"rjust", "width fillchar", 1, pad<'>'>},
    {"zfill", "width", 1, zfill},
    {"removeprefix", "prefix", 1, removeprefix},
    {"removesuffix", "suffix", 1, removesuffix},
    {"partition", "sep", 1, partition<false>},
    {"rpartition", "sep", 1, partition<true>},
    {"expandtabs", "tabsize", 0, expandtabs},
};

}  // namespace

std::span<const NativeSpec> text_methods() {
    return kTextMethods;
}

}  // namespace pagoda::text::jinja
