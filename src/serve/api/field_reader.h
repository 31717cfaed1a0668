#pragma once
// FieldReader: typed reading of a request's JSON object. Null counts as absent. The first wrong
// type or range is kept as the error, which names field, value and limit; later reads give their
// fallbacks. Fields that nobody asked for are reported, never ignored in silence. One thread.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace pagoda::api {

class FieldReader {
  public:
    // REQUIRES: body.is_object(), and it outlives the reader.
    explicit FieldReader(const base::Json& body) : body_(body) {}

    [[nodiscard]] bool boolean(std::string_view name, bool fallback);
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback,
                                       std::int64_t least, std::int64_t most);
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t least,
                                                      std::int64_t most);
    [[nodiscard]] double number(std::string_view name, double fallback, double least, double most);
    [[nodiscard]] std::optional<std::string> string(std::string_view name);
    [[nodiscard]] const base::Json* array(std::string_view name);
    [[nodiscard]] const base::Json* object(std::string_view name);
    // Any type; null when absent.
    [[nodiscard]] const base::Json* any(std::string_view name);

    // A field that is known and not supported: refused unless absent or of a value that asks for
    // nothing.
    void refuse_unless(std::string_view name, bool asks_for_nothing, std::string_view reason);
    void fail(base::Error error);

    [[nodiscard]] bool ok() const { return !error_.has_value(); }
    [[nodiscard]] const base::Error& error() const { return *error_; }
    // Members of the body that were never read, in their order.
    [[nodiscard]] std::vector<std::string> unread() const;

  private:
    void wrong_type(std::string_view name, std::string_view expected, const base::Json& got);
    const base::Json& body_;
    std::set<std::string, std::less<>> read_;
    std::optional<base::Error> error_;
};

// A value for an error message: its JSON, cut short.
[[nodiscard]] std::string brief(const base::Json& value);

}  // namespace pagoda::api
