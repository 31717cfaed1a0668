#pragma once
// Small vocabularies for tests. Header only; used by *_test.cpp files alone.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "text/tokenize/byte_map.h"
#include "text/tokenizer_spec.h"

namespace pagoda::text::test {

// The 256 bytes, then the tokens that the merges make, each written in byte characters.
inline TokenizerSpec byte_level_spec(std::vector<std::string> merges,
                                     std::string pre_tokenizer = "gpt-2") {
    TokenizerSpec spec;
    spec.kind = TokenizerKind::kByteLevelBpe;
    spec.pre_tokenizer = std::move(pre_tokenizer);
    for (int byte = 0; byte < 256; ++byte) {
        std::string token;
        base::append_utf8(token, ByteMap::instance().char_of(static_cast<unsigned char>(byte)));
        spec.tokens.push_back(std::move(token));
    }
    for (const std::string& merge : merges) {
        std::string joined = merge;
        joined.erase(joined.find(' ', 1), 1);
        spec.tokens.push_back(std::move(joined));
    }
    spec.merges = std::move(merges);
    spec.types.assign(spec.tokens.size(), TokenType::kNormal);
    return spec;
}

inline base::TokenId add_token(TokenizerSpec& spec, std::string text, TokenType type,
                               float score = 0.0F) {
    spec.tokens.push_back(std::move(text));
    spec.types.push_back(type);
    if (spec.kind != TokenizerKind::kByteLevelBpe) spec.scores.push_back(score);
    return static_cast<base::TokenId>(spec.tokens.size() - 1);
}

// <unk> <s> </s>, the 256 byte tokens when asked for, then the pieces, each scored lower than the
// one before.
inline TokenizerSpec pieces_spec(TokenizerKind kind, const std::vector<std::string>& pieces,
                                 bool has_bytes) {
    TokenizerSpec spec;
    spec.kind = kind;
    spec.unk = add_token(spec, "<unk>", TokenType::kUnknown);
    spec.bos = add_token(spec, "<s>", TokenType::kControl);
    spec.eos = add_token(spec, "</s>", TokenType::kControl);
    constexpr char kHex[] = "0123456789ABCDEF";
    for (int byte = 0; has_bytes && byte < 256; ++byte) {
        add_token(spec, std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">",
                  TokenType::kByte);
    }
    float score = -1.0F;
    for (const std::string& piece : pieces) {
        add_token(spec, piece, TokenType::kNormal, score);
        score -= 1.0F;
    }
    return spec;
}

inline base::TokenId id_of(const TokenizerSpec& spec, std::string_view text) {
    for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
        if (spec.tokens[i] == text) return static_cast<base::TokenId>(i);
    }
    return -1;
}

}  // namespace pagoda::text::test
