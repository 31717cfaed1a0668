#pragma once
// The line that a finished request leaves in the log. It says who asked for what and how it ended,
// and never what was in it: no query, no body, no key.

#include <chrono>
#include <cstdint>
#include <string>

#include "base/log.h"

namespace pagoda::http {

// The reader left before its answer was out (a status of logs alone, nginx's).
inline constexpr int kReaderLeft = 499;

struct RequestRecord {
    std::string method;
    std::string path;    // decoded
    std::string id;      // that of the answer's x-request-id
    std::string client;  // the principal's name; empty: nobody was let in
    bool is_quiet = false;
    std::chrono::steady_clock::time_point began{std::chrono::steady_clock::now()};
    int status = 0;           // of the answer's head; 0: none went out
    std::uint64_t bytes = 0;  // written to the reader, heads included
};

// "request method=GET path=/v1/models status=200 ms=3 bytes=512 id=req-1 client=key-01", or these
// as members of a JSON line; at info level, quiet requests at debug level.
void log_request(base::Logger& logger, const RequestRecord& record);

}  // namespace pagoda::http
