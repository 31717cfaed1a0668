// pagoda template: the prompt that a chat template makes of messages.

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/core.h>

#include "base/terminal_text.h"
#include "commands.h"
#include "model_session.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using base::Json;

base::Status bad_member(std::string_view name, std::string_view expected, const Json& got) {
    return base::invalid(fmt::format("{} must be {}, got {}", name, expected, got.type_name()));
}

// null counts as absent.
const Json* member(const Json& body, std::string_view name) {
    const Json* found = body.find(name);
    return found == nullptr || found->is_null() ? nullptr : found;
}

base::Status read_list(const Json& body, std::string_view name, Json& target) {
    const Json* value = member(body, name);
    if (value == nullptr) return {};
    if (!value->is_array()) return bad_member(name, "an array", *value);
    target = *value;
    return {};
}

base::Status read_switch(const Json& body, std::string_view name, bool& target) {
    const Json* value = member(body, name);
    if (value == nullptr) return {};
    if (!value->is_bool()) return bad_member(name, "true or false", *value);
    target = value->as_bool();
    return {};
}

base::Status read_text(const Json& body, std::string_view name, std::string& target) {
    const Json* value = member(body, name);
    if (value == nullptr) return {};
    if (!value->is_string()) return bad_member(name, "a string", *value);
    target = value->as_string();
    return {};
}

// The variables of chat_template_kwargs, and reasoning_effort, which is one of them in the API too.
base::Status read_variables(const Json& body, Json& variables) {
    if (const Json* kwargs = member(body, "chat_template_kwargs")) {
        if (!kwargs->is_object()) return bad_member("chat_template_kwargs", "an object", *kwargs);
        variables = *kwargs;
    }
    std::string effort;
    base::Status status = read_text(body, "reasoning_effort", effort);
    if (!effort.empty() && variables.find("reasoning_effort") == nullptr)
        variables.set("reasoning_effort", effort);
    return status;
}

constexpr std::array<std::string_view, 8> kMembers = {"messages",
                                                      "tools",
                                                      "documents",
                                                      "add_generation_prompt",
                                                      "continue_final_message",
                                                      "chat_template",
                                                      "chat_template_kwargs",
                                                      "reasoning_effort"};

// Members that are no part of a prompt: a chat body has many, and one of them may be misspelt.
std::string other_members(const Json& body) {
    std::string names;
    for (const auto& [name, value] : body.as_object()) {
        if (std::find(kMembers.begin(), kMembers.end(), name) == kMembers.end())
            names += (names.empty() ? "" : ", ") + name;
    }
    return names;
}

// An OpenAI chat body, or its messages alone.
base::Result<text::ChatInput> read_body(const Json& body) {
    text::ChatInput input;
    input.kwargs = Json::object();
    if (body.is_array()) {
        input.messages = body;
        return input;
    }
    if (member(body, "messages") == nullptr)
        return base::invalid("must be an object with messages, or an array of messages");
    base::Status status = read_variables(body, input.kwargs);
    if (status) status = read_list(body, "messages", input.messages);
    if (status) status = read_list(body, "tools", input.tools);
    if (status) status = read_text(body, "chat_template", input.template_name);
    if (status) status = read_list(body, "documents", input.documents);
    if (status) status = read_switch(body, "continue_final_message", input.continue_final_message);
    input.add_generation_prompt = !input.continue_final_message;
    if (status) status = read_switch(body, "add_generation_prompt", input.add_generation_prompt);
    if (!status) return status.error();
    if (input.add_generation_prompt && input.continue_final_message)
        return base::invalid("continue_final_message and add_generation_prompt can't both be true");
    return input;
}

base::Result<text::ChatInput> read_input(const std::string& path) {
    const auto text = path == "-" ? read_standard_input() : read_text_file(path);
    if (!text) return text.error();
    const auto body = Json::parse(*text);
    auto input = body ? read_body(*body) : base::Result<text::ChatInput>(body.error());
    if (!input) return base::invalid(fmt::format("{}: {}", path, input.error().message));
    if (!body->is_object()) return input;
    if (const std::string names = other_members(*body); !names.empty())
        fmt::print(stderr, "{}: no part of the prompt, and left out: {}\n", path,
                   base::terminal_line(names));
    return input;
}

// name=value: the text of an end token, or a further variable.
base::Status set_variables(const std::vector<std::string>& pairs, text::ChatInput& input) {
    for (const std::string& pair : pairs) {
        const std::size_t equals = pair.find('=');
        if (equals == 0 || equals == std::string::npos)
            return base::invalid(fmt::format("--var must be NAME=VALUE, got \"{}\"", pair));
        const std::string name = pair.substr(0, equals);
        const std::string value = pair.substr(equals + 1);
        if (name == "bos_token")
            input.bos_token = value;
        else if (name == "eos_token")
            input.eos_token = value;
        else
            input.kwargs.set(name, value);
    }
    return {};
}

struct Parts {
    std::unique_ptr<text::ChatTemplate> chat_template;
    std::unique_ptr<text::Tokenizer> tokenizer;  // null without a model
};

// chat_template of the body is one of the model's templates by its name, or a template itself.
base::Status use_template_of_body(Parts& parts, text::ChatInput& input) {
    if (input.template_name.empty() || parts.chat_template->has(input.template_name)) return {};
    auto compiled = text::ChatTemplate::compile(input.template_name);
    if (!compiled)
        return base::Error{compiled.error().code, "chat_template: " + compiled.error().message};
    parts.chat_template = std::move(compiled).value();
    input.template_name.clear();
    return {};
}

base::Result<Parts> open_parts(const std::optional<std::string>& model, const std::string& file) {
    Parts parts;
    text::TokenizerSpec spec;
    if (model) {
        const auto checkpoint = formats::open_checkpoint(*model);
        if (!checkpoint) return checkpoint.error();
        auto tokenizer = make_tokenizer(*checkpoint);
        if (!tokenizer) return std::move(tokenizer).error();
        parts.tokenizer = std::move(tokenizer).value();
        spec = parts.tokenizer->spec();
    }
    auto compiled = make_chat_template(spec, file);
    if (!compiled) return std::move(compiled).error();
    if (*compiled == nullptr)
        return base::invalid(fmt::format("{}: the model has no chat template", *model));
    parts.chat_template = std::move(compiled).value();
    return parts;
}

ExitCode render(const Arguments& arguments) {
    const auto model = arguments.positional("MODEL");
    const auto file = arguments.value("template-file");
    const auto messages = arguments.value("messages");
    if (!model && !file)
        return bad_usage(base::invalid("template needs a MODEL or --template-file"));
    if (!messages) return bad_usage(base::invalid("template needs --messages FILE.json"));
    auto parts = open_parts(model, file.value_or(""));
    if (!parts) return fail(parts.error());
    auto input = read_input(*messages);
    if (!input) return fail(input.error());
    if (file && !input->template_name.empty())
        return bad_usage(base::invalid(fmt::format(
            "{} has a chat_template and --template-file is given; leave one of them out",
            *messages)));
    if (const auto status = use_template_of_body(*parts, *input); !status)
        return fail(status.error());
    if (parts->tokenizer) input->use_tokens_of(*parts->tokenizer);
    if (const auto status = set_variables(arguments.values("var"), *input); !status)
        return bad_usage(status.error());
    input->date_now = arguments.value("date").value_or("");
    const auto text = parts->chat_template->render(*input);
    if (!text) return fail(text.error());
    std::fwrite(text->data(), 1, text->size(), stdout);
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec template_command() {
    return {.name = "template",
            .summary = "Print the prompt that a chat template makes of messages",
            .positionals = {{"MODEL", kModel.help, false}},
            .options = {{"messages", "FILE", "an OpenAI chat body as JSON; - for standard input"},
                        {"template-file", "FILE", "a Jinja template in place of the model's"},
                        {"var", "NAME=VALUE", "bos_token, eos_token, or any other variable", true},
                        {"date", "TIME", "what strftime_now formats: 2024-07-26T12:00:00"}},
            .examples =
                "  pagoda template model.gguf --messages chat.json\n"
                "  pagoda template --template-file t.jinja --var bos_token='<s>' "
                "--messages chat.json",
            .run = render};
}

}  // namespace pagoda::apps
