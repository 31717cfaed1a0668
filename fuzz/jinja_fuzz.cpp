// Any template over any small variables: no crash, no leak, limits hold, and what compiles gives
// the same text twice. The input is a template, then optionally a zero byte and JSON variables.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/jinja/json_text.h"
#include "text/jinja/program.h"

using namespace pagoda;

namespace {

constexpr std::string_view kVariables = R"({
    "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "\u00e9 x"},
                 {"role": "assistant", "content": null, "tool_calls": [
                     {"id": "abc123XYZ", "function": {"name": "f", "arguments": {"k": [1, 2.5]}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true, "n": 7, "f": 2.5, "s": "text", "nothing": null, "t": true,
    "items": [3, 1, 2], "d": {"b": 2, "a": 1}})";

text::jinja::RenderInput make_input(const base::Json& variables) {
    text::jinja::RenderInput input;
    input.limits.max_steps = 20'000;
    input.limits.max_bytes = 1U << 20;
    input.limits.max_depth = 40;
    input.limits.max_time = std::chrono::milliseconds(5000);
    input.date_now = "2025-03-09T00:00:00";
    for (const auto& [name, value] : variables.as_object()) {
        input.variables.emplace_back(name, text::jinja::from_json(value));
    }
    return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const std::size_t end = bytes.find('\0');
    auto program = text::jinja::Program::compile(bytes.substr(0, end));
    if (!program.ok()) return 0;
    static const base::Json standard = base::Json::parse(kVariables).value();
    base::Json variables = standard;
    if (end != std::string_view::npos) {
        auto parsed = base::Json::parse(bytes.substr(end + 1));
        if (parsed.ok() && parsed->is_object()) variables = std::move(parsed).value();
    }
    const auto input = make_input(variables);
    const auto first = program.value()->render(input);
    if (!first.ok()) return 0;
    CHECK(first->size() <= input.limits.max_bytes, "the text is over its limit");
    CHECK(base::is_valid_utf8(first.value()), "the text is not UTF-8");
    const auto second = program.value()->render(input);
    CHECK(second.ok() && second.value() == first.value(), "two renders differ");
    return 0;
}
