#include "serve/api/chat_prompt.h"

#include <fmt/core.h>

namespace pagoda::api {
namespace {

using base::Json;

// Where a message part is wrong: "messages[2].content".
std::string place(std::size_t index, std::string_view member) {
    return fmt::format("messages[{}]{}{}", index, member.empty() ? "" : ".", member);
}

void check_content(FieldReader& reader, std::size_t index, const Json& content) {
    if (content.is_string() || content.is_null()) return;
    if (!content.is_array()) {
        reader.fail(base::invalid(fmt::format("{} must be a string or an array of parts, got {}",
                                              place(index, "content"), brief(content)),
                                  place(index, "content")));
        return;
    }
    for (const Json& part : content.as_array()) {
        const Json* type = part.find("type");
        const Json* text = part.find("text");
        if (type == nullptr || !type->is_string()) {
            reader.fail(base::invalid(place(index, "content") + " has a part without a type",
                                      place(index, "content")));
            return;
        }
        if (type->as_string() != "text") {
            reader.fail({base::ErrorCode::kUnsupported,
                         fmt::format("{} has a part of type {}; only text is supported",
                                     place(index, "content"), brief(*type)),
                         place(index, "content")});
            return;
        }
        if (text == nullptr || !text->is_string()) {
            reader.fail(base::invalid(place(index, "content") + " has a text part without text",
                                      place(index, "content")));
            return;
        }
    }
}

void check_messages(FieldReader& reader, const Json& messages) {
    if (messages.as_array().empty())
        reader.fail(base::invalid("messages is empty; at least one message is needed", "messages"));
    std::size_t index = 0;
    for (const Json& message : messages.as_array()) {
        if (!message.is_object()) {
            reader.fail(base::invalid(
                fmt::format("{} must be an object, got {}", place(index, ""), brief(message)),
                place(index, "")));
            return;
        }
        const Json* role = message.find("role");
        if (role == nullptr || !role->is_string()) {
            reader.fail(base::invalid(role == nullptr
                                          ? place(index, "role") + " is missing"
                                          : fmt::format("{} must be a string, got {}",
                                                        place(index, "role"), brief(*role)),
                                      place(index, "role")));
            return;
        }
        if (const Json* content = message.find("content")) check_content(reader, index, *content);
        ++index;
    }
}

void read_template_options(FieldReader& reader, const ApiContext& context, ChatFields& fields) {
    fields.input.continue_final_message = reader.boolean("continue_final_message", false);
    const Json* generation = reader.any("add_generation_prompt");
    fields.input.add_generation_prompt =
        reader.boolean("add_generation_prompt", !fields.input.continue_final_message);
    if (generation != nullptr && fields.input.add_generation_prompt &&
        fields.input.continue_final_message)
        reader.fail(
            base::invalid("continue_final_message and add_generation_prompt can't both be "
                          "true",
                          "continue_final_message"));
    const Json* kwargs = reader.object("chat_template_kwargs");
    if (kwargs != nullptr) fields.input.kwargs = *kwargs;
    if (const auto effort = reader.string("reasoning_effort")) {
        if (!fields.input.kwargs.is_object()) fields.input.kwargs = Json::object();
        if (fields.input.kwargs.find("reasoning_effort") == nullptr)
            fields.input.kwargs.set("reasoning_effort", *effort);
    }
    // Also when it hides among the template's variables: a client's template costs our time.
    const bool is_nested = kwargs != nullptr && kwargs->find("chat_template") != nullptr;
    const auto own = reader.string("chat_template");
    if ((own || is_nested) && !context.trust_request_chat_template) {
        const std::string field = own ? "chat_template" : "chat_template_kwargs.chat_template";
        reader.fail({base::ErrorCode::kUnsupported,
                     field + " is refused: this server runs its model's template only "
                             "(--trust-request-chat-template allows others)",
                     field});
        return;
    }
    if (own) fields.own_template = *own;
    if (is_nested) {
        const Json* nested = kwargs->find("chat_template");
        if (nested->is_string()) fields.own_template = nested->as_string();
    }
}

}  // namespace

ChatFields read_chat_fields(FieldReader& reader, const ApiContext& context) {
    ChatFields fields;
    const Json* messages = reader.array("messages");
    if (messages == nullptr) {
        reader.fail(base::invalid("messages is missing", "messages"));
        return fields;
    }
    check_messages(reader, *messages);
    fields.input.messages = *messages;
    if (const Json* documents = reader.array("documents")) fields.input.documents = *documents;
    read_template_options(reader, context, fields);
    const auto token_text = [&](const std::optional<base::TokenId>& id) {
        return id ? context.tokenizer->token_bytes(*id, /*skip_special=*/false) : std::string();
    };
    fields.input.bos_token = token_text(context.tokenizer->spec().bos);
    fields.input.eos_token = token_text(context.tokenizer->spec().eos);
    return fields;
}

base::Result<std::string> render_prompt(const ApiContext& context, const ChatFields& fields) {
    if (!fields.own_template.empty()) {
        auto compiled = text::ChatTemplate::compile(fields.own_template);
        if (!compiled)
            return base::invalid("chat_template: " + compiled.error().message, "chat_template");
        return (*compiled)->render(fields.input);
    }
    if (context.chat_template == nullptr)
        return base::invalid(
            "this model has no chat template; use /v1/completions, or start the "
            "server with --chat-template FILE",
            "messages");
    auto text = context.chat_template->render(fields.input);
    if (!text && text.error().param.empty()) {
        base::Error error = text.error();
        error.param = "messages";
        return error;
    }
    return text;
}

}  // namespace pagoda::api
