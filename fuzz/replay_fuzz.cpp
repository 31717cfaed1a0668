// Any bytes as a step log: replayed, refused or found to differ, with every invariant of the
// scheduler kept after each event.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "sched/replay.h"
#include "sched/step_log.h"

namespace {

namespace sched = pagoda::sched;

std::optional<std::string_view> take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto header = take_line(text);
    if (!header) return 0;
    const auto config = sched::parse_header_line(*header);
    if (!config) return 0;
    // Pools of millions of blocks are allowed, and slow to make so often.
    for (const sched::KvGroupSpec& group : config->groups) {
        if (group.num_blocks > 1000) return 0;
    }
    sched::Replay replay(*config, pagoda::base::system_clock());
    while (const auto line = take_line(text)) {
        const auto event = sched::parse_event_line(*line, *config);
        if (!event) return 0;
        const auto outcome = replay.apply(*event);
        if (!outcome || *outcome) return 0;
        replay.check_invariants();
    }
    return 0;
}
