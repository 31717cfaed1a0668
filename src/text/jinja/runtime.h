#pragma once
// Runtime: what native functions see of a render: its limits, and calls back into the template.
// Belongs to one render and its thread.

#include <string>
#include <string_view>

#include "text/jinja/heap.h"
#include "text/jinja/native.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Runtime {
  public:
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    [[nodiscard]] Meter& meter() { return meter_; }
    [[nodiscard]] Heap& heap() { return heap_; }
    void tick(std::int64_t steps = 1) { meter_.tick(steps); }

    // Calls a macro, function or method. Fails on anything that can't be called.
    [[nodiscard]] Value call(const Value& callee, const CallArguments& arguments);
    // What strftime_now formats: "YYYY-MM-DDTHH:MM:SS".
    [[nodiscard]] const std::string& date_now() const { return date_now_; }

    // Counts a level of nested evaluation for as long as it lives.
    class Level final {
      public:
        explicit Level(Runtime& runtime) : runtime_(runtime) {
            if (++runtime_.depth_ > runtime_.max_depth_) runtime_.fail_depth();
        }
        ~Level() { --runtime_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Runtime& runtime_;  // outlives this
    };

  protected:
    Runtime(Meter meter, std::size_t max_bytes, int max_depth, std::string date_now)
        : meter_(meter),
          heap_(max_bytes, meter_),
          max_depth_(max_depth),
          date_now_(std::move(date_now)) {}
    ~Runtime() = default;

  private:
    [[noreturn]] void fail_depth();

    Meter meter_;
    Heap heap_;
    int depth_ = 0;
    int max_depth_;
    std::string date_now_;
};

}  // namespace pagoda::text::jinja
