#include "text/message_shape.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "text/jinja/json_text.h"

namespace pagoda::text {

namespace {

using base::Json;

constexpr std::string_view kProbe = "pagoda-probe-text";
constexpr std::string_view kArgumentsText = R"({"probe_key": "probe_value"})";

Json object(std::vector<Json::Member> members) {
    return Json(std::move(members));
}

Json array(std::vector<Json> items) {
    return Json(std::move(items));
}

Json probe_arguments() {
    return object({{"probe_key", "probe_value"}});
}

Json probe_tools() {
    const Json parameters =
        object({{"type", "object"}, {"properties", object({})}, {"required", Json::array()}});
    const Json function = object(
        {{"name", "probe_function"}, {"description", "A function."}, {"parameters", parameters}});
    return array({object({{"type", "function"}, {"function", function}})});
}

Json message(std::string_view role, Json content) {
    return object({{"role", role}, {"content", std::move(content)}});
}

// The text of a small conversation, or nothing when the template fails on it.
std::optional<std::string> try_render(const jinja::Program& program, const Json& messages,
                                      const Json& tools) {
    jinja::RenderInput input;
    input.limits.max_steps = 500'000;
    input.limits.max_bytes = 8U << 20;
    input.limits.max_time = std::chrono::milliseconds(500);
    input.date_now = "2024-01-01T00:00:00";
    input.variables = {
        {"messages", jinja::from_json(messages)}, {"tools", jinja::from_json(tools)},
        {"documents", jinja::Value::none()},      {"add_generation_prompt", jinja::Value(true)},
        {"bos_token", jinja::make_text("<s>")},   {"eos_token", jinja::make_text("</s>")}};
    auto text = program.render(input);
    if (!text.ok()) return {};
    return std::move(text).value();
}

bool has(const std::optional<std::string>& text, std::string_view part) {
    return text.has_value() && text->find(part) != std::string::npos;
}

std::size_t count(std::string_view text, std::string_view part) {
    std::size_t occurrences = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + part.size())) {
        ++occurrences;
    }
    return occurrences;
}

void probe_content(const jinja::Program& program, MessageShape& shape) {
    const Json part = object({{"type", "text"}, {"text", kProbe}});
    for (const bool has_system : {false, true}) {
        const auto conversation = [&](const Json& content) {
            std::vector<Json> messages;
            if (has_system) messages.push_back(message("system", "S"));
            messages.push_back(message("user", content));
            return array(std::move(messages));
        };
        const auto as_text = try_render(program, conversation(kProbe), Json());
        const auto as_parts = try_render(program, conversation(array({part})), Json());
        const bool takes_text = has(as_text, kProbe);
        // A template that only prints the list shows the names of its members.
        const bool takes_parts =
            has(as_parts, kProbe) && !has(as_parts, "'type'") && !has(as_parts, "\"type\"");
        if (!takes_text && !takes_parts) continue;
        shape.takes_text = takes_text;
        shape.takes_parts = takes_parts;
        return;
    }
}

// A user's question, a tool call, and its result. No content: the member is left out.
Json tool_conversation(const Json& arguments, const std::optional<Json>& content) {
    const Json function = object({{"name", "probe_function"}, {"arguments", arguments}});
    const Json call = object({{"id", "call00001"}, {"type", "function"}, {"function", function}});
    Json assistant = object({{"role", "assistant"}});
    if (content) assistant.set("content", *content);
    assistant.set("tool_calls", array({call}));
    Json result = message("tool", "R");
    result.set("tool_call_id", "call00001");
    result.set("name", "probe_function");
    return array({message("user", "Q"), assistant, result});
}

Json plain_conversation(const std::optional<Json>& content) {
    Json assistant = object({{"role", "assistant"}});
    if (content) assistant.set("content", *content);
    return array({message("user", "Q"), assistant, message("user", "Q")});
}

// Says whether any variant of the conversation rendered with its tool call.
bool probe_arguments_of(const jinja::Program& program, MessageShape& shape) {
    const Json tools = probe_tools();
    for (const std::optional<Json>& content :
         {std::optional<Json>(""), std::optional<Json>(Json()), std::optional<Json>()}) {
        const auto as_text = try_render(program, tool_conversation(kArgumentsText, content), tools);
        const auto as_mapping =
            try_render(program, tool_conversation(probe_arguments(), content), tools);
        // Encoded twice, the text would have its quotes escaped.
        const bool takes_text = has(as_text, kArgumentsText);
        // Python's own notation of a mapping is no JSON.
        const bool takes_mapping = has(as_mapping, "probe_key") && has(as_mapping, "probe_value") &&
                                   !has(as_mapping, "'probe_key'");
        if (!takes_text && !takes_mapping) continue;
        if (!takes_text) shape.arguments = MessageShape::Arguments::kMapping;
        if (!takes_mapping) shape.arguments = MessageShape::Arguments::kText;
        return true;
    }
    return false;
}

void probe_absent_content(const jinja::Program& program, MessageShape& shape, bool has_calls) {
    const Json tools = has_calls ? probe_tools() : Json();
    const Json arguments = shape.arguments == MessageShape::Arguments::kText ? Json(kArgumentsText)
                                                                             : probe_arguments();
    const auto render = [&](const std::optional<Json>& content) {
        return try_render(
            program,
            has_calls ? tool_conversation(arguments, content) : plain_conversation(content), tools);
    };
    const auto with_empty = render(Json(""));
    const std::size_t expected = with_empty ? count(*with_empty, "None") : 0;
    const auto is_fine = [&](const std::optional<std::string>& text) {
        return text.has_value() && count(*text, "None") == expected;
    };
    shape.takes_null_content = is_fine(render(Json()));
    shape.takes_missing_content = is_fine(render({}));
}

base::Result<std::string> joined_parts(const Json& parts, std::size_t message_index) {
    std::string text;
    for (std::size_t at = 0; at < parts.as_array().size(); ++at) {
        const Json& part = parts.as_array()[at];
        const Json* const part_text = part.find("text");
        if (part.is_string()) {
            if (at > 0) text += '\n';
            text += part.as_string();
        } else if (part_text != nullptr && part_text->is_string()) {
            if (at > 0) text += '\n';
            text += part_text->as_string();
        } else {
            const Json* const type = part.find("type");
            return base::invalid(
                fmt::format("messages[{}].content[{}]: a part of type {} has no text, and this "
                            "model's chat template takes only text",
                            message_index, at, type == nullptr ? "null" : type->dump()),
                fmt::format("messages[{}].content", message_index));
        }
    }
    return text;
}

base::Status fit_content(Json& fitted, std::size_t index, const MessageShape& shape) {
    const Json* const content = fitted.find("content");
    if (content == nullptr) {
        if (shape.takes_missing_content) return {};
        if (shape.takes_null_content) {
            fitted.set("content", Json());
        } else {
            fitted.set("content", "");
        }
    } else if (content->is_null()) {
        if (!shape.takes_null_content) fitted.set("content", "");
    } else if (content->is_array() && !shape.takes_parts) {
        auto text = joined_parts(*content, index);
        if (!text.ok()) return text.error();
        fitted.set("content", std::move(text).value());
    } else if (content->is_string() && !shape.takes_text && !content->as_string().empty()) {
        fitted.set("content", array({object({{"type", "text"}, {"text", *content}})}));
    }
    return {};
}

base::Result<Json> fit_arguments(const Json& arguments, const std::string& place,
                                 MessageShape::Arguments wanted) {
    if (wanted == MessageShape::Arguments::kText && !arguments.is_string()) {
        Json::DumpOptions options;
        options.item_separator = ", ";
        options.key_separator = ": ";
        return Json(arguments.dump(options));
    }
    if (wanted != MessageShape::Arguments::kMapping || !arguments.is_string()) return arguments;
    const std::string& text = arguments.as_string();
    // A call without arguments often comes as an empty string.
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
    auto decoded = Json::parse(text);
    if (decoded.ok() && decoded->is_null()) return Json::object();
    if (decoded.ok() && decoded->is_object()) return decoded;
    const std::string reason =
        decoded.ok() ? fmt::format("got {}", decoded->type_name()) : decoded.error().message;
    return base::invalid(
        fmt::format("{} must be a JSON object for this model's chat template: {}", place, reason),
        place);
}

base::Status fit_tool_calls(Json& fitted, std::size_t index, const MessageShape& shape) {
    const Json* const given = fitted.find("tool_calls");
    if (given == nullptr || !given->is_array() ||
        shape.arguments == MessageShape::Arguments::kAsGiven) {
        return {};
    }
    Json calls = *given;
    for (std::size_t at = 0; at < calls.as_array().size(); ++at) {
        Json& call = calls.as_array()[at];
        const Json* const function = call.find("function");
        const Json* const arguments = function == nullptr ? nullptr : function->find("arguments");
        if (arguments == nullptr) continue;
        auto fit = fit_arguments(
            *arguments, fmt::format("messages[{}].tool_calls[{}].function.arguments", index, at),
            shape.arguments);
        if (!fit.ok()) return fit.error();
        Json changed = *function;
        changed.set("arguments", std::move(fit).value());
        call.set("function", std::move(changed));
    }
    fitted.set("tool_calls", std::move(calls));
    return {};
}

}  // namespace

MessageShape probe_message_shape(const jinja::Program& program) {
    MessageShape shape;
    probe_content(program, shape);
    const bool has_calls = probe_arguments_of(program, shape);
    probe_absent_content(program, shape, has_calls);
    return shape;
}

base::Result<Json> fit_messages(Json messages, const MessageShape& shape) {
    if (!messages.is_array()) {
        return base::invalid(fmt::format("messages must be an array, got {}", messages.type_name()),
                             "messages");
    }
    for (std::size_t at = 0; at < messages.as_array().size(); ++at) {
        Json& each = messages.as_array()[at];
        if (!each.is_object()) {
            return base::invalid(
                fmt::format("messages[{}] must be an object, got {}", at, each.type_name()),
                fmt::format("messages[{}]", at));
        }
        if (auto status = fit_content(each, at, shape); !status.ok()) return status.error();
        if (auto status = fit_tool_calls(each, at, shape); !status.ok()) return status.error();
    }
    return messages;
}

}  // namespace pagoda::text
