// Any bytes as a server's stream, whole and in pieces of every size: the same events. Any text as a
// trace: requests in the order of their times, or one line that says what is wrong.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "loadgen/sse_reader.h"
#include "loadgen/workload.h"

namespace {

using namespace pagoda;

std::vector<std::string> events_of(std::string_view bytes, std::size_t piece) {
    loadgen::SseReader reader;
    std::vector<std::string> events;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        const bool is_good = reader.feed(bytes.substr(at, piece),
                                         [&](std::string_view data) { events.emplace_back(data); });
        CHECK(is_good, "a short stream is too long");
    }
    return events;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto whole = events_of(text, size + 1);
    for (const std::size_t piece : {1, 2, 3, 7})
        CHECK(events_of(text, piece) == whole, "other events");
    const auto trace = loadgen::read_trace(text);
    if (!trace) {
        CHECK(
            !trace.error().message.empty() && trace.error().message.find('\n') == std::string::npos,
            "an error that is not one line of text");
    }
    return 0;
}
