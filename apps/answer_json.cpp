#include "answer_json.h"

#include <fmt/core.h>

#include "base/utf8.h"

namespace pagoda::apps {
namespace {

using base::Json;

double rate(std::int64_t tokens, double ms) {
    return ms > 0 && tokens > 0 ? static_cast<double>(tokens) * 1e3 / ms : 0;
}

// The first token comes with the prompt; the others are decoded.
double decode_rate(const Answer& answer) {
    return rate(answer.usage.completion_tokens - 1, answer.timings.decode_ms);
}

double prefill_rate(const Answer& answer) {
    return rate(answer.usage.prompt_tokens - answer.usage.cached_tokens, answer.timings.prefill_ms);
}

Json token_json(const text::Tokenizer& tokenizer, base::TokenId id, float logprob) {
    Json json = Json::object();
    json.set("id", id);
    json.set("piece", piece_text(tokenizer, id));
    json.set("logprob", static_cast<double>(logprob));
    return json;
}

Json logprobs_json(const text::Tokenizer& tokenizer,
                   std::span<const decode::TokenLogprob> logprobs) {
    Json list = Json::array();
    for (const decode::TokenLogprob& token : logprobs) {
        Json json = token_json(tokenizer, token.token, token.logprob);
        json.set("rank", token.rank);
        Json top = Json::array();
        for (const decode::Alternative& other : token.top)
            top.push_back(token_json(tokenizer, other.token, other.logprob));
        json.set("top", std::move(top));
        list.push_back(std::move(json));
    }
    return list;
}

}  // namespace

Json ids_json(std::span<const base::TokenId> ids) {
    Json list = Json::array();
    for (const base::TokenId id : ids) list.push_back(id);
    return list;
}

std::string piece_text(const text::Tokenizer& tokenizer, base::TokenId id) {
    return base::replace_invalid_utf8(tokenizer.token_bytes(id, /*skip_special=*/false));
}

Json answer_json(const text::Tokenizer& tokenizer, std::span<const base::TokenId> prompt,
                 const Answer& answer, const decode::SamplingParams& params) {
    Json timings = Json::object();
    timings.set("queue_ms", answer.timings.queue_ms);
    timings.set("prefill_ms", answer.timings.prefill_ms);
    timings.set("decode_ms", answer.timings.decode_ms);
    timings.set("prefill_tok_s", prefill_rate(answer));
    timings.set("decode_tok_s", decode_rate(answer));
    Json json = Json::object();
    json.set("text", answer.text);
    json.set("token_ids", ids_json(answer.tokens));
    json.set("prompt_token_ids", ids_json(prompt));
    json.set("logprobs", params.logprobs ? logprobs_json(tokenizer, answer.logprobs) : Json());
    json.set("finish_reason", engine::finish_name(answer.finish));
    json.set("seed", static_cast<std::int64_t>(params.seed));
    json.set("timings", std::move(timings));
    return json;
}

std::string timings_text(const Answer& answer) {
    return fmt::format("{} prompt tokens at {:.1f} tokens/s, {} output tokens at {:.1f} tokens/s",
                       answer.usage.prompt_tokens, prefill_rate(answer),
                       answer.usage.completion_tokens, decode_rate(answer));
}

}  // namespace pagoda::apps
