#include "serve/gateway/api_keys.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/check.h"
#include "base/hash.h"

namespace pagoda::gateway {
namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// name: which key it is, for errors.
base::Status check_key(std::string_view key, std::string_view name, std::string_view param) {
    if (key.size() < kMinKeyBytes || key.size() > kMaxKeyBytes)
        return base::invalid(fmt::format("{} has {} characters, must have {} to {}", name,
                                         key.size(), kMinKeyBytes, kMaxKeyBytes),
                             std::string(param));
    const bool is_visible =
        std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
    if (!is_visible)
        return base::invalid(fmt::format("{} must consist of visible ASCII characters", name),
                             std::string(param));
    return {};
}

// The key that the request carries: nothing when it carries none.
std::optional<std::string_view> presented_key(const http::Request& request) {
    constexpr std::string_view kBearer = "bearer ";
    if (const std::string* authorization = request.header("authorization")) {
        const std::string_view text = *authorization;
        if (text.size() > kBearer.size() &&
            http::equals_ignoring_case(text.substr(0, kBearer.size()), kBearer))
            return trimmed(text.substr(kBearer.size()));
    }
    if (const std::string* key = request.header("x-api-key")) return trimmed(*key);
    return std::nullopt;
}

http::Response unauthorized(std::string_view message) {
    return http::error_response(
        {.status = 401, .message = std::string(message), .code = "invalid_api_key"});
}

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
    Digest digest{};
    unsigned int size = 0;
    const int done =
        EVP_Digest(key.data(), key.size(), digest.data(), &size, EVP_sha256(), nullptr);
    CHECK(done == 1 && size == digest.size(), "SHA-256 is always there");
    return digest;
}

base::Result<ApiKeys> ApiKeys::create(std::span<const std::string> keys) {
    if (keys.empty()) return base::invalid("there is no API key in the list", "api_keys");
    ApiKeys result;
    for (std::size_t index = 0; index < keys.size(); ++index) {
        const auto valid = check_key(keys[index], fmt::format("API key {}", index + 1), "api_keys");
        if (!valid) return valid.error();
        Client client{.digest = digest_of(keys[index])};
        if (result.find(keys[index])) continue;
        std::uint64_t id = 0;
        std::memcpy(&id, client.digest.data(), sizeof(id));
        client.principal.client = base::ClientId(id);
        client.principal.name = fmt::format("key-{:02x}{:02x}{:02x}{:02x}", client.digest[0],
                                            client.digest[1], client.digest[2], client.digest[3]);
        result.clients_.push_back(std::move(client));
    }
    return result;
}

std::optional<http::Principal> ApiKeys::find(std::string_view key) const {
    const Digest wanted = digest_of(key);
    const Client* found = nullptr;
    // No early end: all digests are compared, whichever is the right one.
    for (const Client& client : clients_) {
        if (CRYPTO_memcmp(client.digest.data(), wanted.data(), wanted.size()) == 0) found = &client;
    }
    if (found == nullptr) return std::nullopt;
    return found->principal;
}

base::Result<std::vector<std::string>> parse_key_file(std::string_view text,
                                                      std::string_view path) {
    std::vector<std::string> keys;
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view key = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (key.empty() || key.front() == '#') continue;
        const auto valid =
            check_key(key, fmt::format("{}:{}: the API key", path, line), "api_key_file");
        if (!valid) return valid.error();
        keys.emplace_back(key);
    }
    // An empty file must not open the server to everyone.
    if (keys.empty())
        return base::invalid(fmt::format("{}: holds no API key", path), "api_key_file");
    return keys;
}

http::Filter key_filter(std::shared_ptr<const ApiKeys> keys) {
    return [keys = std::move(keys)](http::Request& request) -> std::optional<http::Response> {
        const auto key = presented_key(request);
        if (!key)
            return unauthorized(
                "an API key is needed: send it as \"Authorization: Bearer KEY\" or as "
                "\"x-api-key: KEY\"");
        auto principal = keys->find(*key);
        if (!principal) return unauthorized("the API key is not known to this server");
        request.principal = std::move(principal);
        return std::nullopt;
    };
}

// What proxies and browsers add to what they send. Not all do: behind a proxy, an admin key is
// needed.
constexpr std::string_view kSentOn[] = {"x-forwarded-for",
                                        "x-forwarded-host",
                                        "x-forwarded-proto",
                                        "x-forwarded-port",
                                        "x-real-ip",
                                        "forwarded",
                                        "via",
                                        "origin"};

http::Filter admin_filter(std::shared_ptr<const ApiKeys> key) {
    if (key != nullptr) return key_filter(std::move(key));
    return [](http::Request& request) -> std::optional<http::Response> {
        const bool is_for_another =
            std::any_of(std::begin(kSentOn), std::end(kSentOn),
                        [&](std::string_view name) { return request.header(name) != nullptr; });
        if (request.is_loopback && !is_for_another) return std::nullopt;
        return http::error_response(
            {.status = 403,
             .message = "without admin_api_key this route is for programs on the server's own "
                        "machine, not for what a proxy or a browser sends",
             .code = "permission_denied"});
    };
}

http::Filter address_filter() {
    return [](http::Request& request) -> std::optional<http::Response> {
        const std::string& address = request.remote_address;
        request.principal = http::Principal{
            .name = address,
            .client = base::ClientId(base::hash128(std::as_bytes(std::span(address))).low)};
        return std::nullopt;
    };
}

}  // namespace pagoda::gateway
