#include "text/tokenize/byte_trie.h"

#include <bit>

#include "base/check.h"

namespace pagoda::text {

ByteTrie::ByteTrie(std::size_t total_key_bytes)
    : slots_(std::bit_ceil(total_key_bytes + total_key_bytes / 2 + 8)),
      mask_(slots_.size() - 1),
      ids_(1, kNoToken) {
    CHECK(total_key_bytes <= kMaxKeyBytes, "too many key bytes for a trie");
    root_.fill(kNone);
}

void ByteTrie::insert(std::string_view key, base::TokenId id) {
    if (key.empty()) return;
    Node node = kRoot;
    for (const char c : key) {
        const auto byte = static_cast<unsigned char>(c);
        Node next = child(node, byte);
        if (next == kNone) {
            next = static_cast<Node>(ids_.size());
            ids_.push_back(kNoToken);
            if (node == kRoot) {
                root_[byte] = next;
            } else {
                slots_[probe(node << 8 | byte)] = {node << 8 | byte, next};
            }
        }
        node = next;
    }
    if (ids_[node] == kNoToken) ids_[node] = id;
}

ByteTrie::Match ByteTrie::longest_prefix(std::string_view text) const {
    Match best;
    Node node = kRoot;
    for (std::size_t i = 0; i < text.size(); ++i) {
        node = child(node, static_cast<unsigned char>(text[i]));
        if (node == kNone) break;
        if (ids_[node] != kNoToken) best = {ids_[node], i + 1};
    }
    return best;
}

}  // namespace pagoda::text
