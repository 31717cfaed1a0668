#include "serve/api/chat_prompt.h"

#include <utility>
#include <vector>

#include <fmt/core.h>

namespace pagoda::api {
namespace {

using base::Json;

// Where a message part is wrong: "messages[2].content".
std::string place(std::size_t index, std::string_view member) {
    return fmt::format("messages[{}]{}{}", index, member.empty() ? "" : ".", member);
}

// Parts are joined or passed on as text: what else they hold is not used.
void report_unknown_members(FieldReader& reader, const Json& part) {
    if (!part.is_object()) return;
    for (const auto& [name, value] : part.as_object()) {
        if (name != "type" && name != "text") reader.ignore("messages[].content[]." + name);
    }
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
        report_unknown_members(reader, part);
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

// A client's template costs our time, also when it hides among the template's variables.
void read_own_template(FieldReader& reader, const ApiContext& context, ChatFields& fields) {
    auto kwargs = reader.nested("chat_template_kwargs");
    const auto outer = reader.string("chat_template");
    const auto inner = kwargs ? kwargs->string("chat_template") : std::nullopt;
    if (kwargs && !kwargs->ok()) reader.fail(kwargs->error());
    if (!outer && !inner) return;
    const std::string field = outer ? "chat_template" : "chat_template_kwargs.chat_template";
    if (!context.trust_request_chat_template) {
        reader.fail({base::ErrorCode::kUnsupported,
                     field + " is refused: this server runs its model's template only "
                             "(--trust-request-chat-template allows others)",
                     field});
        return;
    }
    if (outer && inner) {
        reader.fail(base::invalid(
            "chat_template and chat_template_kwargs.chat_template are both given; leave one out",
            "chat_template"));
        return;
    }
    fields.own_template = outer ? *outer : *inner;
    if (fields.own_template.empty()) reader.fail(base::invalid(field + " is empty", field));
}

// The variables of the template, but for a template among them, which is none.
Json read_variables(FieldReader& reader) {
    if (reader.object("chat_template_kwargs") == nullptr) return {};
    Json variables = reader.take("chat_template_kwargs");
    std::erase_if(variables.as_object(),
                  [](const Json::Member& member) { return member.first == "chat_template"; });
    return variables;
}

void read_template_options(FieldReader& reader, const ApiContext& context, ChatFields& fields) {
    text::ChatInput& input = fields.input;
    input.continue_final_message = reader.boolean("continue_final_message", false);
    const Json* generation = reader.any("add_generation_prompt");
    input.add_generation_prompt =
        reader.boolean("add_generation_prompt", !input.continue_final_message);
    if (generation != nullptr && input.add_generation_prompt && input.continue_final_message)
        reader.fail(
            base::invalid("continue_final_message and add_generation_prompt can't both be "
                          "true",
                          "continue_final_message"));
    read_own_template(reader, context, fields);
    input.kwargs = read_variables(reader);
    const auto effort = reader.string("reasoning_effort");
    if (!effort) return;
    if (!input.kwargs.is_object()) input.kwargs = Json::object();
    if (input.kwargs.find("reasoning_effort") == nullptr)
        input.kwargs.set("reasoning_effort", *effort);
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
    fields.input.messages = reader.take("messages");
    if (reader.array("documents") != nullptr) fields.input.documents = reader.take("documents");
    read_template_options(reader, context, fields);
    fields.input.use_tokens_of(*context.tokenizer);
    fields.input.date_now = text::local_time(context.clock->unix_seconds());
    return fields;
}

base::Result<std::string> render_prompt(const ApiContext& context, ChatFields fields) {
    const std::string& own = fields.own_template;
    if (!own.empty() && context.chat_template != nullptr && context.chat_template->has(own)) {
        fields.input.template_name = own;
    } else if (!own.empty()) {
        auto compiled = text::ChatTemplate::compile(own);
        if (!compiled)
            return base::invalid("chat_template: " + compiled.error().message, "chat_template");
        return (*compiled)->render(std::move(fields.input));
    }
    if (context.chat_template == nullptr)
        return base::invalid(
            "this model has no chat template; use /v1/completions, or start the "
            "server with --chat-template FILE",
            "messages");
    auto text = context.chat_template->render(std::move(fields.input));
    if (!text && text.error().param.empty()) {
        base::Error error = text.error();
        error.param = "messages";
        return error;
    }
    return text;
}

}  // namespace pagoda::api
