#pragma once
// merge_symbols: joins neighbouring symbols, the pair of lowest order first and the leftmost among
// equals, until no pair joins: byte-pair encoding, whatever the orders come from. Short words are
// scanned, long ones go through a priority queue: O(n log n).
//
// Lookup is called as PairMerge(const Symbol& left, const Symbol& right).

#include <algorithm>
#include <array>

#include "text/tokenize/encode_state.h"
#include "text/tokenize/token_map.h"

namespace pagoda::text {

namespace merge_detail {

inline constexpr std::size_t kShortWord = 24;

template <class Lookup>
void merge_short(std::vector<Symbol>& symbols, const Lookup& lookup) {
    std::array<PairMerge, kShortWord> joins;  // of each symbol with the one after it
    std::size_t count = symbols.size();
    for (std::size_t i = 0; i + 1 < count; ++i) joins[i] = lookup(symbols[i], symbols[i + 1]);
    while (count > 1) {
        std::size_t best = count;
        for (std::size_t i = 0; i + 1 < count; ++i) {
            if (joins[i].id == kNoToken) continue;
            if (best == count || joins[i].order < joins[best].order) best = i;
        }
        if (best == count) break;
        symbols[best].bytes += symbols[best + 1].bytes;
        symbols[best].id = joins[best].id;
        --count;
        for (std::size_t i = best + 1; i < count; ++i) {
            symbols[i] = symbols[i + 1];
            joins[i - 1] = joins[i];
        }
        if (best > 0) joins[best - 1] = lookup(symbols[best - 1], symbols[best]);
        if (best + 1 < count) joins[best] = lookup(symbols[best], symbols[best + 1]);
    }
    symbols.resize(count);
}

struct Candidate {
    std::uint64_t key = 0;    // order << 32 | index of the left symbol
    base::TokenId id = -1;    // what the pair becomes
    std::uint32_t bytes = 0;  // of both: tells whether the pair is still the same
    [[nodiscard]] bool operator<(const Candidate& other) const { return key > other.key; }
};

template <class Lookup>
bool merge_long(EncodeState& state, const Lookup& lookup) {
    std::vector<Symbol>& symbols = state.symbols;
    std::vector<Candidate> heap;
    const auto candidate = [&](std::int32_t left, std::int32_t right) {
        const PairMerge merge = lookup(symbols[left], symbols[right]);
        const std::uint64_t key =
            std::uint64_t{merge.order} << 32 | static_cast<std::uint32_t>(left);
        return Candidate{key, merge.id, symbols[left].bytes + symbols[right].bytes};
    };
    const auto count = static_cast<std::int32_t>(symbols.size());
    for (std::int32_t i = 0; i < count; ++i) {
        symbols[i].prev = i - 1;
        symbols[i].next = i + 1 < count ? i + 1 : -1;
        if (i > 0) {
            const Candidate join = candidate(i - 1, i);
            if (join.id != kNoToken) heap.push_back(join);
        }
    }
    std::make_heap(heap.begin(), heap.end());
    const auto push = [&](std::int32_t left, std::int32_t right) {
        if (left < 0 || right < 0) return;
        const Candidate join = candidate(left, right);
        if (join.id == kNoToken) return;
        heap.push_back(join);
        std::push_heap(heap.begin(), heap.end());
    };
    while (!heap.empty()) {
        if (!state.go_on(1)) return false;
        std::pop_heap(heap.begin(), heap.end());
        const Candidate best = heap.back();
        heap.pop_back();
        const auto left_index = static_cast<std::int32_t>(best.key & 0xFFFFFFFFU);
        Symbol& left = symbols[left_index];
        // Symbols only grow, so a pair of the same start and length is the same pair.
        if (left.bytes == 0 || left.next < 0) continue;
        Symbol& right = symbols[left.next];
        if (left.bytes + right.bytes != best.bytes) continue;
        left.bytes = best.bytes;
        left.id = best.id;
        right.bytes = 0;
        left.next = right.next;
        if (left.next >= 0) symbols[left.next].prev = left_index;
        push(left.prev, left_index);
        push(left_index, left.next);
    }
    std::erase_if(symbols, [](const Symbol& symbol) { return symbol.bytes == 0; });
    return true;
}

}  // namespace merge_detail

// Merges state.symbols in place. False when cancelled.
template <class Lookup>
[[nodiscard]] bool merge_symbols(EncodeState& state, const Lookup& lookup) {
    if (state.symbols.size() > merge_detail::kShortWord) {
        return merge_detail::merge_long(state, lookup);
    }
    merge_detail::merge_short(state.symbols, lookup);
    return true;
}

}  // namespace pagoda::text
