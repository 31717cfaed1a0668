#include "serve/api/logprobs_json.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/utf8.h"

namespace pagoda::api {
namespace {

using base::Json;

// The least that clients parse: JSON has no minus infinity.
constexpr double kLeastLogprob = -9999.0;

Json number(float logprob) {
    if (std::isnan(logprob)) return {};
    return Json(std::isfinite(logprob) ? static_cast<double>(logprob) : kLeastLogprob);
}

Json entry(const text::Tokenizer& tokenizer, base::TokenId token, float logprob) {
    const std::string bytes = tokenizer.token_bytes(token, /*skip_special=*/false);
    Json json = Json::object();
    json.set("token", base::replace_invalid_utf8(bytes));
    json.set("logprob", number(logprob));
    Json::Array values;
    for (const char byte : bytes)
        values.emplace_back(static_cast<int>(static_cast<unsigned char>(byte)));
    json.set("bytes", std::move(values));
    return json;
}

// A token's bytes as text that tells them apart.
std::string spelled(const std::string& bytes) {
    if (base::is_valid_utf8(bytes)) return bytes;
    std::string text = "bytes:";
    for (const char byte : bytes)
        text += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    return text;
}

std::string token_text(const text::Tokenizer& tokenizer, base::TokenId token) {
    return base::replace_invalid_utf8(tokenizer.token_bytes(token, /*skip_special=*/false));
}

std::int64_t num_characters(std::string_view text) {
    return std::count_if(text.begin(), text.end(),
                         [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; });
}

}  // namespace

Json chat_logprobs(const text::Tokenizer& tokenizer,
                   std::span<const decode::TokenLogprob> logprobs) {
    Json::Array content;
    for (const decode::TokenLogprob& logprob : logprobs) {
        Json json = entry(tokenizer, logprob.token, logprob.logprob);
        Json::Array top;
        for (const decode::Alternative& alternative : logprob.top)
            top.push_back(entry(tokenizer, alternative.token, alternative.logprob));
        json.set("top_logprobs", std::move(top));
        content.push_back(std::move(json));
    }
    Json result = Json::object();
    result.set("content", std::move(content));
    return result;
}

CompletionLogprobs completion_logprobs(const text::Tokenizer& tokenizer,
                                       std::span<const decode::TokenLogprob> logprobs,
                                       std::int64_t first_offset) {
    CompletionLogprobs result{.next_offset = first_offset};
    Json::Array tokens, values, tops, offsets;
    for (const decode::TokenLogprob& logprob : logprobs) {
        const std::string bytes = tokenizer.token_bytes(logprob.token, /*skip_special=*/false);
        const std::string text = spelled(bytes);
        tokens.emplace_back(text);
        values.push_back(number(logprob.logprob));
        Json top = Json::object();
        for (const decode::Alternative& alternative : logprob.top)
            top.set(spelled(tokenizer.token_bytes(alternative.token, false)),
                    number(alternative.logprob));
        // The token itself is always among them.
        if (!logprob.top.empty() && top.find(text) == nullptr)
            top.set(text, number(logprob.logprob));
        tops.push_back(logprob.top.empty() ? Json() : std::move(top));
        offsets.emplace_back(result.next_offset);
        result.next_offset += num_characters(bytes);
    }
    result.json = Json::object();
    result.json.set("tokens", std::move(tokens));
    result.json.set("token_logprobs", std::move(values));
    result.json.set("top_logprobs", std::move(tops));
    result.json.set("text_offset", std::move(offsets));
    return result;
}

Json prompt_logprobs_json(const text::Tokenizer& tokenizer,
                          std::span<const decode::TokenLogprob> logprobs) {
    Json::Array list;
    list.emplace_back(nullptr);
    for (const decode::TokenLogprob& logprob : logprobs) {
        Json candidates = Json::object();
        const auto add = [&](base::TokenId token, float value, std::int64_t rank) {
            Json json = Json::object();
            json.set("logprob", number(value));
            json.set("rank", rank);
            json.set("decoded_token", token_text(tokenizer, token));
            candidates.set(std::to_string(token), std::move(json));
        };
        add(logprob.token, logprob.logprob, logprob.rank);
        std::int64_t rank = 1;
        for (const decode::Alternative& alternative : logprob.top)
            add(alternative.token, alternative.logprob, rank++);
        list.push_back(std::move(candidates));
    }
    return Json(std::move(list));
}

}  // namespace pagoda::api
