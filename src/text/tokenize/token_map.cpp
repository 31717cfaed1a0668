#include "text/tokenize/token_map.h"

#include <bit>

namespace pagoda::text {
namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;

// Slots for a load of two thirds at most.
std::size_t table_size(std::size_t keys) {
    return std::bit_ceil(keys + keys / 2 + 8);
}

}  // namespace

std::uint64_t mix_bits(std::uint64_t value) {
    value ^= value >> 32;
    value *= 0xD6E8FEB86659FD93U;
    value ^= value >> 32;
    value *= 0xD6E8FEB86659FD93U;
    return value ^ value >> 32;
}

std::uint64_t hash_text(std::string_view text) {
    std::uint64_t hash = text.size() * kOdd;
    const char* data = text.data();
    std::size_t left = text.size();
    for (; left >= 8; left -= 8, data += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, 8);
        hash = mix_bits(hash ^ word);
    }
    if (left > 0) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, left);
        hash = mix_bits(hash ^ word);
    }
    return hash;
}

TokenMap::TokenMap(std::size_t max_keys) : slots_(table_size(max_keys)), mask_(slots_.size() - 1) {}

const TokenMap::Slot& TokenMap::probe(std::string_view key, std::uint64_t hash) const {
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
        const Slot& slot = slots_[at];
        if (slot.id == kNoToken) return slot;
        if (slot.tag == tag && slot.bytes == key.size() &&
            std::memcmp(slot.data, key.data(), key.size()) == 0) {
            return slot;
        }
    }
}

bool TokenMap::insert(std::string_view key, base::TokenId id) {
    const std::uint64_t hash = hash_text(key);
    const Slot& found = probe(key, hash);
    if (found.id != kNoToken) return false;
    if (key.size() > max_key_bytes_) max_key_bytes_ = key.size();
    slots_[static_cast<std::size_t>(&found - slots_.data())] = {
        key.data(), static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(hash >> 32),
        id};
    return true;
}

base::TokenId TokenMap::find(std::string_view key) const {
    if (key.empty() || key.size() > max_key_bytes_) return kNoToken;
    return probe(key, hash_text(key)).id;
}

PairMap::PairMap(std::size_t max_pairs) : slots_(table_size(max_pairs)), mask_(slots_.size() - 1) {}

std::size_t PairMap::probe(std::uint64_t key) const {
    std::size_t at = mix_bits(key) & mask_;
    while (slots_[at].merge.id != kNoToken && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
}

namespace {
std::uint64_t pair_key(base::TokenId left, base::TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
}
}  // namespace

void PairMap::insert(base::TokenId left, base::TokenId right, PairMerge merge) {
    Slot& slot = slots_[probe(pair_key(left, right))];
    if (slot.merge.id == kNoToken) slot = {pair_key(left, right), merge};
}

PairMerge PairMap::find(base::TokenId left, base::TokenId right) const {
    return slots_[probe(pair_key(left, right))].merge;
}

}  // namespace pagoda::text
