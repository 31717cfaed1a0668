#include "text/jinja/program.h"

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/failure.h"

namespace pagoda::text::jinja {

base::Result<std::unique_ptr<Program>> Program::compile(std::string_view source) {
    constexpr std::size_t kMaxSourceBytes = 4U << 20;
    if (source.size() > kMaxSourceBytes) {
        return base::invalid(fmt::format("a chat template has at most {} bytes, got {}",
                                         kMaxSourceBytes, source.size()));
    }
    if (!base::is_valid_utf8(source)) return base::invalid("the chat template is not valid UTF-8");
    try {
        Parser parser(source);
        return std::unique_ptr<Program>(new Program(parser.parse()));
    } catch (const Failure& failure) {
        return base::Error{failure.code(),
                           fmt::format("chat template, line {}, column {}: {}", failure.line(),
                                       failure.column(), failure.message())};
    }
}

base::Result<std::string> Program::render(const RenderInput& input) const {
    Evaluator evaluator(*this, input);
    try {
        return evaluator.run();
    } catch (const Failure& failure) {
        if (failure.is_raised_by_template()) return base::Error{failure.code(), failure.message()};
        return base::Error{
            failure.code(),
            fmt::format("chat template, line {}: {}", evaluator.current_line(), failure.message())};
    }
}

}  // namespace pagoda::text::jinja
