#pragma once
// StepLogFile: where the lines of a step log go (sched/step_log.h). The engine thread adds them to
// a buffer and a thread of its own writes them, so that no step waits for a disk. Whatever goes
// wrong ends the log, with one warning that names file and reason, and nothing else: a write that
// fails, a disk that is too slow for the buffer, a file that reached its largest size. What was
// added before is written whole where it can be. Both buffers are there from the beginning, so that
// a memory plan that is made later counts them. add() is the engine thread's; the rest is
// anybody's.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "base/result.h"

namespace pagoda::engine {

class StepLogFile {
  public:
    struct Limits {
        std::size_t waiting_bytes = std::size_t{8} << 20;  // twice: added, and being written
        std::uint64_t file_bytes = std::uint64_t{4} << 30;
    };
    // A file that is there is replaced. Only its owner may read a new one: it holds prompts. Errors
    // are kIo and name the file. The logger outlives it.
    [[nodiscard]] static base::Result<std::unique_ptr<StepLogFile>> create(const std::string& path,
                                                                           base::Logger& logger,
                                                                           const Limits& limits);
    [[nodiscard]] static base::Result<std::unique_ptr<StepLogFile>> create(const std::string& path,
                                                                           base::Logger& logger) {
        return create(path, logger, Limits{});
    }
    // Writes what waits.
    ~StepLogFile();
    StepLogFile(const StepLogFile&) = delete;
    StepLogFile& operator=(const StepLogFile&) = delete;

    // False once it has ended: lines need not be made any more.
    [[nodiscard]] bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
    // A whole line. Never waits for the disk.
    void add(std::string_view line);

  private:
    StepLogFile(std::string path, int file, base::Logger& logger, const Limits& limits);
    void run();
    void write(std::string_view bytes);
    void end(std::string_view reason);

    const std::string path_;
    const int file_;
    base::Logger& logger_;
    const Limits limits_;
    std::atomic<bool> is_on_{true};
    std::uint64_t num_bytes_ = 0;  // added; engine thread

    std::mutex mutex_;
    std::condition_variable changed_;
    std::string waiting_;     // guarded by mutex_
    bool is_closed_ = false;  // guarded by mutex_

    std::string writing_;  // the writing thread's
    std::thread thread_;   // last: it uses everything above
};

}  // namespace pagoda::engine
