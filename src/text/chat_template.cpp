#include "text/chat_template.h"

#include <array>
#include <utility>

#include <fmt/core.h>

#include "text/jinja/json_text.h"
#include "text/jinja/program.h"
#include "text/jinja/unicode.h"
#include "text/message_shape.h"

namespace pagoda::text {

namespace {

using base::Json;

constexpr std::array<std::string_view, 6> kReservedNames = {
    "messages",     "tools", "documents", "add_generation_prompt", "continue_final_message",
    "chat_template"};

jinja::Limits limits_of(const RenderLimits& limits) {
    return {limits.max_steps, limits.max_output_bytes, limits.max_depth, limits.max_time};
}

// Stands behind the last message's text while it is rendered, to be found again. The blank at its
// end tells whether the template trims.
std::string unused_marker(const Json& messages) {
    const std::string text = messages.dump();
    std::string marker = "\xEE\x83\x87partial-message-ends\xEE\x83\x87";
    while (text.find(marker) != std::string::npos) marker += "\xEE\x83\x87";
    return marker;
}

struct FinalText {
    std::string text;    // as the client sent it
    std::string marker;  // behind it in the messages
};

// Puts the marker behind the text of the last message.
base::Result<FinalText> mark_final_message(Json& messages) {
    if (messages.as_array().empty()) {
        return base::invalid("continue_final_message needs at least one message", "messages");
    }
    FinalText final_text{{}, unused_marker(messages)};
    Json& last = messages.as_array().back();
    const Json* const content = last.find("content");
    if (content != nullptr && content->is_string()) {
        final_text.text = content->as_string();
        last.set("content", final_text.text + final_text.marker + " ");
        return final_text;
    }
    if (content != nullptr && content->is_array()) {
        Json parts = *content;
        for (std::size_t at = parts.as_array().size(); at > 0; --at) {
            Json& part = parts.as_array()[at - 1];
            const Json* const text = part.find("text");
            if (text == nullptr || !text->is_string()) continue;
            final_text.text = text->as_string();
            part.set("text", final_text.text + final_text.marker + " ");
            last.set("content", std::move(parts));
            return final_text;
        }
    }
    return base::invalid("continue_final_message needs a last message with text", "messages");
}

// The prompt up to the end of the last message's text, without what the template trims of it.
base::Result<std::string> cut_at_marker(std::string rendered, const FinalText& final_text) {
    const std::size_t at = rendered.rfind(final_text.marker);
    if (at == std::string::npos) {
        return base::invalid(
            "this model's chat template does not print the last message's text, so the message "
            "can't be continued",
            "continue_final_message");
    }
    const bool is_trimmed = rendered.compare(at + final_text.marker.size(), 1, " ") != 0;
    rendered.resize(at);
    if (!is_trimmed) return rendered;
    const std::string_view kept = jinja::strip_space(final_text.text, jinja::Side::kRight);
    const std::string_view blanks = std::string_view(final_text.text).substr(kept.size());
    if (!kept.empty() && std::string_view(rendered).ends_with(blanks)) {
        rendered.resize(rendered.size() - blanks.size());
    }
    return rendered;
}

base::Status add_kwargs(const Json& kwargs, jinja::RenderInput& input) {
    if (kwargs.is_null()) return {};
    if (!kwargs.is_object()) {
        return base::invalid(
            fmt::format("chat_template_kwargs must be an object, got {}", kwargs.type_name()),
            "chat_template_kwargs");
    }
    for (const auto& [name, value] : kwargs.as_object()) {
        for (const std::string_view reserved : kReservedNames) {
            if (name != reserved) continue;
            return base::invalid(fmt::format("chat_template_kwargs may not set '{}'", name),
                                 "chat_template_kwargs");
        }
        input.variables.emplace_back(name, jinja::from_json(value));
    }
    return {};
}

base::Status check_depth(const Json& json, std::string_view name) {
    // The depth of one value is found without recursion.
    std::vector<std::pair<const Json*, int>> open{{&json, 1}};
    while (!open.empty()) {
        const auto [value, depth] = open.back();
        open.pop_back();
        if (depth > jinja::Heap::kMaxDepth / 2) {
            return base::invalid(
                fmt::format("{} are nested deeper than {}", name, jinja::Heap::kMaxDepth / 2),
                std::string(name));
        }
        if (value->is_array()) {
            for (const Json& item : value->as_array()) open.emplace_back(&item, depth + 1);
        } else if (value->is_object()) {
            for (const auto& [key, item] : value->as_object()) open.emplace_back(&item, depth + 1);
        }
    }
    return {};
}

}  // namespace

struct ChatTemplate::Impl {
    std::string source;
    std::unique_ptr<jinja::Program> program;
    MessageShape shape;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

base::Result<std::unique_ptr<ChatTemplate>> ChatTemplate::compile(std::string_view source) {
    auto program = jinja::Program::compile(source);
    if (!program.ok()) return program.error();
    auto impl = std::make_unique<Impl>();
    impl->source = source;
    impl->program = std::move(program).value();
    impl->shape = probe_message_shape(*impl->program);
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(impl)));
}

base::Result<std::string> ChatTemplate::render(const ChatInput& input,
                                               const RenderLimits& limits) const {
    if (input.continue_final_message && input.add_generation_prompt) {
        return base::invalid(
            "continue_final_message and add_generation_prompt exclude each other: set one of them "
            "to false",
            "continue_final_message");
    }
    for (const auto& [json, name] :
         {std::pair(&input.messages, "messages"), std::pair(&input.tools, "tools"),
          std::pair(&input.documents, "documents"),
          std::pair(&input.kwargs, "chat_template_kwargs")}) {
        if (auto status = check_depth(*json, name); !status.ok()) return status.error();
    }
    auto messages = fit_messages(input.messages, impl_->shape);
    if (!messages.ok()) return messages.error();
    FinalText final_text;
    if (input.continue_final_message) {
        auto marked = mark_final_message(*messages);
        if (!marked.ok()) return marked.error();
        final_text = std::move(marked).value();
    }
    jinja::RenderInput render_input;
    render_input.limits = limits_of(limits);
    render_input.date_now = input.date_now;
    auto& variables = render_input.variables;
    variables = {{"messages", jinja::from_json(*messages)},
                 {"tools", jinja::from_json(input.tools)},
                 {"documents", jinja::from_json(input.documents)},
                 {"add_generation_prompt", jinja::Value(input.add_generation_prompt)}};
    if (!input.bos_token.empty())
        variables.emplace_back("bos_token", jinja::from_json(input.bos_token));
    if (!input.eos_token.empty())
        variables.emplace_back("eos_token", jinja::from_json(input.eos_token));
    if (auto status = add_kwargs(input.kwargs, render_input); !status.ok()) return status.error();
    auto rendered = impl_->program->render(render_input);
    if (!rendered.ok() || !input.continue_final_message) return rendered;
    return cut_at_marker(std::move(rendered).value(), final_text);
}

base::Result<std::string> ChatTemplate::render_raw(const Json& variables,
                                                   const RenderLimits& limits) const {
    if (!variables.is_object()) {
        return base::invalid(
            fmt::format("a template's variables must be an object, got {}", variables.type_name()));
    }
    if (auto status = check_depth(variables, "variables"); !status.ok()) return status.error();
    jinja::RenderInput input;
    input.limits = limits_of(limits);
    for (const auto& [name, value] : variables.as_object()) {
        input.variables.emplace_back(name, jinja::from_json(value));
    }
    return impl_->program->render(input);
}

const std::string& ChatTemplate::source() const {
    return impl_->source;
}

}  // namespace pagoda::text
