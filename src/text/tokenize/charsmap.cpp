#include "text/tokenize/charsmap.h"

#include <fmt/core.h>

namespace pagoda::text {
namespace {

// A unit: bits 0-7 label, bit 8 "a key ends here", bit 9 scales the offset, bits 10-30 offset;
// bit 31 marks the unit of a value, whose other bits are the value.
constexpr std::uint32_t kIsValue = 1U << 31;

std::uint32_t offset_of(std::uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200U) >> 6);
}
std::uint32_t label_of(std::uint32_t unit) {
    return unit & (kIsValue | 0xFFU);
}
bool ends_key(std::uint32_t unit) {
    return (unit & 0x100U) != 0;
}

std::uint32_t read_u32(const char* data) {
    const auto byte = [data](int i) {
        return std::uint32_t{static_cast<unsigned char>(data[i])} << (8 * i);
    };
    return byte(0) | byte(1) | byte(2) | byte(3);
}

base::Error unusable(std::string why) {
    return base::invalid("the precompiled charsmap is not usable: " + std::move(why),
                         "tokenizer.ggml.precompiled_charsmap");
}

}  // namespace

base::Result<CharsMap> CharsMap::parse(std::string_view blob) {
    CharsMap map;
    if (blob.empty()) return map;
    if (blob.size() < 8) return unusable(fmt::format("it has {} bytes", blob.size()));
    const std::size_t array_bytes = read_u32(blob.data());
    if (array_bytes == 0 || array_bytes % 4 != 0 || array_bytes > blob.size() - 4) {
        return unusable(fmt::format("an array of {} bytes in {}", array_bytes, blob.size()));
    }
    map.units_.reserve(array_bytes / 4);
    for (std::size_t at = 0; at < array_bytes; at += 4) {
        map.units_.push_back(read_u32(blob.data() + 4 + at));
    }
    map.replacements_ = blob.substr(4 + array_bytes);
    if (map.replacements_.empty() || map.replacements_.back() != '\0') {
        return unusable("its last replacement has no end");
    }
    if (base::Status status = map.check(); !status.ok()) return status.error();
    return map;
}

base::Status CharsMap::check_children(std::size_t unit, std::vector<std::size_t>& found) const {
    const std::size_t base = unit ^ offset_of(units_[unit]);
    if (ends_key(units_[unit])) {
        const bool is_good = base < units_.size() && (units_[base] & kIsValue) != 0 &&
                             (units_[base] & ~kIsValue) < replacements_.size();
        if (!is_good) return unusable(fmt::format("unit {} has no replacement", unit));
    }
    for (std::size_t label = 1; label < 256; ++label) {
        const std::size_t child = base ^ label;
        if (child < units_.size() && label_of(units_[child]) == label) found.push_back(child);
    }
    return {};
}

// Walks everything reachable from the root, depth first; a way back to a unit on the current path
// would let a match run for ever.
base::Status CharsMap::check() const {
    enum class State : std::uint8_t { kNew, kOpen, kDone };
    std::vector<State> states(units_.size(), State::kNew);
    std::vector<std::size_t> stack = {0};
    while (!stack.empty()) {
        const std::size_t unit = stack.back();
        if (states[unit] != State::kNew) {
            states[unit] = State::kDone;
            stack.pop_back();
            continue;
        }
        states[unit] = State::kOpen;
        std::vector<std::size_t> children;
        if (base::Status status = check_children(unit, children); !status.ok()) return status;
        for (const std::size_t child : children) {
            if (states[child] == State::kOpen) {
                return unusable(fmt::format("unit {} leads back to unit {}", unit, child));
            }
            if (states[child] == State::kNew) stack.push_back(child);
        }
    }
    return {};
}

CharsMap::Match CharsMap::longest_prefix(std::string_view text) const {
    Match best;
    if (units_.empty()) return best;
    std::size_t base = offset_of(units_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto label = static_cast<unsigned char>(text[i]);
        const std::size_t unit = base ^ label;
        if (label == 0 || unit >= units_.size() || label_of(units_[unit]) != label) break;
        base = unit ^ offset_of(units_[unit]);
        if (ends_key(units_[unit])) {
            best.bytes = i + 1;
            best.replacement = replacements_.c_str() + (units_[base] & ~kIsValue);
        }
    }
    return best;
}

}  // namespace pagoda::text
