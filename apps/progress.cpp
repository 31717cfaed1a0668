#include "progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

namespace pagoda::apps {

Progress::Progress(std::string label)
    : label_(std::move(label)),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      began_at_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
    if (is_line_open_) fmt::print(stderr, "\n");
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
    constexpr std::chrono::milliseconds kRedraw{50};
    constexpr std::chrono::milliseconds kQuiet{500};
    constexpr std::uint64_t kQuarter = 25;
    const std::uint64_t percent = total == 0 ? 100 : std::min(done, total) * 100 / total;
    if (has_drawn_ && percent == percent_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - began_at_ < kQuiet) return;
    if (is_terminal_) {
        if (has_drawn_ && percent < 100 && now - drawn_at_ < kRedraw) return;
        draw(percent);
    } else {
        if (percent / kQuarter == percent_ / kQuarter) return;
        fmt::print(stderr, "{}: {}%\n", label_, percent);
    }
    percent_ = percent;
    drawn_at_ = now;
    has_drawn_ = true;
}

void Progress::draw(std::uint64_t percent) {
    constexpr std::uint64_t kWidth = 32;
    const std::uint64_t filled = percent * kWidth / 100;
    fmt::print(stderr, "\r{} [{}{}] {:3}%", label_, std::string(filled, '#'),
               std::string(kWidth - filled, ' '), percent);
    is_line_open_ = percent < 100;
    if (!is_line_open_) fmt::print(stderr, "\n");
    std::fflush(stderr);
}

}  // namespace pagoda::apps
