#pragma once
// Strong integer ids: two ids of different kinds neither mix nor convert.

#include <compare>
#include <cstdint>
#include <functional>

namespace pagoda::base {

template <class Tag, class Rep>
struct StrongId {
    using rep = Rep;
    Rep value{};

    StrongId() = default;
    constexpr explicit StrongId(Rep v) : value(v) {}
    friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

using RequestId = StrongId<struct RequestIdTag, std::uint64_t>;  // one API call
using SeqId = StrongId<struct SeqIdTag, std::uint64_t>;          // one continuation of it
using BlockId = StrongId<struct BlockIdTag, std::int32_t>;     // a run of 32 KV slots in one group
using ClientId = StrongId<struct ClientIdTag, std::uint64_t>;  // who asks, for fairness

// A vocabulary entry. Plain: it is data that kernels and tokenizers do arithmetic on.
using TokenId = std::int32_t;

}  // namespace pagoda::base

template <class Tag, class Rep>
struct std::hash<pagoda::base::StrongId<Tag, Rep>> {
    std::size_t operator()(const pagoda::base::StrongId<Tag, Rep>& id) const noexcept {
        return std::hash<Rep>{}(id.value);
    }
};
