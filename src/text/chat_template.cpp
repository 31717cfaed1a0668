#include "text/chat_template.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "text/jinja/json_text.h"
#include "text/jinja/program.h"
#include "text/jinja/strftime.h"
#include "text/jinja/unicode.h"
#include "text/message_shape.h"
#include "text/tokenizer.h"

namespace pagoda::text {

namespace {

using base::Json;

constexpr std::array<std::string_view, 6> kReservedNames = {
    "messages",     "tools", "documents", "add_generation_prompt", "continue_final_message",
    "chat_template"};

// The names that Hugging Face gives them.
constexpr std::string_view kDefaultName = "default";
constexpr std::string_view kToolUseName = "tool_use";

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

struct ChatTemplate::Compiled {
    std::unique_ptr<jinja::Program> program;
    MessageShape shape;
};

struct ChatTemplate::Impl {
    struct Named {
        std::string name;
        base::Result<Compiled> compiled;
    };

    static base::Result<Compiled> compile(std::string_view source) {
        auto program = jinja::Program::compile(source);
        if (!program.ok()) return program.error();
        const MessageShape shape = probe_message_shape(**program);
        return Compiled{std::move(program).value(), shape};
    }
    const Named* find(std::string_view name) const {
        for (const Named& each : named) {
            if (each.name == name) return &each;
        }
        return nullptr;
    }

    std::optional<Compiled> main;
    std::vector<Named> named;
};

void ChatInput::use_tokens_of(const Tokenizer& tokenizer) {
    const auto text_of = [&](const std::optional<base::TokenId>& id) {
        return id ? tokenizer.token_bytes(*id, /*skip_special=*/false) : std::string();
    };
    bos_token = text_of(tokenizer.spec().bos);
    eos_token = text_of(tokenizer.spec().eos);
}

std::string local_time(std::int64_t unix_seconds) {
    return jinja::local_time(unix_seconds);
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

base::Result<std::unique_ptr<ChatTemplate>> ChatTemplate::compile(std::string_view source) {
    auto main = Impl::compile(source);
    if (!main.ok()) return main.error();
    auto impl = std::make_unique<Impl>();
    impl->main = std::move(main).value();
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(impl)));
}

base::Result<std::unique_ptr<ChatTemplate>> ChatTemplate::compile(std::string_view main,
                                                                  const NamedSources& named) {
    auto impl = std::make_unique<Impl>();
    if (!main.empty()) {
        auto compiled = Impl::compile(main);
        if (!compiled.ok()) return compiled.error();
        impl->main = std::move(compiled).value();
    }
    for (const auto& [name, source] : named) impl->named.push_back({name, Impl::compile(source)});
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(impl)));
}

bool ChatTemplate::has(std::string_view name) const {
    return impl_->find(name) != nullptr || (name == kDefaultName && impl_->main.has_value());
}

// As Hugging Face's apply_chat_template chooses.
base::Result<const ChatTemplate::Compiled*> ChatTemplate::choose(const ChatInput& input) const {
    std::string_view name = input.template_name;
    if (name.empty())
        name = !input.tools.is_null() && has(kToolUseName) ? kToolUseName : kDefaultName;
    if (const Impl::Named* found = impl_->find(name)) {
        if (found->compiled.ok()) return &*found->compiled;
        const base::Error& error = found->compiled.error();
        return base::Error{
            error.code,
            fmt::format("the chat template \"{}\" of this model: {}", name, error.message),
            error.param};
    }
    if (name == kDefaultName && impl_->main) return &*impl_->main;
    std::string known;
    for (const Impl::Named& each : impl_->named)
        known += (known.empty() ? "\"" : ", \"") + each.name + "\"";
    return base::invalid(fmt::format("this model has no chat template \"{}\", but {}", name,
                                     known.empty() ? "a nameless one alone" : known),
                         "chat_template");
}

base::Result<std::string> ChatTemplate::render(ChatInput input, const RenderLimits& limits) const {
    const auto chosen = choose(input);
    if (!chosen.ok()) return chosen.error();
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
    auto messages = fit_messages(std::move(input.messages), (*chosen)->shape);
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
    *messages = Json();  // the template has its own copy
    auto rendered = (*chosen)->program->render(render_input);
    if (!rendered.ok() || !input.continue_final_message) return rendered;
    return cut_at_marker(std::move(rendered).value(), final_text);
}

base::Result<std::string> ChatTemplate::render_raw(const Json& variables,
                                                   const RenderLimits& limits) const {
    if (!impl_->main) return base::invalid("there is no main chat template", "chat_template");
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
    return impl_->main->program->render(input);
}

}  // namespace pagoda::text
