#include "base/clock.h"

namespace pagoda::base {
namespace {

class SystemClock final : public Clock {
  public:
    [[nodiscard]] TimePoint now() const override {
        return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
    }
    [[nodiscard]] std::int64_t unix_seconds() const override {
        const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
        return std::chrono::floor<std::chrono::seconds>(since_epoch).count();
    }
};

}  // namespace

const Clock& system_clock() {
    static const SystemClock clock;
    return clock;
}

}  // namespace pagoda::base
