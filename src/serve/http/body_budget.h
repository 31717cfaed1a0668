#pragma once
// BodyBudget: what the bodies of all requests together may hold in memory, from the first byte
// read until their handlers return. Bodies are charged for what has come, not for what was
// announced, so that a slow sender keeps nothing from the others; and the first bytes of each come
// from a part of their own, so that small ones pass where large ones have taken all there is.
// Thread-safe; a share belongs to one thread at a time and is outlived by its budget.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace pagoda::http {

// A body of up to so many bytes is small: many at once take little, and its handler is soon done.
inline constexpr std::uint64_t kSmallBodyBytes = 64U << 10;

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
            const std::uint64_t first = first_of(bytes) - first_of(bytes_);
            if (!budget_->first_.take(first)) return false;
            if (!budget_->rest_.take(bytes - bytes_ - first)) {
                budget_->first_.give_back(first);
                return false;
            }
            bytes_ = bytes;
            return true;
        }

      private:
        void release() {
            if (bytes_ == 0) return;
            budget_->first_.give_back(first_of(bytes_));
            budget_->rest_.give_back(bytes_ - first_of(bytes_));
            bytes_ = 0;
        }

        BodyBudget* budget_ = nullptr;  // outlives the share
        std::uint64_t bytes_ = 0;
    };

    // Bytes: of all first parts together, and of all that comes behind them.
    BodyBudget(std::uint64_t max_first, std::uint64_t max_rest)
        : first_(max_first), rest_(max_rest) {}
    [[nodiscard]] bool has_room(std::uint64_t bytes) const {
        return first_.has_room(first_of(bytes)) && rest_.has_room(bytes - first_of(bytes));
    }
    [[nodiscard]] std::uint64_t max_bytes() const { return first_.max_bytes + rest_.max_bytes; }

  private:
    struct Part {
        explicit Part(std::uint64_t most) : max_bytes(most) {}
        [[nodiscard]] bool has_room(std::uint64_t bytes) const {
            const std::uint64_t now = used.load();
            return now <= max_bytes && bytes <= max_bytes - now;
        }
        [[nodiscard]] bool take(std::uint64_t bytes) {
            if (used.fetch_add(bytes) + bytes <= max_bytes) return true;
            used.fetch_sub(bytes);
            return false;
        }
        void give_back(std::uint64_t bytes) { used.fetch_sub(bytes); }

        const std::uint64_t max_bytes;
        std::atomic<std::uint64_t> used{0};
    };
    [[nodiscard]] static std::uint64_t first_of(std::uint64_t bytes) {
        return std::min(bytes, kSmallBodyBytes);
    }

    Part first_;
    Part rest_;
};

}  // namespace pagoda::http
