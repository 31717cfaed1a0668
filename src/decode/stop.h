#pragma once
// When an output ends: by token (StopRules, in the step) and by text (StopStrings, where text is
// made). Each object belongs to one sequence and one thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace pagoda::decode {

// End tokens of the model and of the request, and the length.
struct StopRules {
    std::vector<base::TokenId> end_tokens;  // sorted; the model's, empty with ignore_eos
    std::vector<base::TokenId> stop_tokens;  // sorted; the request's
    std::int64_t max_tokens = 0;

    enum class Verdict : std::uint8_t { kGoOn, kStop, kLength };
    // After `token` became output number `num_output` (from 1).
    [[nodiscard]] Verdict check(base::TokenId token, std::int64_t num_output) const;
};

// Looks for the stop strings in a growing text and holds back only what may still become one.
class StopStrings {
  public:
    StopStrings(std::vector<std::string> strings, bool include_in_output);

    struct Step {
        std::string text;                  // may be sent now
        std::optional<std::string> match;  // the stop string that ended the output
    };
    // REQUIRES: no match so far.
    [[nodiscard]] Step append(std::string_view text);
    // The output ended otherwise: what was held back.
    [[nodiscard]] std::string finish();

  private:
    std::vector<std::string> strings_;
    bool include_in_output_;
    std::string held_;
};

}  // namespace pagoda::decode
