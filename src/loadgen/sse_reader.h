#pragma once
// SseReader: the data of the events of a stream, however its bytes are cut (WHATWG HTML, 9.2.6; of
// its fields only `data`). One thread.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace pagoda::loadgen {

class SseReader final {
  public:
    // Calls on_data for every event that these bytes end. False when an event is longer than
    // kMostEventBytes; the reader is of no use then.
    [[nodiscard]] bool feed(std::string_view bytes,
                            const std::function<void(std::string_view data)>& on_data);

    static constexpr std::size_t kMostEventBytes = std::size_t{16} << 20U;

  private:
    void end_line(const std::function<void(std::string_view)>& on_data);

    std::string line_;
    std::string data_;
    bool has_data_ = false;
    bool ended_with_cr_ = false;  // a line feed behind it belongs to the same line's end
};

}  // namespace pagoda::loadgen
