#pragma once
// The attribute argument of map, sort and their kind: "a.b.0", an index, or nothing at all.

#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/native.h"
#include "text/jinja/runtime.h"

namespace pagoda::text::jinja {

class AttributePath final {
  public:
    // Gives the item itself.
    AttributePath() = default;
    // Of a value given by the template: a string, an integer or none.
    AttributePath(Runtime& runtime, const Value& attribute);

    // Strings come in lower case from then on, for comparisons that ignore case.
    void fold_case() { folds_case_ = true; }
    // What stands in for undefined values.
    void set_default(Value value) { default_ = std::move(value); }
    [[nodiscard]] Value of(Runtime& runtime, const Value& item) const;

  private:
    std::vector<Value> parts_;
    std::optional<Value> default_;
    bool folds_case_ = false;
};

// In lower case when it is a string.
[[nodiscard]] Value folded(Runtime& runtime, const Value& value);

}  // namespace pagoda::text::jinja
