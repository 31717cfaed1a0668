#pragma once
// ApiKeys: who may ask. Keeps SHA-256 digests only, and compares a presented key with all of them
// in constant time, so that the time of an answer says nothing about a key. The filters name the
// client of a request for the scheduler's fairness. Immutable after creation; thread-safe.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/http/message.h"
#include "serve/http/router.h"

namespace pagoda::gateway {

inline constexpr std::size_t kMinKeyBytes = 8;
inline constexpr std::size_t kMaxKeyBytes = 512;

class ApiKeys {
  public:
    // Refuses none at all, keys that are too short or too long, and those that no header can
    // carry. Errors name the key by its place in the list, never by its text.
    [[nodiscard]] static base::Result<ApiKeys> create(std::span<const std::string> keys);

    // The client of that key: the same for the same key in every process.
    [[nodiscard]] std::optional<http::Principal> find(std::string_view key) const;
    [[nodiscard]] std::size_t size() const { return clients_.size(); }

  private:
    using Digest = std::array<unsigned char, 32>;
    struct Client {
        Digest digest;
        http::Principal principal;
    };
    [[nodiscard]] static Digest digest_of(std::string_view key);
    std::vector<Client> clients_;
};

// The text of a key file: one key a line; blank lines and lines that begin with '#' are left out.
// Errors name the file as `path` and the line, never the key.
[[nodiscard]] base::Result<std::vector<std::string>> parse_key_file(std::string_view text,
                                                                    std::string_view path);

// Asks every request for `Authorization: Bearer KEY` or `x-api-key: KEY`; answers 401 without a
// known one. The first header that carries a key counts.
[[nodiscard]] http::Filter key_filter(std::shared_ptr<const ApiKeys> keys);

// For the operator's routes: asks for that key alone, and without one lets in who is on this very
// machine. A proxy or a browser there asks for others, who are not: what either adds to a request
// is refused with 403.
[[nodiscard]] http::Filter admin_filter(std::shared_ptr<const ApiKeys> key);

// Lets everyone in; a client is an address.
[[nodiscard]] http::Filter address_filter();

}  // namespace pagoda::gateway
