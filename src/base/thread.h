#pragma once
// Starting a thread when the system may refuse one: limits on processes and address space make
// std::thread throw, which is caught here.

#include <functional>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace pagoda::base {

// A thread that runs `body`, which must not throw. name: what tools show of it, its first 15
// bytes. The error says what to look at.
[[nodiscard]] Result<std::thread> start_thread(std::string_view name, std::function<void()> body);

}  // namespace pagoda::base
