#include "serve/http/message.h"

#include <algorithm>

namespace pagoda::http {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char l = lower(c);
    return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

base::Json text_or_null(const std::string& text) {
    return text.empty() ? base::Json() : base::Json(text);
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

const std::string* Request::header(std::string_view name) const {
    for (const Header& entry : headers) {
        if (equals_ignoring_case(entry.first, name)) return &entry.second;
    }
    return nullptr;
}

std::string_view error_type(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        case 503:
            return "overloaded_error";
        default:
            return status < 500 ? "invalid_request_error" : "server_error";
    }
}

base::Json error_json(const ErrorBody& error) {
    base::Json inner = base::Json::object();
    inner.set("message", error.message);
    inner.set("type", error_type(error.status));
    inner.set("param", text_or_null(error.param));
    inner.set("code", text_or_null(error.code));
    base::Json outer = base::Json::object();
    outer.set("error", std::move(inner));
    return outer;
}

Response error_response(const ErrorBody& error) {
    Response response{.status = error.status, .body = error_json(error).dump()};
    if (error.status == 503 || error.status == 429)
        response.headers.emplace_back("Retry-After", "1");
    if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

Response json_response(const base::Json& body) {
    return {.body = body.dump()};
}

std::string sse_data(const base::Json& document) {
    return "data: " + document.dump() + "\n\n";
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        char c = text[at];
        if (c == '%') {
            if (at + 2 >= text.size()) return std::nullopt;
            const int high = hex_digit(text[at + 1]);
            const int low = hex_digit(text[at + 2]);
            if (high < 0 || low < 0) return std::nullopt;
            c = static_cast<char>(high * 16 + low);
            if (c == '\0') return std::nullopt;
            at += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        result.push_back(c);
    }
    return result;
}

}  // namespace pagoda::http
