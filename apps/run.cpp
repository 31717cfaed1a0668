// pagoda run: one answer, or a chat.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "answer_json.h"
#include "chat.h"
#include "commands.h"
#include "local_answer.h"
#include "model_config.h"
#include "model_session.h"
#include "prompt.h"
#include "sampling_options.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using TokenIds = std::vector<base::TokenId>;

// What the user wants answered; none of them: a chat.
struct Question {
    std::optional<std::string> text;
    std::optional<std::string> ids;
};

// The end of a line that a shell or an editor adds is no part of a question.
std::string without_line_end(const Arguments& arguments, std::string text) {
    if (!arguments.has("raw") && text.ends_with('\n')) text.pop_back();
    return text;
}

// The prompt with what is piped behind it: cat notes.txt | pagoda run MODEL "Summarise".
base::Result<std::string> with_piped_text(const Arguments& arguments, std::string prompt) {
    std::error_code ignored;
    const auto file = arguments.value("prompt-file");
    if (file && std::filesystem::equivalent("/dev/stdin", *file, ignored)) return prompt;
    auto piped = read_piped_text();
    if (!piped) return std::move(piped).error();
    const std::string text = without_line_end(arguments, std::move(piped).value());
    if (!text.empty()) prompt += "\n\n" + text;
    return prompt;
}

base::Result<Question> read_question(const Arguments& arguments) {
    Question question{.text = arguments.positional("PROMPT"), .ids = arguments.value("prompt-ids")};
    const auto prompt = arguments.value("prompt");
    const auto file = arguments.value("prompt-file");
    if (question.text.has_value() + question.ids.has_value() + prompt.has_value() +
            file.has_value() >
        1)
        return base::invalid(
            "only one of PROMPT, --prompt, --prompt-file and --prompt-ids can be given");
    if (prompt) question.text = prompt;
    if (file) {
        auto text = read_text_file(*file);
        if (!text) return std::move(text).error();
        question.text = std::move(text).value();
    }
    if (question.text && !question.text->empty()) {
        auto text = with_piped_text(arguments, std::move(*question.text));
        if (!text) return std::move(text).error();
        question.text = std::move(text).value();
        return question;
    }
    const bool is_pipe = isatty(STDIN_FILENO) == 0;
    if (!question.text && !question.ids && (is_pipe || arguments.has("json"))) {
        auto text = read_standard_input();
        if (!text) return std::move(text).error();
        question.text = without_line_end(arguments, std::move(text).value());
    }
    if (question.text && question.text->empty()) return base::invalid("the prompt is empty");
    if (!question.text && !question.ids && arguments.has("raw"))
        return base::invalid("--raw needs a prompt; a chat goes through the chat template");
    return question;
}

// Flags that another one leaves without a meaning.
base::Status check_combinations(const Arguments& arguments) {
    if (arguments.has("logprobs") && !arguments.has("json"))
        return base::invalid("--logprobs shows in the JSON output alone; add --json");
    const std::string_view plain = arguments.has("raw")          ? "--raw"
                                   : arguments.has("prompt-ids") ? "--prompt-ids"
                                                                 : "";
    if (plain.empty()) return {};
    if (arguments.has("system"))
        return base::invalid(fmt::format(
            "{} does without the chat template, which --system is for; leave one of them out",
            plain));
    if (arguments.config.contains("chat_template"))
        return base::invalid(
            fmt::format("{} does without a chat template; leave it or --chat-template out", plain));
    return {};
}

// Printing the settings runs nothing: whatever only a run would use is not meant.
base::Status check_printing(const Arguments& arguments) {
    if (arguments.positional("PROMPT"))
        return base::invalid("--print-config runs nothing; leave the PROMPT out");
    for (const auto& [name, values] : arguments.options) {
        if (name != kPrintConfigOption.name && name != kConfigOption.name)
            return base::invalid(fmt::format("--print-config runs nothing; leave --{} out", name));
    }
    return {};
}

base::Result<TokenIds> prompt_ids(const Question& question, const Arguments& arguments,
                                  const ModelSession& session) {
    if (question.ids) {
        auto ids = parse_ids(*question.ids, session.vocab_size());
        if (ids && ids->empty()) return base::invalid("--prompt-ids holds no token id");
        return ids;
    }
    if (arguments.has("raw")) return session.tokenizer().encode(*question.text, {});
    if (session.chat_template() == nullptr)
        return base::invalid("this model has no chat template; use --raw");
    base::Json messages = base::Json::array();
    if (const auto system = arguments.value("system"))
        messages.push_back(chat_message("system", *system));
    messages.push_back(chat_message("user", *question.text));
    return chat_prompt(session.tokenizer(), *session.chat_template(), messages);
}

void print_answer(const Arguments& arguments, const ModelSession& session,
                  const engine::GenerateRequest& request, const Answer& result) {
    if (arguments.has("json")) {
        fmt::print(
            "{}\n",
            answer_json(session.tokenizer(), request.prompt, result, request.sampling).dump());
        return;
    }
    fmt::print("\n");
    if (arguments.has("verbose")) fmt::print(stderr, "{}\n", timings_text(result));
}

// The weights are loaded once the prompt is known to be good.
ExitCode answer_once(const Question& question, const Arguments& arguments, ModelSession& session,
                     const SamplingOptions& options) {
    auto prompt = prompt_ids(question, arguments, session);
    if (!prompt) return question.ids ? bad_usage(prompt.error()) : fail(prompt.error());
    std::optional<std::int64_t> wanted;
    if (options.params.max_tokens > 0) wanted = options.params.max_tokens;
    const auto max_tokens =
        engine::resolve_max_tokens(wanted, std::ssize(*prompt), session.plan().max_model_len);
    if (!max_tokens) return fail(max_tokens.error());
    if (const auto status = session.start(session.default_name()); !status)
        return fail(status.error());
    engine::GenerateRequest request{
        .id = "run", .prompt = std::move(prompt).value(), .sampling = options.params};
    request.sampling.max_tokens = *max_tokens;
    const auto result =
        answer(session.engine(), request, arguments.has("json") ? nullptr : print_piece);
    if (!result) return fail(result.error());
    print_answer(arguments, session, request, *result);
    return result->finish == engine::FinishReason::kAborted ? ExitCode::kFailure
                                                            : ExitCode::kSuccess;
}

ExitCode run_session(const Question& question, const Arguments& arguments, ModelSession& session,
                     std::optional<int> logprobs) {
    if (arguments.has("verbose")) fmt::print(stderr, "{}\n", session.describe());
    auto options = read_sampling_options(arguments, session.sampling_defaults());
    if (!options) return bad_usage(options.error());
    options->params.logprobs = logprobs;
    if (question.text || question.ids) return answer_once(question, arguments, session, *options);
    if (const auto status = session.start(session.default_name()); !status)
        return fail(status.error());
    return chat(session, std::move(options).value(), arguments.value("system").value_or(""));
}

ExitCode print_config(const Config& config, const Arguments& arguments) {
    if (const auto status = check_printing(arguments); !status) return bad_usage(status.error());
    fmt::print("{}", config.to_yaml());
    return ExitCode::kSuccess;
}

ExitCode run(const Arguments& arguments) {
    const auto config = load_config(arguments);
    if (!config) return bad_usage(config.error());
    if (arguments.has("print-config")) return print_config(*config, arguments);
    const auto model = arguments.positional("MODEL");
    if (!model) return bad_usage(base::invalid("run needs a MODEL; see pagoda run --help"));
    const auto settings = local_model_settings(*config, 1);
    if (!settings) return bad_usage(settings.error());
    const auto top = arguments.integer("logprobs", 0, 0, decode::kMaxTopLogprobs);
    if (!top) return bad_usage(top.error());
    if (const auto valid = read_sampling_options(arguments, {}); !valid)
        return bad_usage(valid.error());
    if (const auto valid = check_combinations(arguments); !valid) return bad_usage(valid.error());
    const auto question = read_question(arguments);
    if (!question) return bad_usage(question.error());

    base::Logger logger(
        {.level = arguments.has("verbose") ? base::LogLevel::kInfo : base::LogLevel::kWarning});
    auto session = ModelSession::open(*model, *settings, logger);
    if (!session) return fail(session.error());
    return run_session(
        *question, arguments, **session,
        arguments.has("logprobs") ? std::optional(static_cast<int>(*top)) : std::nullopt);
}

std::vector<OptionSpec> run_options() {
    std::vector<OptionSpec> options = {
        {"prompt", "TEXT", "the prompt"},
        {"prompt-file", "FILE", "the prompt is this file's text"},
        {"prompt-ids", "IDS", "the prompt as token ids: \"1 2 3\""},
        {"raw", "", "continue the text itself, without the chat template"},
        {"system", "TEXT", "system message of the chat"},
        {"logprobs", "N", "with --json: log-probabilities, and N alternatives each"},
        kJsonOption,
        kVerboseOption,
        kConfigOption,
        kPrintConfigOption,
    };
    const auto sampling = sampling_options();
    options.insert(options.end(), sampling.begin(), sampling.end());
    return options;
}

}  // namespace

CommandSpec run_command() {
    return {.name = "run",
            .summary = "Answer one prompt, or chat in the terminal",
            .positionals = {{"MODEL", kModel.help, false},
                            {"PROMPT", "the question, before any piped text; none: a chat", false}},
            .options = run_options(),
            .config_uses = kUsesModel | kUsesAnswers,
            .examples =
                "  pagoda run model.gguf\n"
                "  pagoda run model.gguf \"Why is the sky blue?\"\n"
                "  pagoda run model.gguf --raw --max-tokens 40 \"Once upon a time\"\n"
                "  cat notes.txt | pagoda run model.gguf \"Summarise these notes\"\n"
                "  pagoda run model.gguf --seed 7 --json <question.txt",
            .run = run};
}

}  // namespace pagoda::apps
