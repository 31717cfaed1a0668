// Any text through every kind of tokenizer, and any vocabulary through their creation: no crash, a
// byte-level decode gives valid text back byte for byte, and streamed text is the decoded text.
// The first byte chooses the tokenizer; for the last choice the rest is a vocabulary.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/vocabulary_for_test.h"

namespace {

using namespace pagoda;
using text::TokenizerKind;
using text::TokenizerSpec;
using text::TokenType;

constexpr std::string_view kRules[] = {
    "default", "gpt-2",    "smollm",      "llama-bpe",    "qwen2",          "qwen35",    "gpt-4o",
    "tekken",  "kimi-k2",  "deepseek-v3", "deepseek-llm", "deepseek-coder", "falcon",    "bloom",
    "viking",  "superbpe", "tiny_aya",    "jais-2",       "exaone-moe",     "chameleon", "minicpm5",
    "laguna",  "spark2_5", "afmoe",       "youtu",        "seed-coder",
};

std::unique_ptr<text::Tokenizer> make(TokenizerSpec spec) {
    auto tokenizer = text::Tokenizer::create(std::move(spec));
    CHECK(tokenizer.ok(), tokenizer.error().message);
    return std::move(tokenizer).value();
}

struct Fixed {
    std::unique_ptr<text::Tokenizer> tokenizer;
    bool is_lossless = false;
};

std::vector<Fixed> make_all() {
    std::vector<Fixed> all;
    for (const std::string_view rule : kRules) {
        TokenizerSpec spec = text::test::byte_level_spec(
            {"a a", "aa aa", "\u0120 a", "\u010A \u010A", "e s", "\u0120a a"}, std::string(rule));
        text::test::add_token(spec, "<|im_end|>", TokenType::kControl);
        text::test::add_token(spec, "<t>", TokenType::kUserDefined);
        all.push_back({make(std::move(spec)), true});
    }
    const std::vector<std::string> pieces = {
        "\u2581", "\u2581a", "a", "aa", "\u2581\u2581", "e", "es", "\u4F60\u597D", "\u0301"};
    for (const TokenizerKind kind :
         {TokenizerKind::kSentencePieceBpe, TokenizerKind::kUnigram, TokenizerKind::kWordPiece}) {
        for (const bool has_bytes : {true, false}) {
            all.push_back({make(text::test::pieces_spec(kind, pieces, has_bytes)), false});
        }
    }
    return all;
}

void check_text(const Fixed& fixed, std::string_view input) {
    const auto ids =
        fixed.tokenizer->encode(input, {.ends = text::EncodeOptions::SpecialEnds::kNone});
    CHECK(ids.ok(), ids.error().message);
    if (base::is_valid_utf8(input))
        CHECK(std::ssize(*ids) >= fixed.tokenizer->least_tokens(input), "fewer than the least");
    const std::string decoded = fixed.tokenizer->decode(*ids, false);
    if (fixed.is_lossless) {
        CHECK(decoded == base::replace_invalid_utf8(input), "the text came back changed");
    }
    text::Detokenizer detokenizer(*fixed.tokenizer, false);
    std::string streamed;
    for (const base::TokenId id : *ids) {
        const std::string chunk = detokenizer.append(id);
        CHECK(base::is_valid_utf8(chunk), "a chunk splits a character");
        streamed += chunk;
    }
    streamed += detokenizer.finish();
    CHECK(streamed == base::replace_invalid_utf8(decoded), "chunks do not join to the decode");
}

// Lines are tokens; a line's first character is its type. After an empty line: merges; then the
// charsmap, as it is.
void check_vocabulary(std::string_view input) {
    TokenizerSpec spec;
    const auto next_line = [&input] {
        const std::size_t end = input.find('\n');
        const std::string_view line = input.substr(0, end);
        input.remove_prefix(end == input.npos ? input.size() : end + 1);
        return line;
    };
    const std::string_view head = next_line();
    spec.kind = static_cast<TokenizerKind>(head.empty() ? 0 : head.front() & 3);
    if (head.size() > 1) spec.pre_tokenizer = head.substr(1);
    for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
        spec.types.push_back(static_cast<TokenType>(1 + (line.front() & 7) % 6));
        spec.tokens.emplace_back(line.substr(1));
        spec.scores.push_back(-static_cast<float>(line.size()));
    }
    spec.unk = 0;
    for (std::string_view line = next_line(); !line.empty(); line = next_line()) {
        spec.merges.emplace_back(line);
    }
    spec.precompiled_charsmap = input;
    const std::string text(input);
    auto tokenizer = text::Tokenizer::create(std::move(spec));
    if (!tokenizer.ok()) {
        CHECK(!tokenizer.error().message.empty(), "an error without a message");
        return;
    }
    check_text({std::move(tokenizer).value(), false}, text);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<Fixed> all = make_all();
    if (size == 0) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t choice = data[0] % (all.size() + 1);
    if (choice < all.size()) {
        check_text(all[choice], input);
    } else {
        check_vocabulary(input);
    }
    return 0;
}
