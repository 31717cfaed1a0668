#include "base/thread.h"

#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <pthread.h>

namespace pagoda::base {

Result<std::thread> start_thread(std::string_view name, std::function<void()> body) {
    constexpr std::size_t kMaxName = 15;  // the system's, without the final zero
    const std::string shown(name.substr(0, kMaxName));
    try {
        std::thread thread(std::move(body));
        pthread_setname_np(thread.native_handle(), shown.c_str());
        return thread;
    } catch (const std::system_error& error) {
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("thread {} cannot be started: {}; the limits are those of "
                                 "processes (ulimit -u, the container's pids limit) and of address "
                                 "space (ulimit -v)",
                                 name, error.code().message())};
    }
}

}  // namespace pagoda::base
