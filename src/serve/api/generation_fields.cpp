#include "serve/api/generation_fields.h"

#include <charconv>
#include <limits>

#include <fmt/core.h>

#include "serve/api/request_body.h"

namespace pagoda::api {
namespace {

using base::Json;

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMinInt = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMaxChoices = 128;

void read_sampling(FieldReader& reader, const SamplingDefaults& defaults,
                   decode::SamplingParams& sampling) {
    sampling.temperature = reader.number("temperature", defaults.temperature);
    sampling.top_p = reader.number("top_p", defaults.top_p);
    sampling.top_k = reader.integer("top_k", defaults.top_k, -1, kMaxInt);
    sampling.min_p = reader.number("min_p", defaults.min_p);
    sampling.typical_p = reader.number("typical_p", 1.0);
    sampling.repetition_penalty = reader.number("repetition_penalty", defaults.repetition_penalty);
    sampling.presence_penalty = reader.number("presence_penalty", 0);
    sampling.frequency_penalty = reader.number("frequency_penalty", 0);
    sampling.min_tokens = reader.integer("min_tokens", 0, 0, kMaxInt);
    sampling.ignore_eos = reader.boolean("ignore_eos", false);
    const auto seed = reader.integer("seed", kMinInt, kMaxInt);
    sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : decode::random_seed();
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
    if (stop->is_string()) {
        fields.stop.push_back(stop->as_string());
        return;
    }
    if (!stop->is_array()) {
        reader.fail(base::invalid(
            "stop must be a string or an array of strings, got " + brief(*stop), "stop"));
        return;
    }
    for (const Json& string : stop->as_array()) {
        if (!string.is_string()) {
            reader.fail(base::invalid("stop must hold strings, got " + brief(string), "stop"));
            return;
        }
        fields.stop.push_back(string.as_string());
    }
}

void read_logprobs(FieldReader& reader, bool is_chat, GenerationFields& fields) {
    decode::SamplingParams& sampling = fields.sampling;
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
        fields.prompt_logprobs = static_cast<int>(*top);
    sampling.prompt_logprobs = fields.prompt_logprobs;
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
    auto options = reader.nested("stream_options");
    if (!options) return;
    if (!fields.stream) {
        reader.fail(base::invalid("stream_options needs stream to be true", "stream_options"));
        return;
    }
    fields.include_usage = options->boolean("include_usage", false);
    fields.continuous_usage_stats = options->boolean("continuous_usage_stats", false);
    reader.absorb(*options);
}

void read_response_format(FieldReader& reader) {
    auto format = reader.nested("response_format");
    if (!format) return;
    const auto type = format->string("type");
    format->refuse_unless("type", type == "text", "only \"text\" is");
    if (format->ok() && !type)
        reader.fail(base::invalid("response_format has no type", "response_format"));
    reader.absorb(*format);
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

// Part of what every waiting request holds.
std::string read_cache_salt(FieldReader& reader) {
    constexpr std::size_t kMostBytes = 512;
    std::string salt = reader.string("cache_salt").value_or("");
    if (salt.size() > kMostBytes)
        reader.fail(base::invalid(
            fmt::format("cache_salt has {} bytes, the limit is {}", salt.size(), kMostBytes),
            "cache_salt"));
    return salt;
}

// Accepted and without effect on the answer by their own meaning.
void accept_labels(FieldReader& reader) {
    static_cast<void>(reader.string("user"));
    static_cast<void>(reader.string("safety_identifier"));
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
    read_logprobs(reader, is_chat, fields);
    read_lengths(reader, is_chat, fields);
    read_streaming(reader, fields);
    fields.num_choices = reader.integer("n", 1, 1, kMaxChoices);
    fields.skip_special_tokens = reader.boolean("skip_special_tokens", true);
    constexpr std::int64_t kMaxPriority = std::numeric_limits<std::int32_t>::max();
    fields.priority =
        static_cast<std::int32_t>(reader.integer("priority", 0, -kMaxPriority, kMaxPriority));
    fields.cache_salt = read_cache_salt(reader);
    read_response_format(reader);
    refuse_unsupported(reader, fields.num_choices);
    accept_labels(reader);
    return fields;
}

}  // namespace pagoda::api
