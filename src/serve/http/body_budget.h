#pragma once
// BodyBudget: what the bodies of all requests together may hold in memory, from the first byte
// read until their handlers return. Bodies are charged for what has come, not for what was
// announced, so that a slow sender keeps nothing from the others. Thread-safe; a share belongs to
// one thread at a time and is outlived by its budget.

#include <atomic>
#include <cstdint>
#include <utility>

namespace pagoda::http {

class BodyBudget {
  public:
    class Share {
      public:
        Share() = default;
        explicit Share(BodyBudget& budget) : budget_(&budget) {}
        Share(Share&& other) noexcept
            : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
        Share& operator=(Share&& other) noexcept {
            release();
            budget_ = other.budget_;
            bytes_ = std::exchange(other.bytes_, 0);
            return *this;
        }
        ~Share() { release(); }

        // False, and nothing changes, when that much is not left.
        [[nodiscard]] bool grow_to(std::uint64_t bytes) {
            if (bytes <= bytes_) return true;
            const std::uint64_t more = bytes - bytes_;
            if (budget_->used_.fetch_add(more) + more > budget_->max_bytes_) {
                budget_->used_.fetch_sub(more);
                return false;
            }
            bytes_ = bytes;
            return true;
        }

      private:
        void release() {
            if (bytes_ > 0) budget_->used_.fetch_sub(std::exchange(bytes_, 0));
        }

        BodyBudget* budget_ = nullptr;  // outlives the share
        std::uint64_t bytes_ = 0;
    };

    explicit BodyBudget(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}
    [[nodiscard]] bool has_room(std::uint64_t bytes) const {
        const std::uint64_t used = used_.load();
        return used <= max_bytes_ && bytes <= max_bytes_ - used;
    }
    [[nodiscard]] std::uint64_t max_bytes() const { return max_bytes_; }

  private:
    const std::uint64_t max_bytes_;
    std::atomic<std::uint64_t> used_{0};
};

}  // namespace pagoda::http
