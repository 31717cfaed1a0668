// pagoda tokenize and detokenize: text to ids and back, byte for byte.

#include <cstdio>

#include <fmt/core.h>

#include "base/terminal_text.h"
#include "commands.h"
#include "model_session.h"
#include "prompt.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using Ends = text::EncodeOptions::SpecialEnds;

base::Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path) {
    const auto checkpoint = formats::open_checkpoint(path);
    if (!checkpoint) return checkpoint.error();
    return make_tokenizer(*checkpoint);
}

// Bytes as one line of text: quotes, backslashes, control characters and what is no UTF-8 are
// escaped, so that a piece can be told from any other.
std::string quoted(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
    }
    return '"' + base::terminal_line(text) + '"';
}

void print_ids(std::span<const base::TokenId> ids) {
    std::string line;
    for (const base::TokenId id : ids) {
        if (!line.empty()) line += ' ';
        line += std::to_string(id);
    }
    fmt::print("{}\n", line);
}

void print_pieces(const text::Tokenizer& tokenizer, std::span<const base::TokenId> ids) {
    for (const base::TokenId id : ids)
        fmt::print("{} {}\n", id, quoted(tokenizer.token_bytes(id, /*skip_special=*/false)));
}

// Texts between NUL bytes; the one that ends the last text begins no other.
std::vector<std::string_view> split_at_nul(std::string_view input) {
    std::vector<std::string_view> texts;
    while (!input.empty()) {
        const std::size_t end = input.find('\0');
        texts.push_back(input.substr(0, end));
        if (end == std::string_view::npos) break;
        input.remove_prefix(end + 1);
    }
    return texts;
}

ExitCode tokenize(const Arguments& arguments) {
    if (arguments.has("add-bos") && arguments.has("no-bos"))
        return bad_usage(base::invalid("--add-bos and --no-bos exclude each other"));
    auto text = arguments.value("text");
    if (text && arguments.has("null"))
        return bad_usage(base::invalid("--null reads standard input; --text can't be given too"));
    const auto tokenizer = open_tokenizer(*arguments.positional("MODEL"));
    if (!tokenizer) return fail(tokenizer.error());
    if (!text) {
        auto input = read_standard_input();
        if (!input) return fail(input.error());
        text = std::move(input).value();
    }
    const text::EncodeOptions options{.ends = arguments.has("add-bos")  ? Ends::kForceBos
                                              : arguments.has("no-bos") ? Ends::kNone
                                                                        : Ends::kModel,
                                      .parse_special = !arguments.has("no-special")};
    const bool is_many = arguments.has("null");
    const auto texts =
        is_many ? split_at_nul(*text) : std::vector<std::string_view>{std::string_view(*text)};
    for (const std::string_view one : texts) {
        const auto ids = (*tokenizer)->encode(one, options);
        if (!ids) return fail(ids.error());
        if (is_many || arguments.has("ids"))
            print_ids(*ids);
        else
            print_pieces(**tokenizer, *ids);
    }
    return ExitCode::kSuccess;
}

ExitCode detokenize(const Arguments& arguments) {
    const auto tokenizer = open_tokenizer(*arguments.positional("MODEL"));
    if (!tokenizer) return fail(tokenizer.error());
    std::string words;
    for (const std::string& word : arguments.rest("IDS")) words += word + ' ';
    if (words.empty()) {
        auto input = read_standard_input();
        if (!input) return fail(input.error());
        words = std::move(input).value();
    }
    const auto ids = parse_ids(words, (*tokenizer)->vocab_size());
    if (!ids) return bad_usage(ids.error());
    const std::string text = (*tokenizer)->decode(*ids, arguments.has("skip-special"));
    std::fwrite(text.data(), 1, text.size(), stdout);
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec tokenize_command() {
    return {.name = "tokenize",
            .summary = "Turn text into token ids",
            .positionals = {kModel},
            .options = {{"text", "TEXT", "the text (default: standard input, byte for byte)"},
                        {"ids", "", "print the ids on one line, without pieces"},
                        {"null", "", "read texts between NUL bytes; a line of ids for each"},
                        {"no-special", "", "text that spells a special token is plain text"},
                        {"add-bos", "", "begin with BOS, whatever the model asks for"},
                        {"no-bos", "", "no special token at either end"}},
            .examples =
                "  pagoda tokenize model.gguf --text \"Hello, world\"\n"
                "  pagoda tokenize model.gguf --ids < book.txt\n"
                "  printf 'one\\0two\\0' | pagoda tokenize model.gguf --null",
            .run = tokenize};
}

CommandSpec detokenize_command() {
    return {.name = "detokenize",
            .summary = "Turn token ids into text",
            .positionals = {kModel, {"IDS", "token ids (default: standard input)", false, true}},
            .options = {{"skip-special", "", "leave special tokens out"}},
            .examples =
                "  pagoda detokenize model.gguf 504 3575 282\n"
                "  pagoda tokenize model.gguf --ids --text Hi | pagoda detokenize model.gguf",
            .run = detokenize};
}

}  // namespace pagoda::apps
