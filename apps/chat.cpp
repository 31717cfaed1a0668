#include "chat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#include "answer_json.h"
#include "base/terminal_text.h"
#include "line_editor.h"
#include "local_answer.h"
#include "prompt.h"

namespace pagoda::apps {
namespace {

constexpr std::string_view kHelp =
    "  /help                show this\n"
    "  /clear               forget the conversation\n"
    "  /system TEXT         change the system message and forget the conversation\n"
    "  /set NAME VALUE      temperature, top-p, top-k, min-p, repetition-penalty, seed,\n"
    "                       max-tokens, ignore-eos\n"
    "  /exit                leave (Ctrl-D too)\n"
    "A line that ends with \\ goes on in the next. Ctrl-C stops an answer.\n";

std::string history_file() {
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        return std::string(cache) + "/pagoda/history";
    const char* home = std::getenv("HOME");
    return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.cache/pagoda/history";
}

// The word before the first blank, and what follows.
std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return {text, {}};
    std::string_view rest = text.substr(blank);
    const std::size_t begin = rest.find_first_not_of(' ');
    return {text.substr(0, blank), begin == std::string_view::npos ? "" : rest.substr(begin)};
}

class Conversation {
  public:
    Conversation(ModelSession& session, SamplingOptions options, std::string system)
        : session_(session), options_(std::move(options)), system_(std::move(system)) {
        clear();
    }

    // False when the user wants to leave.
    [[nodiscard]] bool obey(std::string_view line) {
        const auto [word, rest] = split_word(line);
        if (word == "/exit" || word == "/quit" || word == "/bye") return false;
        if (word == "/help") {
            fmt::print(stderr, "{}", kHelp);
        } else if (word == "/clear") {
            clear();
        } else if (word == "/system") {
            system_ = rest;
            clear();
        } else if (word == "/set") {
            const auto [name, value] = split_word(rest);
            if (const auto status = set_sampling_option(name, value, options_); !status)
                fmt::print(stderr, "{}\n", base::terminal_line(status.error().message));
        } else {
            fmt::print(stderr, "unknown command {}; /help shows all\n", word);
        }
        return true;
    }

    void ask(const std::string& text) {
        messages_.push_back(chat_message("user", text));
        auto request = make_request();
        if (!request) return give_up(request.error());
        const auto result = answer(session_.engine(), std::move(request).value(), print_piece);
        if (!result) return give_up(result.error());
        fmt::print("{}\n\n", result->finish == engine::FinishReason::kAborted ? " [stopped]" : "");
        if (result->finish == engine::FinishReason::kLength)
            fmt::print(stderr, "(the answer was cut at its most tokens)\n");
        messages_.push_back(chat_message("assistant", result->text));
        if (!options_.has_seed) options_.params.seed = decode::random_seed();
    }

  private:
    void clear() {
        messages_ = base::Json::array();
        if (!system_.empty()) messages_.push_back(chat_message("system", system_));
    }

    // The question is taken back, so that the next one can be another.
    void give_up(const base::Error& error) {
        fmt::print(stderr, "{}\n", base::terminal_line(error.message));
        messages_.as_array().pop_back();
    }

    base::Result<engine::GenerateRequest> make_request() {
        auto prompt = chat_prompt(session_.tokenizer(), *session_.chat_template(), messages_);
        if (!prompt) return std::move(prompt).error();
        const std::int64_t length = session_.engine().max_model_len();
        std::optional<std::int64_t> wanted;
        if (options_.params.max_tokens > 0) wanted = options_.params.max_tokens;
        const auto max_tokens = engine::resolve_max_tokens(wanted, std::ssize(*prompt), length);
        if (!max_tokens)
            return base::invalid(
                fmt::format("{}; {} are left: /set max-tokens asks for fewer, /clear begins anew",
                            max_tokens.error().message,
                            std::max(length - std::ssize(*prompt), std::int64_t{0})));
        engine::GenerateRequest request{
            .id = "chat", .prompt = std::move(prompt).value(), .sampling = options_.params};
        request.sampling.max_tokens = *max_tokens;
        return request;
    }

    ModelSession& session_;  // outlives the conversation
    SamplingOptions options_;
    std::string system_;
    base::Json messages_;
};

}  // namespace

ExitCode chat(ModelSession& session, SamplingOptions options, const std::string& system) {
    if (session.chat_template() == nullptr)
        return fail(base::invalid(
            "this model has no chat template; give a PROMPT with --raw, or --chat-template FILE"));
    fmt::print(stderr, "{}: /help for help, Ctrl-D to leave\n\n", session.default_name());
    LineEditor editor("> ", history_file());
    Conversation conversation(session, std::move(options), system);
    while (const auto line = editor.read()) {
        if (line->empty()) continue;
        if (line->front() != '/')
            conversation.ask(*line);
        else if (!conversation.obey(*line))
            break;
    }
    return ExitCode::kSuccess;
}

}  // namespace pagoda::apps
