// Any text as a JSON document: what parses is printed, in every form, as text that parses again to
// the same value and prints the same; what does not is refused with one line. Limits hold.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"

namespace {

using namespace pagoda;
using base::Json;

constexpr Json::ParseLimits kTight{.max_depth = 4, .max_values = 16};

struct Extent {
    int depth = 0;  // containers inside each other
    std::size_t values = 0;
};

Extent extent_of(const Json& document) {
    Extent extent;
    std::vector<std::pair<const Json*, int>> open = {{&document, 0}};
    while (!open.empty()) {
        const auto [value, outer] = open.back();
        open.pop_back();
        ++extent.values;
        if (!value->is_array() && !value->is_object()) continue;
        extent.depth = std::max(extent.depth, outer + 1);
        if (value->is_array()) {
            for (const Json& item : value->as_array()) open.emplace_back(&item, outer + 1);
        } else {
            for (const auto& [key, item] : value->as_object()) open.emplace_back(&item, outer + 1);
        }
    }
    return extent;
}

void check_error(const base::Error& error) {
    CHECK(!error.message.empty() && base::is_valid_utf8(error.message) &&
              error.message.find('\n') == std::string::npos,
          "an error that is not one line of text");
}

void check_printed(const Json& document) {
    const std::string plain = document.dump();
    constexpr std::array<Json::DumpOptions, 4> kForms = {{
        {},
        {.indent = 2},
        {.item_separator = ", ", .key_separator = ": "},
        {.ensure_ascii = true},
    }};
    for (const Json::DumpOptions& form : kForms) {
        const std::string text = document.dump(form);
        CHECK(base::is_valid_utf8(text), "the text is not UTF-8");
        const auto again = Json::parse(text);
        CHECK(again.ok(), "what was printed does not parse");
        CHECK(*again == document && again->dump() == plain, "what was printed is another value");
    }
    const Json copy = document;
    CHECK(copy == document && copy.dump() == plain, "a copy is another value");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto document = Json::parse(text);
    const auto small = Json::parse(text, kTight);
    if (!small.ok()) check_error(small.error());
    if (!document.ok()) {
        check_error(document.error());
        CHECK(!small.ok(), "tighter limits took what wider ones refuse");
        return 0;
    }
    const Extent extent = extent_of(*document);
    CHECK(small.ok() == (extent.depth <= kTight.max_depth && extent.values <= kTight.max_values),
          "the limits do not hold");
    check_printed(*document);
    return 0;
}
