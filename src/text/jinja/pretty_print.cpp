#include "text/jinja/pretty_print.h"

#include <algorithm>

#include "text/jinja/failure.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

constexpr std::int64_t kWidth = 80;

// Where a value stands: columns in front of it, and what must fit behind it.
struct Place {
    std::int64_t indent = 0;
    std::int64_t allowance = 0;
    bool is_outermost = false;
};

std::int64_t length_of_text(std::string_view text) {
    return static_cast<std::int64_t>(count_code_points(text));
}

class PrettyPrinter {
  public:
    explicit PrettyPrinter(Runtime& runtime) : runtime_(runtime), out_(runtime.heap()) {}

    std::string run(const Value& value) {
        write(value, {0, 0, true});
        return out_.take();
    }

  private:
    void write(const Value& value, Place place) {
        const Runtime::Level level(runtime_);
        runtime_.tick();
        const std::string flat = repr(value);
        const bool fits = length_of_text(flat) <= kWidth - place.indent - place.allowance;
        if (!fits && value.is_dict() && value.dict().size() != 0) {
            write_dict(value.dict(), place);
        } else if (!fits && value.is_sequence() && !value.items().empty()) {
            write_items(value, place);
        } else if (!fits && value.is_text()) {
            write_text(value.view(), flat, place);
        } else {
            out_.append(flat);
        }
    }

    // Sorted by key where keys can be compared; otherwise by the names of their types.
    std::vector<const Dict::Entry*> sorted_entries(const Dict& dict) {
        std::vector<const Dict::Entry*> entries;
        for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
        const auto is_comparable = [](const Value& a, const Value& b) {
            return (a.is_text() && b.is_text()) || (a.is_number() && b.is_number());
        };
        std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
            if (is_comparable(a->first, b->first)) {
                return less(runtime_.meter(), a->first, b->first);
            }
            return type_name(a->first) < type_name(b->first);
        });
        return entries;
    }

    std::string repr(const Value& value) {
        TextBuilder flat(runtime_.heap());
        append_sorted_repr(flat, value);
        return flat.take();
    }

    // repr() with the keys of dictionaries in order.
    void append_sorted_repr(TextBuilder& flat, const Value& value) {
        const Runtime::Level level(runtime_);
        runtime_.tick();
        if (value.is_dict()) {
            flat.append('{');
            bool is_first = true;
            for (const Dict::Entry* entry : sorted_entries(value.dict())) {
                if (!is_first) flat.append(", ");
                is_first = false;
                append_sorted_repr(flat, entry->first);
                flat.append(": ");
                append_sorted_repr(flat, entry->second);
            }
            flat.append('}');
        } else if (value.is_sequence()) {
            flat.append(value.is_tuple() ? '(' : '[');
            bool is_first = true;
            for (const Value& item : value.items()) {
                if (!is_first) flat.append(", ");
                is_first = false;
                append_sorted_repr(flat, item);
            }
            if (value.is_tuple() && value.items().size() == 1) flat.append(',');
            flat.append(value.is_tuple() ? ')' : ']');
        } else {
            append_repr(runtime_, flat, value);
        }
    }

    void break_line(std::int64_t indent) {
        out_.append('\n');
        out_.fill(static_cast<std::size_t>(indent), " ");
    }

    void write_items(const Value& sequence, Place place) {
        const std::string_view end = !sequence.is_tuple()           ? "]"
                                     : sequence.items().size() == 1 ? ",)"
                                                                    : ")";
        out_.append(sequence.is_tuple() ? '(' : '[');
        const std::int64_t indent = place.indent + 1;
        const std::size_t count = sequence.items().size();
        for (std::size_t at = 0; at < count; ++at) {
            const std::int64_t behind =
                at + 1 == count ? place.allowance + static_cast<std::int64_t>(end.size()) : 1;
            write(sequence.items()[at], {indent, behind, false});
            if (at + 1 == count) break;
            out_.append(',');
            break_line(indent);
        }
        out_.append(end);
    }

    void write_dict(const Dict& dict, Place place) {
        out_.append('{');
        const std::int64_t indent = place.indent + 1;
        const auto entries = sorted_entries(dict);
        for (std::size_t at = 0; at < entries.size(); ++at) {
            const bool is_last = at + 1 == entries.size();
            const std::string key = repr(entries[at]->first);
            out_.append(key);
            out_.append(": ");
            write(entries[at]->second,
                  {indent + length_of_text(key) + 2, is_last ? place.allowance + 1 : 1, false});
            if (is_last) break;
            out_.append(',');
            break_line(indent);
        }
        out_.append('}');
    }

    // A long string becomes several literals, broken at line ends and then at blanks.
    void write_text(std::string_view text, std::string_view flat, Place place) {
        if (place.is_outermost) {
            ++place.indent;
            ++place.allowance;
        }
        std::vector<std::string> chunks;
        const std::int64_t width = kWidth - place.indent;
        const std::vector<std::string_view> lines = split_lines(text, true);
        for (std::size_t at = 0; at < lines.size(); ++at) {
            const bool is_last = at + 1 == lines.size();
            std::string line = quoted(lines[at]);
            if (length_of_text(line) <= width - (is_last ? place.allowance : 0)) {
                chunks.push_back(std::move(line));
            } else {
                split_words(lines[at], width, is_last ? place.allowance : 0, chunks);
            }
        }
        if (chunks.size() == 1) return out_.append(flat);
        if (place.is_outermost) out_.append('(');
        for (std::size_t at = 0; at < chunks.size(); ++at) {
            if (at > 0) break_line(place.indent);
            out_.append(chunks[at]);
        }
        if (place.is_outermost) out_.append(')');
    }

    void split_words(std::string_view line, std::int64_t width, std::int64_t allowance,
                     std::vector<std::string>& chunks) {
        std::string_view current = line.substr(0, 0);
        while (current.data() + current.size() < line.data() + line.size()) {
            const auto at = static_cast<std::size_t>(current.data() + current.size() - line.data());
            const std::size_t end = word_end(line, at);
            const auto begin = static_cast<std::size_t>(current.data() - line.data());
            const std::string_view candidate = line.substr(begin, end - begin);
            if (end == line.size()) width -= allowance;
            runtime_.tick(1 + static_cast<std::int64_t>(candidate.size() / 64));
            if (length_of_text(quoted(candidate)) > width) {
                if (!current.empty()) chunks.push_back(quoted(current));
                current = line.substr(at, end - at);
            } else {
                current = candidate;
            }
        }
        if (!current.empty()) chunks.push_back(quoted(current));
    }

    // A word and the blanks behind it.
    static std::size_t word_end(std::string_view line, std::size_t at) {
        for (const bool wants_space : {false, true}) {
            while (at < line.size()) {
                const CodePoint point = first_code_point(line.substr(at));
                if (is_space(point.code) != wants_space) break;
                at += point.bytes;
            }
        }
        return at;
    }

    Runtime& runtime_;
    TextBuilder out_;
};

}  // namespace

std::string pretty_print(Runtime& runtime, const Value& value) {
    return PrettyPrinter(runtime).run(value);
}

}  // namespace pagoda::text::jinja
