#pragma once
// Load on a server: when requests arrive, when they are sent, and what became of each. One thread
// does all of it, through libcurl's multi interface; curl_global_init is the caller's
// (CurlSession).

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "loadgen/sample.h"
#include "loadgen/transfer.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {

// How requests arrive. A workload with times of its own arrives at them, whatever stands here.
struct Arrivals {
    std::int64_t num_requests = 100;
    base::Duration time_limit{};   // nothing arrives behind it; 0: none
    std::int64_t num_clients = 0;  // a closed loop: each asks again when its answer has ended
    double rate = 0;               // an open loop: Poisson arrivals in a second
    // Not 0: what has arrived waits until nothing is being answered, and then at most so many are
    // sent at once, as a server without continuous batching would start them.
    std::int64_t static_batch = 0;
    double speed = 1;  // of a workload's own times
    std::uint64_t seed = 0;
};

struct LoadProgress {
    base::Duration elapsed{};
    std::int64_t num_waiting = 0;  // for their static batch
    std::int64_t num_sent = 0;     // and not ended
    std::int64_t num_ended = 0;
    std::int64_t num_failed = 0;  // of those
    std::int64_t num_pieces = 0;  // of text, all in all
};
// Some ten times a second; false ends the load, and what was being answered is left out.
using OnProgress = std::function<bool(const LoadProgress& progress)>;

struct LoadResult {
    std::vector<Sample> samples;  // in the order of their ends
    base::Duration took{};        // from the first arrival to the last end
    std::int64_t num_left_out = 0;
};

// libcurl's process-wide state; one at a time, before any thread uses libcurl.
class CurlSession final {
  public:
    CurlSession();
    ~CurlSession();
    CurlSession(const CurlSession&) = delete;
    CurlSession& operator=(const CurlSession&) = delete;
};

[[nodiscard]] LoadResult run_load(const Target& target, const Arrivals& arrivals,
                                  Workload& workload, const base::Clock& clock,
                                  const OnProgress& on_progress);

// The first model that the server lists. Errors name the address.
[[nodiscard]] base::Result<std::string> first_model(const Target& target);

}  // namespace pagoda::loadgen
