#pragma once
// What a client noticed of one request. A value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace pagoda::loadgen {

struct Sample {
    base::TimePoint arrived_at;  // when its client would have sent it
    base::TimePoint sent_at;
    std::optional<base::TimePoint> first_token_at;  // the first piece with text
    base::TimePoint ended_at;
    std::vector<base::Duration> gaps;  // between pieces with text
    // As the server's usage has them; without one the outputs are the pieces.
    std::int64_t num_prompt_tokens = 0;
    std::int64_t num_cached_tokens = 0;
    std::int64_t num_output_tokens = 0;
    std::int64_t status = 0;  // of HTTP; 0: there was no answer
    std::string text;
    std::string error;  // empty: a whole answer

    [[nodiscard]] bool ok() const { return error.empty(); }
    // REQUIRES: first_token_at
    [[nodiscard]] base::Duration time_to_first_token() const {
        return *first_token_at - arrived_at;
    }
    // Of the tokens behind the first; nothing where there is none.
    [[nodiscard]] std::optional<base::Duration> time_per_output_token() const {
        if (!first_token_at || num_output_tokens < 2 || gaps.empty()) return std::nullopt;
        base::Duration sum{};
        for (const base::Duration gap : gaps) sum += gap;
        return sum / (num_output_tokens - 1);
    }
};

}  // namespace pagoda::loadgen
