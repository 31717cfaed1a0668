#include "loadgen/sse_reader.h"

#include <vector>

#include <gtest/gtest.h>

namespace pagoda::loadgen {
namespace {

std::vector<std::string> events_of(std::string_view text, std::size_t piece) {
    SseReader reader;
    std::vector<std::string> events;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        EXPECT_TRUE(reader.feed(text.substr(at, piece),
                                [&](std::string_view data) { events.emplace_back(data); }));
    }
    return events;
}

TEST(SseReader, GivesTheSameEventsHoweverTheBytesAreCut) {
    const std::string text =
        ": hello\n\ndata: one\n\nevent: x\r\ndata:two\r\ndata: 2\r\n\r\nid: 7\n\ndata:\n\ndata: "
        "cut off";
    const std::vector<std::string> expected = {"one", "two\n2", ""};
    for (std::size_t piece = 1; piece <= text.size(); ++piece)
        EXPECT_EQ(events_of(text, piece), expected) << piece;
}

TEST(SseReader, RefusesAnEventWithoutEnd) {
    SseReader reader;
    const std::string piece(1U << 20U, 'x');
    bool is_good = reader.feed("data: ", [](std::string_view) {});
    std::size_t num_fed = 0;
    while (is_good && num_fed <= SseReader::kMostEventBytes) {
        is_good = reader.feed(piece, [](std::string_view) {});
        num_fed += piece.size();
    }
    EXPECT_FALSE(is_good);
}

}  // namespace
}  // namespace pagoda::loadgen
