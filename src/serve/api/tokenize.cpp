// /tokenize, /detokenize and /apply-template.

#include <utility>

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

// The text to tokenise: `prompt`, or `messages` through the template.
base::Result<std::string> text_of(FieldReader& reader, const ApiContext& context, bool is_chat) {
    if (!is_chat) {
        auto prompt = reader.string("prompt");
        if (reader.ok() && !prompt)
            reader.fail(base::invalid("prompt or messages is needed", "prompt"));
        if (!reader.ok()) return reader.error();
        return std::move(*prompt);
    }
    ChatFields chat = read_chat_fields(reader, context);
    if (reader.array("tools") != nullptr) chat.input.tools = reader.take("tools");
    if (!reader.ok()) return reader.error();
    return render_prompt(context, std::move(chat));
}

}  // namespace

void tokenize(const ApiContext& context, http::Request&& request, Writer writer) {
    auto body = parse_body(request);
    if (!body) return writer->send(to_response(body.error()));
    FieldReader reader(*body);
    const bool is_chat = reader.any("messages") != nullptr;
    const bool add_special = reader.boolean("add_special_tokens", !is_chat);
    const bool with_text = reader.boolean("return_token_strs", false);
    const auto model = reader.string("model");
    const auto text = text_of(reader, context, is_chat);
    if (!reader.ok()) return writer->send(to_response(reader.error()));
    if (!text) return writer->send(to_response(text.error()));
    if (const auto known = check_model(context, model); !known)
        return writer->send(to_response(known.error()));
    const auto tokens =
        context.tokenizer->encode(*text, {.ends = add_special ? Ends::kModel : Ends::kNone});
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
    auto body = parse_body(request);
    if (!body) return writer->send(to_response(body.error()));
    FieldReader reader(*body);
    const auto model = reader.string("model");
    const Json* list = reader.array("tokens");
    if (reader.ok() && list == nullptr) reader.fail(base::invalid("tokens is missing", "tokens"));
    if (!reader.ok()) return writer->send(to_response(reader.error()));
    if (const auto known = check_model(context, model); !known)
        return writer->send(to_response(known.error()));
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
    auto body = parse_body(request);
    if (!body) return writer->send(to_response(body.error()));
    FieldReader reader(*body);
    const auto model = reader.string("model");
    const auto text = text_of(reader, context, /*is_chat=*/true);
    if (!reader.ok()) return writer->send(to_response(reader.error()));
    if (!text) return writer->send(to_response(text.error()));
    if (const auto known = check_model(context, model); !known)
        return writer->send(to_response(known.error()));
    Json json = Json::object();
    json.set("prompt", *text);
    answer(writer, reader, json);
}

}  // namespace pagoda::api
