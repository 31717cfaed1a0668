#include "text/jinja/attribute_path.h"

#include <algorithm>

#include "text/jinja/failure.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

AttributePath::AttributePath(Runtime& runtime, const Value& attribute) {
    if (attribute.is_none()) return;
    if (!attribute.is_text()) {
        parts_.push_back(attribute);
        return;
    }
    std::string_view rest = attribute.view();
    for (;;) {
        const std::size_t end = std::min(rest.find('.'), rest.size());
        const std::string_view part = rest.substr(0, end);
        const bool is_index = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
            return c >= '0' && c <= '9';
        });
        parts_.push_back(is_index ? Value(*parse_integer(part, 10)) : runtime.heap().text(part));
        if (end == rest.size()) return;
        rest.remove_prefix(end + 1);
    }
}

Value AttributePath::of(Runtime& runtime, const Value& item) const {
    Value value = item;
    for (const Value& part : parts_) {
        value = get_item(runtime, value, part);
        if (default_ && value.is_undefined()) value = *default_;
    }
    return folds_case_ ? folded(runtime, value) : value;
}

Value folded(Runtime& runtime, const Value& value) {
    return value.is_text() ? runtime.heap().text(to_lower(value.view())) : value;
}

}  // namespace pagoda::text::jinja
