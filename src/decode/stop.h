#pragma once
// When an output ends: by token (StopRules, in the step) and by text (StopStrings, where text is
// made). Each object belongs to one sequence and one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace pagoda::decode {

// End tokens of the model and of the request, and the length.
struct StopRules {
    std::vector<base::TokenId> end_tokens;   // sorted; the model's, empty with ignore_eos
    std::vector<base::TokenId> stop_tokens;  // sorted; the request's
    std::int64_t max_tokens = 0;

    enum class Verdict : std::uint8_t { kGoOn, kStop, kLength };
    // After `token` became output number `num_output` (from 1).
    [[nodiscard]] Verdict check(base::TokenId token, std::int64_t num_output) const;
};

inline constexpr std::size_t kMaxStopStrings = 64;
inline constexpr std::size_t kMaxStopBytes = 4096;  // of one string

// What a request may send as `stop`: errors name the limit.
[[nodiscard]] base::Status validate_stop_strings(const std::vector<std::string>& strings);

// Looks for the stop strings in a growing text and holds back only what may still become one. How
// the text is cut into pieces changes nothing: the match that ends first wins, of several that end
// together the longest, so that no byte of a stop string is sent. Linear in the text. What is sent
// ends on a character boundary.
class StopStrings {
  public:
    // REQUIRES: validate_stop_strings(strings)
    StopStrings(std::vector<std::string> strings, bool include_in_output);
    ~StopStrings();
    StopStrings(StopStrings&&) noexcept;
    StopStrings& operator=(StopStrings&&) noexcept;

    struct Step {
        std::string text;                  // may be sent now
        std::optional<std::string> match;  // the stop string that ended the output
    };
    // REQUIRES: no match so far.
    [[nodiscard]] Step append(std::string_view text);
    // As append, but no stop string may end in this text (min_tokens is not reached): one that does
    // is text like any other. One that begins in it and ends in text appended later counts.
    [[nodiscard]] std::string append_unchecked(std::string_view text);
    // The output ended otherwise: what was held back.
    [[nodiscard]] std::string finish();

  private:
    struct Automaton;
    [[nodiscard]] Step stop_at(std::size_t end, std::size_t index);
    [[nodiscard]] std::string take_free_text();

    std::vector<std::string> strings_;
    bool include_in_output_;
    std::unique_ptr<const Automaton> automaton_;  // none without strings
    std::size_t state_ = 0;                       // the automaton's, after all text so far
    std::string held_;                            // text that was not sent yet
};

}  // namespace pagoda::decode
