#include "engine/admission.h"

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/check.h"

namespace pagoda::engine {

using base::Error;
using base::ErrorCode;

Admission::Admission(std::int64_t max_waiting, std::int64_t max_waiting_bytes)
    : max_waiting_{max_waiting, max_waiting_bytes} {}

base::Status Admission::enter(const Load& load) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return Error{ErrorCode::kUnavailable, "the server is shutting down"};
    if (waiting_.num_sequences + load.num_sequences > max_waiting_.num_sequences)
        return Error{ErrorCode::kUnavailable,
                     fmt::format("the queue is full: {} sequences wait, max_queue is {}; try again "
                                 "later",
                                 waiting_.num_sequences, max_waiting_.num_sequences)};
    if (waiting_.num_sequences > 0 && waiting_.bytes + load.bytes > max_waiting_.bytes)
        return Error{
            ErrorCode::kUnavailable,
            fmt::format("the queue is full: the {} sequences that wait hold {} of prompts, this "
                        "request has {}, the limit is {}; try again later",
                        waiting_.num_sequences,
                        base::format_byte_size(static_cast<std::uint64_t>(waiting_.bytes)),
                        base::format_byte_size(static_cast<std::uint64_t>(load.bytes)),
                        base::format_byte_size(static_cast<std::uint64_t>(max_waiting_.bytes)))};
    waiting_.num_sequences += load.num_sequences;
    waiting_.bytes += load.bytes;
    num_active_ += load.num_sequences;
    return {};
}

void Admission::leave_queue(const Load& load) {
    const std::lock_guard lock(mutex_);
    waiting_.num_sequences -= load.num_sequences;
    waiting_.bytes -= load.bytes;
    CHECK(waiting_.num_sequences >= 0 && waiting_.bytes >= 0, "more left the queue than entered");
}

bool Admission::leave(std::int64_t num_sequences) {
    bool is_idle = false;
    {
        const std::lock_guard lock(mutex_);
        num_active_ -= num_sequences;
        CHECK(num_active_ >= waiting_.num_sequences, "a sequence left while it waited");
        is_idle = num_active_ == 0;
    }
    if (is_idle) idle_.notify_all();
    return is_idle;
}

void Admission::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
}

std::int64_t Admission::num_active() const {
    const std::lock_guard lock(mutex_);
    return num_active_;
}

bool Admission::wait_idle(std::chrono::milliseconds at_most) const {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, at_most, [this] { return num_active_ == 0; });
}

}  // namespace pagoda::engine
