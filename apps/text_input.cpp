#include "text_input.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pagoda::apps {
namespace {

base::Error unreadable(const std::string& name) {
    return {base::ErrorCode::kIo,
            fmt::format("{}: cannot be read: {}", name, std::generic_category().message(errno))};
}

base::Result<std::string> read_all(int descriptor, const std::string& name) {
    std::string text;
    std::array<char, 1U << 16> chunk{};
    while (true) {
        const ssize_t got = read(descriptor, chunk.data(), chunk.size());
        if (got == 0) return text;
        if (got > 0) {
            text.append(chunk.data(), static_cast<std::size_t>(got));
        } else if (errno != EINTR) {
            return unreadable(name);
        }
    }
}

}  // namespace

base::Result<std::string> read_text_file(const std::string& path) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return unreadable(path);
    auto text = read_all(descriptor, path);
    close(descriptor);
    return text;
}

base::Result<std::string> read_standard_input() {
    return read_all(STDIN_FILENO, "standard input");
}

base::Result<std::string> read_piped_text() {
    struct stat input = {};
    if (fstat(STDIN_FILENO, &input) != 0) return std::string();
    if (!S_ISFIFO(input.st_mode) && !S_ISREG(input.st_mode)) return std::string();
    return read_standard_input();
}

}  // namespace pagoda::apps
