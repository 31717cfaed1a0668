#include "engine/step_log_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "base/thread.h"

namespace pagoda::engine {

namespace {

std::string what_the_system_said() {
    return std::generic_category().message(errno);
}

// Touched, and not only reserved: it is resident from now on.
std::string make_buffer(std::size_t bytes) {
    std::string buffer(bytes, '\0');
    buffer.clear();
    return buffer;
}

}  // namespace

base::Result<std::unique_ptr<StepLogFile>> StepLogFile::create(const std::string& path,
                                                               base::Logger& logger,
                                                               const Limits& limits) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return base::Error{
            base::ErrorCode::kIo,
            fmt::format("step_log {} can't be written: {}", path, what_the_system_said()),
            "step_log"};
    std::unique_ptr<StepLogFile> log(new StepLogFile(path, file, logger, limits));
    auto thread = base::start_thread("pagoda-step-log", [started = log.get()] { started->run(); });
    if (!thread) return std::move(thread).error();
    log->thread_ = std::move(thread).value();
    return log;
}

StepLogFile::StepLogFile(std::string path, int file, base::Logger& logger, const Limits& limits)
    : path_(std::move(path)),
      file_(file),
      logger_(logger),
      limits_(limits),
      waiting_(make_buffer(limits.waiting_bytes)),
      writing_(make_buffer(limits.waiting_bytes)) {}

StepLogFile::~StepLogFile() {
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
    ::close(file_);
}

void StepLogFile::add(std::string_view line) {
    if (!is_on()) return;
    num_bytes_ += line.size();
    if (num_bytes_ > limits_.file_bytes)
        return end(fmt::format("it has reached its largest size of {} bytes", limits_.file_bytes));
    bool is_full = false;
    {
        const std::lock_guard lock(mutex_);
        is_full = line.size() > limits_.waiting_bytes - waiting_.size();
        if (!is_full) waiting_ += line;
    }
    if (is_full)
        return end(fmt::format("{} bytes more than the disk has taken, the buffer has {}",
                               line.size(), limits_.waiting_bytes));
    changed_.notify_one();
}

void StepLogFile::end(std::string_view reason) {
    if (is_on_.exchange(false))
        logger_.warning(
            fmt::format("step_log {} ends here: {}; the server goes on without it", path_, reason));
}

void StepLogFile::run() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            std::swap(waiting_, writing_);
        }
        write(writing_);
        writing_.clear();
    }
}

void StepLogFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return end(what_the_system_said());
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace pagoda::engine
