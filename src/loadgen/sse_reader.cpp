#include "loadgen/sse_reader.h"

namespace pagoda::loadgen {

bool SseReader::feed(std::string_view bytes,
                     const std::function<void(std::string_view data)>& on_data) {
    while (!bytes.empty()) {
        if (ended_with_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
        ended_with_cr_ = false;
        const std::size_t end = bytes.find_first_of("\r\n");
        const std::string_view part = bytes.substr(0, end);
        if (line_.size() + data_.size() + part.size() > kMostEventBytes) return false;
        line_ += part;
        if (end == std::string_view::npos) return true;
        ended_with_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        end_line(on_data);
    }
    return true;
}

void SseReader::end_line(const std::function<void(std::string_view)>& on_data) {
    constexpr std::string_view kField = "data:";
    if (line_.empty()) {
        if (has_data_) on_data(data_);
        data_.clear();
        has_data_ = false;
    } else if (line_.starts_with(kField)) {
        std::string_view value = std::string_view(line_).substr(kField.size());
        if (value.starts_with(' ')) value.remove_prefix(1);
        if (has_data_) data_ += '\n';
        data_ += value;
        has_data_ = true;
    }
    line_.clear();
}

}  // namespace pagoda::loadgen
