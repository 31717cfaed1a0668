#pragma once
// Failure: how a template error travels inside this folder. Lexing, parsing and evaluation are deep
// recursions in which any step may fail, so a failure is thrown, and caught in exactly two places:
// Program::compile and Program::render. Nothing outside the folder ever sees it.

#include <exception>
#include <string>
#include <utility>

#include "base/result.h"

namespace pagoda::text::jinja {

class Failure final : public std::exception {
  public:
    Failure(base::ErrorCode code, std::string message)
        : code_(code), message_(std::move(message)) {}
    Failure(base::ErrorCode code, std::string message, int line, int column)
        : code_(code), message_(std::move(message)), line_(line), column_(column) {}

    [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
    [[nodiscard]] base::ErrorCode code() const { return code_; }
    [[nodiscard]] const std::string& message() const { return message_; }
    [[nodiscard]] int line() const { return line_; }      // 0: not known
    [[nodiscard]] int column() const { return column_; }  // 0: not known
    // The template called raise_exception: the message is the template author's own.
    [[nodiscard]] bool is_raised_by_template() const { return raised_by_template_; }
    [[nodiscard]] static Failure raised(std::string message) {
        Failure failure(base::ErrorCode::kInvalidArgument, std::move(message));
        failure.raised_by_template_ = true;
        return failure;
    }

  private:
    base::ErrorCode code_;
    std::string message_;
    int line_ = 0;
    int column_ = 0;
    bool raised_by_template_ = false;
};

// The template or its input is at fault.
[[noreturn]] inline void fail(std::string message) {
    throw Failure(base::ErrorCode::kInvalidArgument, std::move(message));
}
// A limit of the render was passed.
[[noreturn]] inline void fail_limit(std::string message) {
    throw Failure(base::ErrorCode::kResourceExhausted, std::move(message));
}

}  // namespace pagoda::text::jinja
