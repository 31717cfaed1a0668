// Any order of events in a prefix index over any small groups: what it gives is what was asked for.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kv/index/prefix_world_for_test.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::span<const std::uint8_t> bytes(data, size);
    // From one byte; low when there are no more.
    const auto choose = [&](std::int64_t low, std::int64_t high) {
        if (bytes.empty()) return low;
        const std::int64_t byte = bytes.front();
        bytes = bytes.subspan(1);
        return low + byte % (high - low + 1);
    };
    std::vector<pagoda::kv::PrefixWorld::Group> groups;
    for (std::int64_t left = choose(1, 3); left > 0; --left)
        groups.push_back({.num_blocks = choose(1, 20), .window = choose(0, 1) * choose(1, 100)});
    pagoda::kv::PrefixWorld world(groups, choose);
    while (!bytes.empty()) world.step();
    world.finish();
    return 0;
}
