#include "text/jinja/text_operations.h"

#include <algorithm>
#include <cstring>

#include <string.h>  // NOLINT: memmem is no part of <cstring>

#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

// memmem is linear for long needles (two-way search).
std::size_t find_from(std::string_view text, std::string_view part, std::size_t from) {
    const void* const found =
        memmem(text.data() + from, text.size() - from, part.data(), part.size());
    if (found == nullptr) return std::string_view::npos;
    return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Splits an empty needle's way: the replacement goes before each character and to the end.
std::string interleave(Runtime& runtime, std::string_view text, std::string_view filling,
                       std::int64_t count) {
    TextBuilder out(runtime.heap());
    for (std::size_t at = 0; at < text.size();) {
        if (count != 0) out.append(filling), --count;
        const std::size_t bytes = first_code_point(text.substr(at)).bytes;
        out.append(text.substr(at, bytes));
        at += bytes;
        runtime.tick();
    }
    if (count != 0) out.append(filling);
    return out.take();
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t limit) {
    std::vector<std::string_view> parts;
    text = strip_space(text, Side::kLeft);
    while (!text.empty()) {
        if (limit >= 0 && static_cast<std::int64_t>(parts.size()) >= limit) {
            parts.push_back(text);
            break;
        }
        std::size_t end = 0;
        while (end < text.size()) {
            const CodePoint point = first_code_point(text.substr(end));
            if (is_space(point.code)) break;
            end += point.bytes;
        }
        parts.push_back(text.substr(0, end));
        text = strip_space(text.substr(end), Side::kLeft);
    }
    return parts;
}

// Parts from the right, last first.
std::vector<std::string_view> split_at_space_from_right(std::string_view text, std::int64_t limit) {
    std::vector<std::string_view> parts;
    text = strip_space(text, Side::kRight);
    while (!text.empty()) {
        if (limit >= 0 && static_cast<std::int64_t>(parts.size()) >= limit) {
            parts.push_back(text);
            break;
        }
        std::size_t begin = text.size();
        while (begin > 0) {
            const std::size_t previous = previous_offset(text, begin);
            if (is_space(first_code_point(text.substr(previous)).code)) break;
            begin = previous;
        }
        parts.push_back(text.substr(begin));
        text = strip_space(text.substr(0, begin), Side::kRight);
    }
    return parts;
}

}  // namespace

std::optional<std::size_t> find_text(Runtime& runtime, std::string_view text,
                                     std::string_view part) {
    runtime.meter().tick_bytes(text.size());
    if (part.empty()) return 0;
    const std::size_t found = find_from(text, part, 0);
    return found == std::string_view::npos ? std::nullopt : std::optional<std::size_t>(found);
}

std::optional<std::size_t> find_last_text(Runtime& runtime, std::string_view text,
                                          std::string_view part) {
    if (part.empty()) return text.size();
    if (part.size() > text.size()) return {};
    std::size_t compared = 0;
    for (std::size_t at = text.size() - part.size() + 1; at > 0;) {
        --at;
        if (text[at] != part[0]) continue;
        if (std::memcmp(text.data() + at, part.data(), part.size()) == 0) return at;
        compared += part.size();
        if (compared > 4096) {
            runtime.meter().tick_bytes(compared);
            compared = 0;
        }
    }
    runtime.meter().tick_bytes(text.size());
    return {};
}

std::string replace_text(Runtime& runtime, std::string_view text, std::string_view from,
                         std::string_view to, std::int64_t count) {
    runtime.meter().tick_bytes(text.size());
    if (from.empty()) return interleave(runtime, text, to, count);
    TextBuilder out(runtime.heap());
    std::size_t at = 0;
    while (count != 0) {
        const std::size_t found = find_from(text, from, at);
        if (found == std::string_view::npos) break;
        out.append(text.substr(at, found - at));
        out.append(to);
        at = found + from.size();
        --count;
        runtime.tick();
    }
    out.append(text.substr(at));
    return out.take();
}

Value split_text(Runtime& runtime, std::string_view text, const SplitOptions& options) {
    runtime.meter().tick_bytes(text.size());
    // Each part costs a value; views of them are counted before they are made.
    std::vector<std::string_view> parts;
    const std::string_view separator = options.separator;
    if (separator.empty()) {
        parts = options.from_right ? split_at_space_from_right(text, options.limit)
                                   : split_at_space(text, options.limit);
    } else if (options.from_right) {
        std::int64_t limit = options.limit;
        while (limit != 0) {
            const auto found = find_last_text(runtime, text, separator);
            if (!found) break;
            parts.push_back(text.substr(*found + separator.size()));
            text = text.substr(0, *found);
            --limit;
        }
        parts.push_back(text);
    } else {
        std::int64_t limit = options.limit;
        while (limit != 0) {
            const std::size_t found = find_from(text, separator, 0);
            if (found == std::string_view::npos) break;
            parts.push_back(text.substr(0, found));
            text.remove_prefix(found + separator.size());
            --limit;
        }
        parts.push_back(text);
    }
    if (options.from_right) std::reverse(parts.begin(), parts.end());
    std::vector<Value> items;
    runtime.heap().require(parts.size() * sizeof(Value));
    items.reserve(parts.size());
    for (const std::string_view part : parts) items.push_back(runtime.heap().text(part));
    return runtime.heap().list(std::move(items));
}

std::string padded(Runtime& runtime, std::string_view text, std::int64_t width, char align,
                   std::string_view fill) {
    const auto length = static_cast<std::int64_t>(count_code_points(text));
    const std::int64_t missing = std::max<std::int64_t>(width, length) - length;
    std::int64_t before = 0;
    if (align == '>') before = missing;
    // Python gives the odd blank to the left only when the width is odd.
    if (align == '^') before = missing / 2 + (missing & width & 1);
    TextBuilder out(runtime.heap());
    out.fill(static_cast<std::size_t>(before), fill);
    out.append(text);
    out.fill(static_cast<std::size_t>(missing - before), fill);
    return out.take();
}

}  // namespace pagoda::text::jinja
