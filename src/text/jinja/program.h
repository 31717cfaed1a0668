#pragma once
// Program: a template compiled once. Immutable and thread-safe; every render has its own state.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/parser.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

struct Limits {
    std::int64_t max_steps = 20'000'000;
    std::size_t max_bytes = 64U << 20;
    int max_depth = 200;
    std::chrono::milliseconds max_time{2000};
};

struct RenderInput {
    std::vector<std::pair<std::string, Value>> variables;
    std::string date_now;  // for strftime_now; empty: now, in local time
    Limits limits;
};

class Program final {
  public:
    // Errors: "chat template, line 3, column 7: ...".
    [[nodiscard]] static base::Result<std::unique_ptr<Program>> compile(std::string_view source);

    // Errors: what raise_exception was given, word for word; else "chat template, line 3: ...".
    [[nodiscard]] base::Result<std::string> render(const RenderInput& input) const;

    [[nodiscard]] const SyntaxTree& tree() const { return tree_; }

  private:
    explicit Program(SyntaxTree tree) : tree_(std::move(tree)) {}
    SyntaxTree tree_;
};

}  // namespace pagoda::text::jinja
