// Json::dump: an own writer, iterative over the open containers.

#include <algorithm>
#include <cmath>

#include "base/double_text.h"
#include "base/json.h"
#include "base/utf8.h"

namespace pagoda::base {
namespace {

// A container that is being written: the next child and, when sorted, the order of the members.
struct Open {
    const Json* value = nullptr;
    std::size_t next = 0;
    std::vector<const Json::Member*> sorted = {};
};

class Writer {
  public:
    explicit Writer(const Json::DumpOptions& options) : options_(options) {}

    std::string write(const Json& root) {
        begin(root);
        while (!open_.empty()) step();
        return std::move(out_);
    }

  private:
    void begin(const Json& value);
    void step();
    void write_string(std::string_view text);
    void write_plain_escape(char character);
    void write_code_unit(unsigned unit);
    void write_above_ascii(char32_t code);
    void new_line(std::size_t depth) {
        if (options_.indent < 0) return;
        out_.push_back('\n');
        out_.append(static_cast<std::size_t>(options_.indent) * depth, ' ');
    }

    const Json::DumpOptions& options_;
    std::vector<Open> open_;
    std::string out_;
};

// Writes a scalar or an empty container whole; opens any other.
void Writer::begin(const Json& value) {
    switch (value.type()) {
        case Json::Type::kNull:
            out_.append("null");
            return;
        case Json::Type::kBool:
            out_.append(value.as_bool() ? "true" : "false");
            return;
        case Json::Type::kInt:
            out_.append(std::to_string(value.as_int()));
            return;
        case Json::Type::kDouble:
            out_.append(std::isfinite(value.as_double()) ? shortest_double(value.as_double())
                                                         : "null");
            return;
        case Json::Type::kString:
            write_string(value.as_string());
            return;
        case Json::Type::kArray:
            out_.append(value.as_array().empty() ? "[]" : "[");
            if (!value.as_array().empty()) open_.push_back({.value = &value});
            return;
        case Json::Type::kObject:
            out_.append(value.as_object().empty() ? "{}" : "{");
            if (!value.as_object().empty()) open_.push_back({.value = &value});
            break;
    }
    if (value.as_object().empty() || !options_.sort_keys) return;
    std::vector<const Json::Member*>& sorted = open_.back().sorted;
    for (const Json::Member& member : value.as_object()) sorted.push_back(&member);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto* a, const auto* b) { return a->first < b->first; });
}

// Writes the next child of the innermost open container, or closes it.
void Writer::step() {
    Open& top = open_.back();
    const bool is_array = top.value->is_array();
    const std::size_t size =
        is_array ? top.value->as_array().size() : top.value->as_object().size();
    if (top.next == size) {
        open_.pop_back();
        new_line(open_.size());
        out_.push_back(is_array ? ']' : '}');
        return;
    }
    if (top.next > 0) out_.append(options_.item_separator);
    new_line(open_.size());
    const std::size_t index = top.next++;
    if (is_array) {
        begin(top.value->as_array()[index]);
        return;
    }
    const Json::Member& member =
        top.sorted.empty() ? top.value->as_object()[index] : *top.sorted[index];
    write_string(member.first);
    out_.append(options_.key_separator);
    begin(member.second);
}

void Writer::write_string(std::string_view text) {
    out_.push_back('"');
    while (!text.empty()) {
        const auto first = static_cast<unsigned char>(text[0]);
        if (first < 0x80) {
            write_plain_escape(text[0]);
            text.remove_prefix(1);
            continue;
        }
        const Utf8Char character = decode_utf8(text);
        write_above_ascii(character.code);
        text.remove_prefix(character.bytes);
    }
    out_.push_back('"');
}

// An ASCII character, escaped if it must be.
void Writer::write_plain_escape(char character) {
    switch (character) {
        case '"':
            out_.append("\\\"");
            return;
        case '\\':
            out_.append("\\\\");
            return;
        case '\b':
            out_.append("\\b");
            return;
        case '\f':
            out_.append("\\f");
            return;
        case '\n':
            out_.append("\\n");
            return;
        case '\r':
            out_.append("\\r");
            return;
        case '\t':
            out_.append("\\t");
            return;
        default:
            break;
    }
    const auto code = static_cast<unsigned char>(character);
    if (code < 0x20 || (code == 0x7f && options_.ensure_ascii)) {
        write_code_unit(code);
    } else {
        out_.push_back(character);
    }
}

void Writer::write_code_unit(unsigned unit) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out_.append("\\u");
    for (int shift = 12; shift >= 0; shift -= 4) out_.push_back(kDigits[(unit >> shift) & 0xf]);
}

void Writer::write_above_ascii(char32_t code) {
    if (!options_.ensure_ascii) {
        append_utf8(out_, code);
    } else if (code < 0x10000) {
        write_code_unit(code);
    } else {
        const char32_t offset = code - 0x10000;
        write_code_unit(0xd800 + (offset >> 10));
        write_code_unit(0xdc00 + (offset & 0x3ff));
    }
}

}  // namespace

std::string Json::dump(const DumpOptions& options) const {
    return Writer(options).write(*this);
}

}  // namespace pagoda::base
