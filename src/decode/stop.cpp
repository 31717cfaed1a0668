#include "decode/stop.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "base/check.h"
#include "base/utf8.h"

namespace pagoda::decode {

StopRules::Verdict StopRules::check(base::TokenId token, std::int64_t num_output) const {
    if (std::binary_search(end_tokens.begin(), end_tokens.end(), token) ||
        std::binary_search(stop_tokens.begin(), stop_tokens.end(), token)) {
        return Verdict::kStop;
    }
    return num_output >= max_tokens ? Verdict::kLength : Verdict::kGoOn;
}

base::Status validate_stop_strings(const std::vector<std::string>& strings) {
    if (strings.size() > kMaxStopStrings) {
        return base::invalid(fmt::format("stop holds {} strings, at most {} are allowed",
                                         strings.size(), kMaxStopStrings),
                             "stop");
    }
    std::size_t total = 0;
    for (std::size_t i = 0; i < strings.size(); ++i) {
        if (strings[i].empty()) {
            return base::invalid(fmt::format("stop string {} is empty", i), "stop");
        }
        if (strings[i].size() > kMaxStopBytes) {
            return base::invalid(fmt::format("stop string {} has {} bytes, at most {} are allowed",
                                             i, strings[i].size(), kMaxStopBytes),
                                 "stop");
        }
        if (!base::is_valid_utf8(strings[i])) {
            return base::invalid(fmt::format("stop string {} is not valid UTF-8", i), "stop");
        }
        total += strings[i].size();
    }
    if (total > kMaxAllStopBytes) {
        return base::invalid(fmt::format("the stop strings have {} bytes together, at most {} are "
                                         "allowed",
                                         total, kMaxAllStopBytes),
                             "stop");
    }
    return {};
}

// Every node is at least one byte of the strings away from the root.
static_assert(kMaxAllStopBytes + 2 <= std::numeric_limits<StopAutomaton::State>::max());
static_assert(kMaxStopStrings < std::numeric_limits<std::uint8_t>::max());

StopAutomaton::StopAutomaton(std::vector<std::string> strings) : strings_(std::move(strings)) {
    const base::Status status = validate_stop_strings(strings_);
    CHECK(status.ok(), status.error().message);
    std::sort(strings_.begin(), strings_.end());
    build();
}

// Breadth first: a node is a range of the sorted strings with a beginning in common. Parents come
// before their children, and what a node falls back on before the node.
void StopAutomaton::build() {
    struct Range {
        std::size_t begin, end, depth;
    };
    std::vector<Range> ranges{{0, strings_.size(), 0}};
    nodes_.emplace_back();
    for (std::size_t visited = 0; visited < ranges.size(); ++visited) {
        const Range range = ranges[visited];
        nodes_[visited].first_child = static_cast<State>(nodes_.size());
        std::size_t begin = range.begin;
        // The strings that end here are in front.
        while (begin < range.end && strings_[begin].size() == range.depth) ++begin;
        if (begin > range.begin) nodes_[visited].match = static_cast<std::uint8_t>(begin);
        while (begin < range.end) {
            const char label = strings_[begin][range.depth];
            std::size_t end = begin + 1;
            while (end < range.end && strings_[end][range.depth] == label) ++end;
            nodes_.push_back({.open = static_cast<std::uint16_t>(range.depth + 1), .label = label});
            ranges.push_back({begin, end, range.depth + 1});
            begin = end;
        }
    }
    const auto num_nodes = static_cast<State>(nodes_.size());
    nodes_.push_back({.first_child = num_nodes});
    nodes_.shrink_to_fit();
    for (State parent = 0; parent < num_nodes; ++parent) {
        for (State node = nodes_[parent].first_child; node < nodes_[parent + 1U].first_child;
             ++node)
            link(parent, node);
    }
}

void StopAutomaton::link(State parent, State node) {
    Node& below = nodes_[node];
    below.fallback = parent == kRoot ? kRoot : next(nodes_[parent].fallback, below.label);
    const Node& fallback = nodes_[below.fallback];
    const bool is_leaf = below.first_child == nodes_[node + 1U].first_child;
    if (is_leaf) below.open = fallback.open;
    if (below.match == 0) below.match = fallback.match;
}

std::optional<StopAutomaton::State> StopAutomaton::child(State state, char byte) const {
    const auto begin = nodes_.begin() + nodes_[state].first_child;
    const auto end = nodes_.begin() + nodes_[state + 1U].first_child;
    const auto found = std::lower_bound(begin, end, byte, [](const Node& node, char wanted) {
        return static_cast<unsigned char>(node.label) < static_cast<unsigned char>(wanted);
    });
    if (found == end || found->label != byte) return std::nullopt;
    return static_cast<State>(found - nodes_.begin());
}

StopAutomaton::State StopAutomaton::next(State state, char byte) const {
    for (;;) {
        if (const auto target = child(state, byte)) return *target;
        if (state == kRoot) return kRoot;
        state = nodes_[state].fallback;
    }
}

const std::string* StopAutomaton::match(State state) const {
    const std::uint8_t number = nodes_[state].match;
    return number == 0 ? nullptr : &strings_[number - 1U];
}

std::size_t StopAutomaton::bytes() const {
    std::size_t sum = sizeof(*this) + nodes_.capacity() * sizeof(Node) +
                      strings_.capacity() * sizeof(std::string);
    for (const std::string& string : strings_) sum += string.capacity();
    return sum;
}

StopStrings::Step StopStrings::append(std::string_view text) {
    const std::size_t num_scanned = held_.size();
    held_ += text;
    if (automaton_ != nullptr) {
        const std::string_view pending = held_;
        for (std::size_t end = num_scanned; end < pending.size(); ++end) {
            state_ = automaton_->next(state_, pending[end]);
            if (const std::string* match = automaton_->match(state_))
                return stop_at(end + 1, *match);
        }
    }
    return {.text = take_free_text(), .match = std::nullopt};
}

std::string StopStrings::append_unchecked(std::string_view text) {
    held_ += text;
    if (automaton_ != nullptr) {
        for (const char byte : text) state_ = automaton_->next(state_, byte);
    }
    return take_free_text();
}

// Whole characters of what can no longer be part of a stop string.
std::string StopStrings::take_free_text() {
    const std::size_t num_pending = automaton_ == nullptr ? 0 : automaton_->num_open(state_);
    const std::string_view free_text =
        std::string_view(held_).substr(0, held_.size() - num_pending);
    std::string taken(free_text.substr(0, base::complete_utf8_prefix(free_text)));
    held_.erase(0, taken.size());
    return taken;
}

StopStrings::Step StopStrings::stop_at(std::size_t end, const std::string& found) {
    const std::size_t length = include_in_output_ ? end : end - found.size();
    const std::string_view kept = std::string_view(held_).substr(0, length);
    Step step;
    step.text = kept.substr(0, base::complete_utf8_prefix(kept));
    step.match = found;
    held_.clear();
    state_ = StopAutomaton::kRoot;
    return step;
}

std::string StopStrings::finish() {
    state_ = StopAutomaton::kRoot;
    return std::exchange(held_, {});
}

}  // namespace pagoda::decode
