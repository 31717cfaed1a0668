#pragma once
// How many connections the process's file descriptors allow.

#include <cstddef>

namespace pagoda::http {

// Raises the soft limit of descriptors to the hard one; then what is left of it beside those that
// are open now and a reserve for what the process opens later, `wanted` at most and 1 at least.
// For the thread that starts the server.
[[nodiscard]] std::size_t connections_allowed(std::size_t wanted);

}  // namespace pagoda::http
