#include "text/tokenize/special_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenize/char_scan.h"

namespace pagoda::text {
namespace {

bool is_partitioned(TokenType type) {
    return type == TokenType::kControl || type == TokenType::kUserDefined ||
           type == TokenType::kUnknown;
}

std::vector<base::TokenId> sorted(std::vector<base::TokenId> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
}

bool holds(const std::vector<base::TokenId>& ids, base::TokenId id) {
    return std::binary_search(ids.begin(), ids.end(), id);
}

std::size_t begin_of_blanks(std::string_view text, std::size_t from, std::size_t end) {
    while (end > from) {
        std::size_t begin = end - 1;
        while (begin > from && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
        const ScanChar last = read_valid_utf8(CharTable::instance(), text.data() + begin);
        if ((last.mask & kSpace) == 0) break;
        end = begin;
    }
    return end;
}

std::size_t end_of_blanks(std::string_view text, std::size_t begin) {
    return CharScan(text, CharTable::instance()).run(begin, kSpace);
}

}  // namespace

std::size_t SpecialTokens::key_bytes(const TokenizerSpec& spec) {
    std::size_t total = 0;
    for (std::size_t i = 0; i < spec.types.size(); ++i) {
        if (is_partitioned(spec.types[i])) total += spec.tokens[i].size();
    }
    return total;
}

void SpecialTokens::Set::insert(std::string_view text, base::TokenId id) {
    if (text.empty()) return;
    trie.insert(text, id);
    first_bytes.set(static_cast<unsigned char>(text.front()));
}

SpecialTokens::SpecialTokens(const TokenizerSpec& spec)
    : all_(key_bytes(spec)),
      user_defined_(key_bytes(spec)),
      lstrip_(sorted(spec.lstrip)),
      rstrip_(sorted(spec.rstrip)) {
    for (std::size_t i = 0; i < spec.types.size(); ++i) {
        if (!is_partitioned(spec.types[i]) || !base::is_valid_utf8(spec.tokens[i])) continue;
        const auto id = static_cast<base::TokenId>(i);
        all_.insert(spec.tokens[i], id);
        if (spec.types[i] == TokenType::kUserDefined) user_defined_.insert(spec.tokens[i], id);
    }
}

SpecialTokens::Match SpecialTokens::next(std::string_view text, std::size_t from,
                                         bool with_control) const {
    const Set& set = with_control ? all_ : user_defined_;
    if (set.trie.empty()) return {text.size(), 0, kNoToken};
    for (std::size_t pos = from; pos < text.size(); ++pos) {
        if (!set.first_bytes[static_cast<unsigned char>(text[pos])]) continue;
        const ByteTrie::Match match = set.trie.longest_prefix(text.substr(pos));
        if (match.id != kNoToken) return with_stripped(text, from, {pos, match.bytes, match.id});
    }
    return {text.size(), 0, kNoToken};
}

SpecialTokens::Match SpecialTokens::with_stripped(std::string_view text, std::size_t from,
                                                  Match match) const {
    std::size_t end = match.begin + match.bytes;
    if (holds(lstrip_, match.id)) match.begin = begin_of_blanks(text, from, match.begin);
    if (holds(rstrip_, match.id)) end = end_of_blanks(text, end);
    match.bytes = end - match.begin;
    return match;
}

}  // namespace pagoda::text
