#pragma once
// When an output ends: by token (StopRules, in the step) and by text (StopStrings, where text is
// made). Each object belongs to one sequence and one thread, but for StopAutomaton.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
inline constexpr std::size_t kMaxStopBytes = 4096;                       // of one string
inline constexpr std::size_t kMaxAllStopBytes = 16 * std::size_t{1024};  // of all of a request

// What a request may send as `stop`: errors name the limit.
[[nodiscard]] base::Status validate_stop_strings(const std::vector<std::string>& strings);

// The stop strings of a request as a trie with failure links (Aho and Corasick, 1975): the state
// after some text is the longest end of that text which begins a stop string. Immutable, any
// thread. Nodes lie breadth first, so that the children of a node are neighbours, in the order of
// their bytes:
//
//   "ab", "ac", "b":   0 ""   1 "a"  2 "b"   3 "ab"  4 "ac"
//   first_child          1      3      5       5       5    (a node's children end where the
//                                                            next one's begin)
class StopAutomaton final {
  public:
    // A place in the trie; the default is the root, the state before any text.
    using State = std::uint16_t;
    static constexpr State kRoot = 0;

    // REQUIRES: validate_stop_strings(strings)
    explicit StopAutomaton(std::vector<std::string> strings);

    [[nodiscard]] State next(State state, char byte) const;
    // The longest stop string that ends here, or null.
    [[nodiscard]] const std::string* match(State state) const;
    // Bytes of the longest end of the text that a stop string goes on.
    [[nodiscard]] std::size_t num_open(State state) const { return nodes_[state].open; }
    // Memory of it all.
    [[nodiscard]] std::size_t bytes() const;

  private:
    struct Node {
        State first_child = 0;
        State fallback = kRoot;  // the longest proper end of this node that is in the trie
        std::uint16_t open = 0;  // see num_open()
        std::uint8_t match = 0;  // number of the string that ends here, counted from 1
        char label = 0;          // the byte that leads here
    };
    [[nodiscard]] std::optional<State> child(State state, char byte) const;
    void build();
    void link(State parent, State node);

    std::vector<std::string> strings_;  // sorted
    std::vector<Node> nodes_;           // and one more, whose first_child ends the last node's
};

// Looks for the stop strings in a growing text and holds back only what may still become one. How
// the text is cut into pieces changes nothing: the match that ends first wins, of several that end
// together the longest, so that no byte of a stop string is sent. Linear in the text. What is sent
// ends on a character boundary.
class StopStrings {
  public:
    // automaton: null without stop strings; shared by the sequences of a request.
    StopStrings(std::shared_ptr<const StopAutomaton> automaton, bool include_in_output)
        : automaton_(std::move(automaton)), include_in_output_(include_in_output) {}

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
    [[nodiscard]] Step stop_at(std::size_t end, const std::string& found);
    [[nodiscard]] std::string take_free_text();

    std::shared_ptr<const StopAutomaton> automaton_;  // owners: the sequences of the request
    bool include_in_output_;
    StopAutomaton::State state_ = StopAutomaton::kRoot;  // after all text so far
    std::string held_;                                   // text that was not sent yet
};

}  // namespace pagoda::decode
