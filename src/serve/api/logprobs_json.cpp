#include "serve/api/logprobs_json.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
std::string spelled(const text::Tokenizer& tokenizer, base::TokenId token) {
    const std::string bytes = tokenizer.token_bytes(token, /*skip_special=*/false);
    if (base::is_valid_utf8(bytes)) return bytes;
    std::string text = "bytes:";
    for (const char byte : bytes)
        text += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    return text;
}

std::string token_text(const text::Tokenizer& tokenizer, base::TokenId token) {
    return base::replace_invalid_utf8(tokenizer.token_bytes(token, /*skip_special=*/false));
}

std::span<const decode::Alternative> first(const std::vector<decode::Alternative>& all, int most) {
    return std::span(all).first(std::min(all.size(), static_cast<std::size_t>(most)));
}

// {"text": logprob} of the best, and of the token itself in any case; of those that are spelled
// alike the best one stands. Null when none was asked for.
Json alternatives(const text::Tokenizer& tokenizer, const decode::TokenLogprob& logprob, int most) {
    const auto best = first(logprob.top, most);
    if (best.empty()) return {};
    Json json = Json::object();
    const auto add = [&](base::TokenId token, float value) {
        const std::string text = spelled(tokenizer, token);
        if (json.find(text) == nullptr) json.set(text, number(value));
    };
    for (const decode::Alternative& alternative : best) add(alternative.token, alternative.logprob);
    add(logprob.token, logprob.logprob);
    return json;
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

Json prompt_logprobs_json(const text::Tokenizer& tokenizer,
                          std::span<const decode::TokenLogprob> logprobs, int num_top) {
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
        for (const decode::Alternative& alternative : first(logprob.top, num_top)) {
            if (alternative.token != logprob.token)
                add(alternative.token, alternative.logprob, rank);
            ++rank;
        }
        list.push_back(std::move(candidates));
    }
    return Json(std::move(list));
}

CompletionLogprobs::CompletionLogprobs(const text::Tokenizer& tokenizer, const Options& options)
    : tokenizer_(tokenizer),
      num_top_(options.num_top),
      skip_special_(options.skip_special),
      detokenizer_(tokenizer, options.skip_special, options.tail) {}

void CompletionLogprobs::place(text::Detokenizer& detokenizer,
                               const decode::TokenLogprob& logprob) {
    waiting_.push_back({logprob, next_offset_});
    next_offset_ += base::num_characters(detokenizer.append(logprob.token));
}

void CompletionLogprobs::add_prompt(base::TokenId first_token,
                                    std::span<const decode::TokenLogprob> rest,
                                    std::int64_t num_characters) {
    text::Detokenizer detokenizer(tokenizer_, skip_special_);
    place(detokenizer, {.token = first_token, .logprob = std::numeric_limits<float>::quiet_NaN()});
    for (const decode::TokenLogprob& logprob : rest) place(detokenizer, logprob);
    // A tokenizer that changes what it reads does not give the client's text back.
    for (Entry& entry : waiting_) entry.offset = std::min(entry.offset, num_characters);
    next_offset_ = num_characters;
}

void CompletionLogprobs::add(std::span<const decode::TokenLogprob> logprobs) {
    for (const decode::TokenLogprob& logprob : logprobs) place(detokenizer_, logprob);
}

Json CompletionLogprobs::take(std::int64_t num_characters, bool has_ended) {
    const auto end = has_ended ? waiting_.end()
                               : std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& e) {
                                     return e.offset > num_characters;
                                 });
    if (end == waiting_.begin()) return {};
    Json::Array tokens, values, tops, offsets;
    for (auto entry = waiting_.begin(); entry != end; ++entry) {
        const decode::TokenLogprob& logprob = entry->logprob;
        tokens.emplace_back(spelled(tokenizer_, logprob.token));
        values.push_back(number(logprob.logprob));
        tops.push_back(alternatives(tokenizer_, logprob, num_top_));
        offsets.emplace_back(std::min(entry->offset, num_characters));
    }
    waiting_.erase(waiting_.begin(), end);
    Json json = Json::object();
    json.set("tokens", std::move(tokens));
    json.set("token_logprobs", std::move(values));
    json.set("top_logprobs", std::move(tops));
    json.set("text_offset", std::move(offsets));
    return json;
}

}  // namespace pagoda::api
