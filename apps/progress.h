#pragma once
// Progress of long work on standard error: a bar that redraws itself on a terminal, a plain line
// at every quarter elsewhere. The line ends with all of it done, or with the object. Says nothing
// of what is done within half a second. One thread.

#include <chrono>
#include <cstdint>
#include <string>

namespace pagoda::apps {

class Progress {
  public:
    explicit Progress(std::string label);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void update(std::uint64_t done, std::uint64_t total);

  private:
    void draw(std::uint64_t percent);

    const std::string label_;
    const bool is_terminal_;
    const std::chrono::steady_clock::time_point began_at_;
    std::chrono::steady_clock::time_point drawn_at_{};
    std::uint64_t percent_ = 0;
    bool has_drawn_ = false;
    bool is_line_open_ = false;
};

}  // namespace pagoda::apps
