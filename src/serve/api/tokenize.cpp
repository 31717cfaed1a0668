// /tokenize, /detokenize and /apply-template.

#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/utf8.h"
#include "serve/api/chat_prompt.h"
#include "serve/api/request_body.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

using base::Json;
using Ends = text::EncodeOptions::SpecialEnds;

void answer(Writer& writer, const FieldReader& reader, const Json& json) {
    http::Response response = http::json_response(json);
    add_ignored_fields(reader.unread(), response);
    writer->send(std::move(response));
}

ChatFields read_chat(FieldReader& reader, const ApiContext& context) {
    ChatFields chat = read_chat_fields(reader, context);
    if (reader.array("tools") != nullptr) chat.input.tools = reader.take("tools");
    return chat;
}

// What to tokenise: `prompt`, or `messages` through the template.
using Source = std::variant<std::string, ChatFields>;

Source read_source(FieldReader& reader, const ApiContext& context) {
    if (reader.any("messages") != nullptr) return read_chat(reader, context);
    auto prompt = reader.string("prompt");
    if (!prompt) reader.fail(base::invalid("prompt or messages is needed", "prompt"));
    return std::move(prompt).value_or("");
}

base::Result<std::string> text_of(const ApiContext& context, Source source) {
    if (auto* chat = std::get_if<ChatFields>(&source))
        return render_prompt(context, std::move(*chat));
    return std::get<std::string>(std::move(source));
}

// No longer than a server can answer beside others.
base::Result<std::vector<base::TokenId>> tokens_of(const ApiContext& context,
                                                   const std::string& text, Ends ends) {
    constexpr std::size_t kMostBytes = std::size_t{4} << 20;
    constexpr std::size_t kMostTokens = std::size_t{1} << 20;
    const auto too_long = [](std::size_t count, std::string_view unit, std::size_t most) {
        return base::invalid(
            fmt::format("the text has {} {}, the most is {}; send it in parts", count, unit, most),
            "prompt");
    };
    if (text.size() > kMostBytes) return too_long(text.size(), "bytes", kMostBytes);
    auto tokens = context.tokenizer->encode(text, {.ends = ends});
    if (tokens && tokens->size() > kMostTokens)
        return too_long(tokens->size(), "tokens", kMostTokens);
    return tokens;
}

}  // namespace

void tokenize(const ApiContext& context, http::Request&& request, Writer writer) {
    FieldReader reader = read_body(request);
    Source source = read_source(reader, context);
    const bool add_special =
        reader.boolean("add_special_tokens", std::holds_alternative<std::string>(source));
    const bool with_text = reader.boolean("return_token_strs", false);
    const auto model = reader.string("model");
    if (const auto good = check_fields(context, reader, model); !good)
        return writer->send(to_response(good.error()));
    const auto text = text_of(context, std::move(source));
    if (!text) return writer->send(to_response(text.error()));
    const auto tokens = tokens_of(context, *text, add_special ? Ends::kModel : Ends::kNone);
    if (!tokens) return writer->send(to_response(tokens.error()));
    Json::Array ids;
    Json::Array strings;
    for (const base::TokenId token : *tokens) {
        ids.emplace_back(token);
        if (with_text)
            strings.emplace_back(
                base::replace_invalid_utf8(context.tokenizer->token_bytes(token, false)));
    }
    Json json = Json::object();
    json.set("count", static_cast<std::int64_t>(tokens->size()));
    json.set("max_model_len", context.engine->max_model_len());
    json.set("tokens", std::move(ids));
    json.set("token_strs", with_text ? Json(std::move(strings)) : Json());
    answer(writer, reader, json);
}

void detokenize(const ApiContext& context, http::Request&& request, Writer writer) {
    FieldReader reader = read_body(request);
    const auto model = reader.string("model");
    const Json* list = reader.array("tokens");
    if (list == nullptr) reader.fail(base::invalid("tokens is missing", "tokens"));
    if (const auto good = check_fields(context, reader, model); !good)
        return writer->send(to_response(good.error()));
    std::vector<base::TokenId> ids;
    for (const Json& id : list->as_array()) {
        if (!id.is_int() || id.as_int() < 0 || id.as_int() >= context.tokenizer->vocab_size())
            return writer->send(to_response(base::invalid(
                "tokens must hold ids from 0 to " +
                    std::to_string(context.tokenizer->vocab_size() - 1) + ", got " + brief(id),
                "tokens")));
        ids.push_back(static_cast<base::TokenId>(id.as_int()));
    }
    Json json = Json::object();
    json.set("prompt", base::replace_invalid_utf8(context.tokenizer->decode(ids, false)));
    answer(writer, reader, json);
}

void apply_template(const ApiContext& context, http::Request&& request, Writer writer) {
    FieldReader reader = read_body(request);
    const auto model = reader.string("model");
    ChatFields chat = read_chat(reader, context);
    if (const auto good = check_fields(context, reader, model); !good)
        return writer->send(to_response(good.error()));
    const auto text = render_prompt(context, std::move(chat));
    if (!text) return writer->send(to_response(text.error()));
    Json json = Json::object();
    json.set("prompt", *text);
    answer(writer, reader, json);
}

}  // namespace pagoda::api
