// pagoda run: one answer, or a chat.

#include <algorithm>
#include <cstdio>

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

namespace pagoda::apps {
namespace {

using TokenIds = std::vector<base::TokenId>;

// What the user wants answered; none of them: a chat.
struct Question {
    std::optional<std::string> text;
    std::optional<std::string> ids;
};

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
    const bool is_pipe = isatty(STDIN_FILENO) == 0;
    if (!question.text && !question.ids && (is_pipe || arguments.has("json"))) {
        auto text = read_standard_input();
        if (!text) return std::move(text).error();
        // The end of a line that a shell or an editor adds is no part of a question.
        if (!arguments.has("raw") && text->ends_with('\n')) text->pop_back();
        question.text = std::move(text).value();
    }
    if (question.text && question.text->empty()) return base::invalid("the prompt is empty");
    return question;
}

base::Result<TokenIds> prompt_ids(const Question& question, const Arguments& arguments,
                                  ModelSession& session) {
    if (question.ids) return parse_ids(*question.ids, session.engine().vocab_size());
    if (arguments.has("raw")) return session.tokenizer().encode(*question.text, {});
    if (session.chat_template() == nullptr)
        return base::invalid("this model has no chat template; use --raw");
    base::Json messages = base::Json::array();
    if (const auto system = arguments.value("system"))
        messages.push_back(chat_message("system", *system));
    messages.push_back(chat_message("user", *question.text));
    return chat_prompt(session.tokenizer(), *session.chat_template(), messages);
}

ExitCode answer_once(const Question& question, const Arguments& arguments, ModelSession& session,
                     const SamplingOptions& options) {
    auto prompt = prompt_ids(question, arguments, session);
    if (!prompt) return fail(prompt.error());
    const auto num_prompt = static_cast<std::int64_t>(prompt->size());
    const std::int64_t room = session.engine().max_model_len() - num_prompt;
    if (room < 1)
        return fail(base::invalid(fmt::format(
            "the prompt has {} tokens, the context is {} tokens, and at least one must be left "
            "for the answer",
            num_prompt, session.engine().max_model_len())));
    engine::GenerateRequest request{.id = "run", .prompt = *prompt, .sampling = options.params};
    if (request.sampling.max_tokens == 0) request.sampling.max_tokens = room;
    const bool is_json = arguments.has("json");
    const auto result =
        answer(session.engine(), std::move(request), is_json ? nullptr : print_piece);
    if (!result) return fail(result.error());
    if (is_json) {
        fmt::print("{}\n",
                   answer_json(session.tokenizer(), *prompt, *result, options.params).dump());
    } else {
        fmt::print("\n");
        if (arguments.has("verbose")) fmt::print(stderr, "{}\n", timings_text(*result));
    }
    return result->finish == engine::FinishReason::kAborted ? ExitCode::kFailure
                                                            : ExitCode::kSuccess;
}

ExitCode run(const Arguments& arguments) {
    const auto config = load_config(arguments);
    if (!config) return bad_usage(config.error());
    if (arguments.has("print-config")) {
        fmt::print("{}", config->to_yaml());
        return ExitCode::kSuccess;
    }
    const auto model = arguments.positional("MODEL");
    if (!model) return bad_usage(base::invalid("run needs a MODEL; see pagoda run --help"));
    const auto settings = local_model_settings(*config, 1);
    if (!settings) return bad_usage(settings.error());
    const auto top = arguments.integer("logprobs", 0, 0, decode::kMaxTopLogprobs);
    if (!top) return bad_usage(top.error());
    if (const auto valid = read_sampling_options(arguments, {}); !valid)
        return bad_usage(valid.error());
    const auto question = read_question(arguments);
    if (!question) return bad_usage(question.error());

    base::Logger logger(
        {.level = arguments.has("verbose") ? base::LogLevel::kInfo : base::LogLevel::kWarning});
    auto session = ModelSession::open(*model, *settings, logger);
    if (!session) return fail(session.error());
    if (arguments.has("verbose")) fmt::print(stderr, "{}\n", (*session)->describe());
    if (const auto status = (*session)->start((*session)->default_name()); !status)
        return fail(status.error());
    auto options = read_sampling_options(arguments, (*session)->sampling_defaults());
    if (!options) return bad_usage(options.error());
    if (arguments.has("logprobs")) options->params.logprobs = static_cast<int>(*top);
    if (question->text || question->ids)
        return answer_once(*question, arguments, **session, *options);
    return chat(**session, std::move(options).value(), arguments.value("system").value_or(""));
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
                            {"PROMPT", "the question; without one, a chat begins", false}},
            .options = run_options(),
            .config_uses = kUsesModel,
            .examples =
                "  pagoda run model.gguf\n"
                "  pagoda run model.gguf \"Why is the sky blue?\"\n"
                "  pagoda run model.gguf --raw --max-tokens 40 \"Once upon a time\"\n"
                "  cat notes.txt | pagoda run model.gguf --seed 7 --json",
            .run = run};
}

}  // namespace pagoda::apps
