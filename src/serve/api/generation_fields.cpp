#include "serve/api/generation_fields.h"

#include <charconv>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "serve/api/request_body.h"

namespace pagoda::api {
namespace {

using base::Json;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMaxChoices = 128;
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 1024;

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

void read_sampling(FieldReader& reader, const SamplingDefaults& defaults,
                   decode::SamplingParams& sampling) {
    sampling.temperature = reader.number("temperature", defaults.temperature, 0, 100);
    sampling.top_p = reader.number("top_p", defaults.top_p, 0, 1);
    sampling.top_k = reader.integer("top_k", defaults.top_k, -1, kMaxInt);
    sampling.min_p = reader.number("min_p", defaults.min_p, 0, 1);
    sampling.typical_p = reader.number("typical_p", 1.0, 0, 1);
    sampling.repetition_penalty =
        reader.number("repetition_penalty", defaults.repetition_penalty, 0, 1e6);
    sampling.presence_penalty = reader.number("presence_penalty", 0, -2, 2);
    sampling.frequency_penalty = reader.number("frequency_penalty", 0, -2, 2);
    sampling.min_tokens = reader.integer("min_tokens", 0, 0, kMaxInt);
    sampling.ignore_eos = reader.boolean("ignore_eos", false);
    const auto seed = reader.integer("seed", kMinInt, kMaxInt);
    sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
}

void read_logit_bias(FieldReader& reader, decode::SamplingParams& sampling) {
    const Json* bias = reader.object("logit_bias");
    if (bias == nullptr) return;
    for (const auto& [key, value] : bias->as_object()) {
        base::TokenId token = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
        if (error != std::errc() || end != key.data() + key.size() || !value.is_number()) {
            reader.fail(base::invalid(fmt::format("logit_bias must map token ids to numbers, got "
                                                  "\"{}\": {}",
                                                  key.substr(0, 40), brief(value)),
                                      "logit_bias"));
            return;
        }
        sampling.logit_bias.emplace_back(token, value.as_double());
    }
}

void read_stops(FieldReader& reader, GenerationFields& fields) {
    fields.include_stop_string = reader.boolean("include_stop_str_in_output", false);
    if (const Json* ids = reader.array("stop_token_ids")) {
        for (const Json& id : ids->as_array()) {
            if (!id.is_int() || id.as_int() < 0 ||
                id.as_int() > std::numeric_limits<base::TokenId>::max()) {
                reader.fail(base::invalid("stop_token_ids must hold token ids, got " + brief(id),
                                          "stop_token_ids"));
                return;
            }
            fields.sampling.stop_token_ids.push_back(static_cast<base::TokenId>(id.as_int()));
        }
    }
    const Json* stop = reader.any("stop");
    if (stop == nullptr) return;
    const Json::Array one = stop->is_string() ? Json::Array{*stop} : Json::Array{};
    if (!stop->is_string() && !stop->is_array()) {
        reader.fail(base::invalid(
            "stop must be a string or an array of strings, got " + brief(*stop), "stop"));
        return;
    }
    const Json::Array& strings = stop->is_string() ? one : stop->as_array();
    if (strings.size() > kMaxStops)
        reader.fail(base::invalid(
            fmt::format("stop has {} strings, the most is {}", strings.size(), kMaxStops), "stop"));
    for (const Json& string : strings) {
        if (!string.is_string() || string.as_string().empty() ||
            string.as_string().size() > kMaxStopBytes) {
            reader.fail(base::invalid(fmt::format("stop must hold strings of 1 to {} bytes, got {}",
                                                  kMaxStopBytes, brief(string)),
                                      "stop"));
            return;
        }
        fields.stop.push_back(string.as_string());
    }
}

void read_logprobs(FieldReader& reader, bool is_chat, decode::SamplingParams& sampling) {
    if (is_chat) {
        const bool wanted = reader.boolean("logprobs", false);
        const auto top = reader.integer("top_logprobs", 0, decode::kMaxTopLogprobs);
        if (top.value_or(0) > 0 && !wanted)
            reader.fail(base::invalid("top_logprobs needs logprobs to be true", "top_logprobs"));
        if (wanted) sampling.logprobs = static_cast<int>(top.value_or(0));
    } else if (const auto top = reader.integer("logprobs", 0, decode::kMaxTopLogprobs)) {
        sampling.logprobs = static_cast<int>(*top);
    }
    if (const auto top = reader.integer("prompt_logprobs", 0, decode::kMaxTopLogprobs))
        sampling.prompt_logprobs = static_cast<int>(*top);
}

void read_lengths(FieldReader& reader, bool is_chat, GenerationFields& fields) {
    const std::int64_t least = is_chat ? 1 : 0;
    fields.max_tokens = reader.integer("max_tokens", least, kMaxInt);
    if (!is_chat) return;
    const auto completion = reader.integer("max_completion_tokens", 1, kMaxInt);
    if (completion && fields.max_tokens && *completion != *fields.max_tokens)
        reader.fail(base::invalid(fmt::format("max_tokens is {} and max_completion_tokens {}; give "
                                              "one of them",
                                              *fields.max_tokens, *completion),
                                  "max_completion_tokens"));
    if (completion) fields.max_tokens = completion;
}

void read_streaming(FieldReader& reader, GenerationFields& fields) {
    fields.stream = reader.boolean("stream", false);
    const Json* options = reader.object("stream_options");
    if (options == nullptr) return;
    if (!fields.stream) {
        reader.fail(base::invalid("stream_options needs stream to be true", "stream_options"));
        return;
    }
    FieldReader inner(*options);
    fields.include_usage = inner.boolean("include_usage", false);
    fields.continuous_usage_stats = inner.boolean("continuous_usage_stats", false);
    if (!inner.ok()) reader.fail(inner.error());
}

// Known to clients of other servers, and not (yet) offered: refused where they ask for something.
void refuse_unsupported(FieldReader& reader, std::int64_t num_choices) {
    const auto is_false = [&](std::string_view name) {
        const Json* value = reader.any(name);
        return value != nullptr && value->is_bool() && !value->as_bool();
    };
    const auto is_empty = [&](std::string_view name) {
        const Json* value = reader.any(name);
        return value != nullptr && value->is_array() && value->as_array().empty();
    };
    const auto equals = [&](std::string_view name, const Json& wanted) {
        const Json* value = reader.any(name);
        return value != nullptr && *value == wanted;
    };
    const Json* format = reader.any("response_format");
    const Json* type = format != nullptr && format->is_object() ? format->find("type") : nullptr;
    reader.refuse_unless("response_format", type != nullptr && *type == Json("text"),
                         "only {\"type\": \"text\"} is");
    for (const std::string_view name : {"tools", "functions"})
        reader.refuse_unless(name, is_empty(name), "tool calls are not offered");
    reader.refuse_unless("tool_choice",
                         equals("tool_choice", "none") || equals("tool_choice", "auto"),
                         "tool calls are not offered");
    reader.refuse_unless("function_call", equals("function_call", "none"),
                         "tool calls are not offered");
    for (const std::string_view name :
         {"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"})
        reader.refuse_unless(name, false, "structured output is not offered");
    for (const std::string_view name : {"use_beam_search", "early_stopping"})
        reader.refuse_unless(name, is_false(name), "beam search is not offered");
    reader.refuse_unless("length_penalty",
                         equals("length_penalty", 1) || equals("length_penalty", 1.0),
                         "beam search is not offered");
    reader.refuse_unless("best_of", equals("best_of", num_choices), "only the value of n is");
    reader.refuse_unless("store", is_false("store"), "answers are not stored");
    for (const std::string_view name : {"audio", "prediction", "web_search_options"})
        reader.refuse_unless(name, false, "it is not offered");
    const Json text_only = Json(Json::Array{Json("text")});
    reader.refuse_unless("modalities", equals("modalities", text_only), "only [\"text\"] is");
    reader.refuse_unless("thinking_token_budget", false, "it is not offered");
}

// Accepted and without effect on the answer by their own meaning.
void accept_labels(FieldReader& reader) {
    static_cast<void>(reader.string("user"));
    static_cast<void>(reader.string("safety_identifier"));
    static_cast<void>(reader.string("cache_salt"));  // no answer comes from another's cache
    static_cast<void>(reader.object("metadata"));
    static_cast<void>(reader.boolean("parallel_tool_calls", true));
}

}  // namespace

GenerationFields read_generation_fields(FieldReader& reader, const ApiContext& context,
                                        bool is_chat) {
    GenerationFields fields;
    fields.model = reader.string("model");
    read_sampling(reader, context.defaults, fields.sampling);
    read_logit_bias(reader, fields.sampling);
    read_stops(reader, fields);
    read_logprobs(reader, is_chat, fields.sampling);
    read_lengths(reader, is_chat, fields);
    read_streaming(reader, fields);
    fields.num_choices = reader.integer("n", 1, 1, kMaxChoices);
    fields.skip_special_tokens = reader.boolean("skip_special_tokens", true);
    constexpr std::int64_t kMaxPriority = std::numeric_limits<std::int32_t>::max();
    fields.priority =
        static_cast<std::int32_t>(reader.integer("priority", 0, -kMaxPriority, kMaxPriority));
    refuse_unsupported(reader, fields.num_choices);
    accept_labels(reader);
    return fields;
}

base::Result<std::int64_t> resolve_max_tokens(const std::optional<std::int64_t>& asked,
                                              std::int64_t prompt_tokens,
                                              std::int64_t max_model_len) {
    if (prompt_tokens >= max_model_len)
        return base::invalid(fmt::format("the prompt has {} tokens, the context is {} tokens, and "
                                         "at least one must be left for the answer",
                                         prompt_tokens, max_model_len),
                             std::string(kContextLength));
    const std::int64_t room = max_model_len - prompt_tokens;
    if (asked && *asked > room)
        return base::invalid(fmt::format("the prompt has {} tokens and max_tokens is {}, together "
                                         "more than the context of {} tokens",
                                         prompt_tokens, *asked, max_model_len),
                             std::string(kContextLength));
    return asked.value_or(room);
}

}  // namespace pagoda::api
