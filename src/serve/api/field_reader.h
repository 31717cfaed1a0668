#pragma once
// FieldReader: typed reading of a request's JSON object, or of one inside it. Null counts as
// absent. The first wrong type or range is kept as the error, which names field, value and limit;
// later reads give their fallbacks. Fields that nobody asked for are reported, never ignored in
// silence. One thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace pagoda::api {

class FieldReader {
  public:
    // REQUIRES: body.is_object(), and it outlives the reader. prefix: what the names of its fields
    // begin with in errors and reports ("stream_options.").
    explicit FieldReader(base::Json& body, std::string prefix = "")
        : body_(body), prefix_(std::move(prefix)) {}
    // Keeps the body itself.
    explicit FieldReader(std::unique_ptr<base::Json> body)
        : owned_(std::move(body)), body_(*owned_) {}

    [[nodiscard]] bool boolean(std::string_view name, bool fallback);
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback,
                                       std::int64_t least, std::int64_t most);
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t least,
                                                      std::int64_t most);
    [[nodiscard]] double number(std::string_view name, double fallback);
    [[nodiscard]] std::optional<std::string> string(std::string_view name);
    [[nodiscard]] const base::Json* array(std::string_view name);
    [[nodiscard]] const base::Json* object(std::string_view name);
    // Any type; null when absent.
    [[nodiscard]] const base::Json* any(std::string_view name);
    // Moves a value out of the body, so that a long one is not held twice; null when absent.
    [[nodiscard]] base::Json take(std::string_view name);

    // The fields of an object inside; nothing when it is absent. absorb() takes what came of
    // reading it.
    [[nodiscard]] std::optional<FieldReader> nested(std::string_view name);
    void absorb(const FieldReader& inner);
    // Reports a field that lies deeper than readers go.
    void ignore(std::string_view name);

    // A field that is known and not supported: refused unless absent or of a value that asks for
    // nothing.
    void refuse_unless(std::string_view name, bool asks_for_nothing, std::string_view reason);
    void fail(base::Error error);

    [[nodiscard]] bool ok() const { return !error_.has_value(); }
    [[nodiscard]] const base::Error& error() const { return *error_; }
    // Members that were never read, in their order, then those of the objects inside: as many, and
    // as much of each name, as a header can hold.
    [[nodiscard]] std::vector<std::string> unread() const;

  private:
    [[nodiscard]] std::string full_name(std::string_view name) const;
    void wrong_type(std::string_view name, std::string_view expected, const base::Json& got);
    std::unique_ptr<base::Json> owned_;  // what body_ is, or null
    base::Json& body_;
    std::string prefix_;
    std::set<std::string, std::less<>> read_;
    std::set<std::string, std::less<>> ignored_inside_;
    std::optional<base::Error> error_;
};

// A value for an error message: its JSON, cut short.
[[nodiscard]] std::string brief(const base::Json& value);

}  // namespace pagoda::api
