#pragma once
// Result<T>: the value of an operation on outside input, or an Error that a user can act on.
// A value type; not thread-safe. Broken invariants use CHECK (check.h), "no room" uses optional.

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace pagoda::base {

enum class ErrorCode {
    kInvalidArgument,    // the caller sent something malformed or out of range
    kNotFound,           // a named thing does not exist
    kUnsupported,        // well formed, known, and not offered
    kResourceExhausted,  // a limit on memory, queue or size
    kUnavailable,        // may work later
    kCancelled,
    kDeadlineExceeded,
    kDataLoss,  // a damaged or truncated file
    kIo,        // the operating system refused
    kInternal,  // our fault
};

struct Error {
    ErrorCode code = ErrorCode::kInternal;
    // One line: what was wrong, the value, the limit, and what to do.
    std::string message;
    // The field, key, flag or tensor at fault; empty when there is none.
    std::string param = {};
};

template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    [[nodiscard]] T& value() & {
        CHECK(ok(), error_message());
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] const T& value() const& {
        CHECK(ok(), error_message());
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] T value() && {
        CHECK(ok(), error_message());
        return std::move(*std::get_if<0>(&state_));
    }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T operator*() && { return std::move(*this).value(); }

    // REQUIRES: !ok()
    [[nodiscard]] const Error& error() const& {
        CHECK(!ok(), "error() of a success");
        return *std::get_if<1>(&state_);
    }
    [[nodiscard]] Error error() && {
        CHECK(!ok(), "error() of a success");
        return std::move(*std::get_if<1>(&state_));
    }

  private:
    [[nodiscard]] std::string error_message() const { return ok() ? "" : error().message; }
    std::variant<T, Error> state_;
};

// The Result of an operation without a value: `return {};` is success.
template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

    [[nodiscard]] bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    // REQUIRES: !ok()
    [[nodiscard]] const Error& error() const& {
        CHECK(!ok(), "error() of a success");
        return *error_;
    }
    [[nodiscard]] Error error() && {
        CHECK(!ok(), "error() of a success");
        return std::move(*error_);
    }

  private:
    std::optional<Error> error_;
};

using Status = Result<void>;

// Shorthand for the most frequent error.
[[nodiscard]] inline Error invalid(std::string message, std::string param = {}) {
    return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(param)};
}

}  // namespace pagoda::base
