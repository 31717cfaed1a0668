// pagoda perplexity: how well a model predicts a text.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "answer_json.h"
#include "commands.h"
#include "local_answer.h"
#include "model_config.h"
#include "model_session.h"
#include "progress.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using base::Json;

// Tokens [begin, end) are run; those from first_scored on count.
struct Window {
    std::size_t begin = 0, end = 0, first_scored = 0;
};

// One window as long as the context; or windows of `context` tokens, each `stride` further on,
// which score what no earlier one did.
std::vector<Window> plan_windows(std::size_t num_tokens, std::size_t context,
                                 std::optional<std::size_t> stride) {
    std::vector<Window> windows;
    std::size_t scored = 1;  // nothing predicts the first token
    for (std::size_t begin = 0; scored < num_tokens; begin += stride.value_or(0)) {
        const std::size_t end = std::min(begin + context, num_tokens);
        windows.push_back({.begin = begin, .end = end, .first_scored = scored});
        scored = end;
        if (!stride) break;
    }
    return windows;
}

struct Scores {
    std::vector<base::TokenId> tokens;
    std::vector<std::optional<double>> logprobs;  // as many as tokens
    std::int64_t num_scored = 0;
    double sum = 0;

    [[nodiscard]] double mean() const { return sum / static_cast<double>(num_scored); }
};

base::Result<std::vector<decode::TokenLogprob>> score_window(
    engine::Engine& engine, std::span<const base::TokenId> tokens) {
    engine::GenerateRequest request{.id = "perplexity"};
    request.prompt.assign(tokens.begin(), tokens.end());
    request.sampling.temperature = 0;
    request.sampling.max_tokens = 1;
    request.sampling.prompt_logprobs = 0;
    auto result = answer(engine, std::move(request));
    if (!result) return std::move(result).error();
    if (result->finish == engine::FinishReason::kAborted)
        return base::Error{base::ErrorCode::kCancelled, "stopped"};
    return std::move(result->prompt_logprobs);
}

base::Result<Scores> score(engine::Engine& engine, std::vector<base::TokenId> tokens,
                           const std::vector<Window>& windows) {
    Scores scores{.tokens = std::move(tokens)};
    scores.logprobs.resize(scores.tokens.size());
    Progress progress("scoring");
    for (std::size_t done = 0; done < windows.size(); ++done) {
        const Window& window = windows[done];
        const auto logprobs = score_window(
            engine, std::span(scores.tokens).subspan(window.begin, window.end - window.begin));
        if (!logprobs) return logprobs.error();
        for (std::size_t token = window.first_scored; token < window.end; ++token) {
            const double value = (*logprobs)[token - window.begin - 1].logprob;
            scores.logprobs[token] = value;
            scores.sum += value;
            ++scores.num_scored;
        }
        progress.update(done + 1, windows.size());
    }
    return scores;
}

void print_result(const Scores& scores, bool as_json) {
    const double perplexity = std::exp(-scores.mean());
    if (!as_json) {
        fmt::print("perplexity {:.4f} over {} tokens (mean log-probability {:.6f})\n", perplexity,
                   scores.num_scored, scores.mean());
        return;
    }
    Json logprobs = Json::array();
    for (const std::optional<double>& value : scores.logprobs)
        logprobs.push_back(value ? Json(*value) : Json());
    Json json = Json::object();
    json.set("perplexity", perplexity);
    json.set("tokens", scores.num_scored);
    json.set("mean_logprob", scores.mean());
    json.set("token_ids", ids_json(scores.tokens));
    json.set("logprobs", std::move(logprobs));
    fmt::print("{}\n", json.dump());
}

struct Windowing {
    std::size_t context = 0;
    std::optional<std::size_t> stride;
};

// The engine samples a token after each window, which takes a place of the context.
base::Result<Windowing> read_windowing(const Arguments& arguments, std::int64_t max_model_len) {
    const std::int64_t longest = max_model_len - 1;
    const auto context = arguments.integer("context", longest, 2, longest);
    if (!context) return context.error();
    const auto stride =
        arguments.integer("stride", std::max(*context / 2, std::int64_t{1}), 1, *context - 1);
    if (!stride) return stride.error();
    Windowing result{.context = static_cast<std::size_t>(*context)};
    if (arguments.has("context") || arguments.has("stride"))
        result.stride = static_cast<std::size_t>(*stride);
    return result;
}

ExitCode perplexity(const Arguments& arguments) {
    const auto config = load_config(arguments);
    if (!config) return bad_usage(config.error());
    const auto file = arguments.value("file");
    if (!file) return bad_usage(base::invalid("perplexity needs --file TEXT"));
    const auto settings = local_model_settings(*config, 1);
    if (!settings) return bad_usage(settings.error());
    const auto text = *file == "-" ? read_standard_input() : read_text_file(*file);
    if (!text) return fail(text.error());
    base::Logger logger({.level = base::LogLevel::kWarning});
    auto session = ModelSession::open(*arguments.positional("MODEL"), *settings, logger);
    if (!session) return fail(session.error());
    if (arguments.has("verbose")) fmt::print(stderr, "{}\n", (*session)->describe());
    const auto windowing = read_windowing(arguments, (*session)->plan().max_model_len);
    if (!windowing) return bad_usage(windowing.error());
    auto tokens = (*session)->tokenizer().encode(*text, {});
    if (!tokens) return fail(tokens.error());
    if (tokens->size() < 2)
        return fail(base::invalid(
            fmt::format("{}: has {} tokens, at least 2 are needed", *file, tokens->size())));
    if (!windowing->stride && tokens->size() > windowing->context) {
        fmt::print(stderr, "{} has {} tokens; the first {} are scored (--context N takes all)\n",
                   *file, tokens->size(), windowing->context);
        tokens->resize(windowing->context);
    }
    const auto windows = plan_windows(tokens->size(), windowing->context, windowing->stride);
    if (const auto status = (*session)->start((*session)->default_name()); !status)
        return fail(status.error());
    const auto scores = score((*session)->engine(), std::move(tokens).value(), windows);
    if (!scores) return fail(scores.error());
    print_result(*scores, arguments.has("json"));
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec perplexity_command() {
    return {.name = "perplexity",
            .summary = "Measure how well a model predicts a text",
            .positionals = {kModel},
            .options = {{"file", "TEXT", "the text; - for standard input"},
                        {"context", "N", "score the whole text in windows of N tokens"},
                        {"stride", "N", "how far a window is from the next (default: half of it)"},
                        kJsonOption,
                        kVerboseOption,
                        kConfigOption},
            .config_uses = kUsesModel,
            .examples =
                "  pagoda perplexity model.gguf --file essay.txt\n"
                "  pagoda perplexity model.gguf --file book.txt --context 2048 --json\n"
                "  pagoda perplexity model.gguf --file essay.txt --activation-dtype f32",
            .run = perplexity};
}

}  // namespace pagoda::apps
