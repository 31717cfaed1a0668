#include "decode/stop.h"

#include <algorithm>

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
    }
    return {};
}

// The stop strings as a trie with failure links (Aho and Corasick, 1975): the state after some text
// is the longest end of that text which begins a stop string.
struct StopStrings::Automaton {
    struct Node {
        std::vector<std::pair<char, std::size_t>> children;
        std::size_t fallback = kRoot;  // the longest proper end of this node that is in the trie
        std::size_t depth = 0;
        std::size_t open = 0;  // bytes of the longest end of this node that a stop string goes on
        std::optional<std::size_t> match;  // the longest stop string that ends here
    };
    static constexpr std::size_t kRoot = 0;

    explicit Automaton(const std::vector<std::string>& strings) : nodes(1) {
        for (std::size_t i = 0; i < strings.size(); ++i) add(strings[i], i);
        link();
    }

    [[nodiscard]] std::optional<std::size_t> child(std::size_t node, char byte) const {
        for (const auto& [label, target] : nodes[node].children) {
            if (label == byte) return target;
        }
        return std::nullopt;
    }

    [[nodiscard]] std::size_t next(std::size_t node, char byte) const {
        for (;;) {
            if (const auto target = child(node, byte)) return *target;
            if (node == kRoot) return kRoot;
            node = nodes[node].fallback;
        }
    }

    void add(const std::string& string, std::size_t index) {
        CHECK(!string.empty(), "a stop string is empty");
        std::size_t node = kRoot;
        for (const char byte : string) {
            auto target = child(node, byte);
            if (!target) {
                target = nodes.size();
                nodes[node].children.emplace_back(byte, *target);
                nodes.push_back({.children = {}, .depth = nodes[node].depth + 1, .match = {}});
            }
            node = *target;
        }
        if (!nodes[node].match) nodes[node].match = index;
    }

    // Breadth first, so that a fallback is complete before it is needed.
    void link() {
        std::vector<std::size_t> order{kRoot};
        for (std::size_t visited = 0; visited < order.size(); ++visited) {
            const std::size_t node = order[visited];
            for (const auto& [byte, target] : nodes[node].children) {
                Node& below = nodes[target];
                below.fallback = node == kRoot ? kRoot : next(nodes[node].fallback, byte);
                below.open = below.children.empty() ? nodes[below.fallback].open : below.depth;
                if (!below.match) below.match = nodes[below.fallback].match;
                order.push_back(target);
            }
        }
    }

    std::vector<Node> nodes;
};

StopStrings::StopStrings(std::vector<std::string> strings, bool include_in_output)
    : strings_(std::move(strings)), include_in_output_(include_in_output) {
    if (!strings_.empty()) automaton_ = std::make_unique<const Automaton>(strings_);
}

StopStrings::~StopStrings() = default;
StopStrings::StopStrings(StopStrings&&) noexcept = default;
StopStrings& StopStrings::operator=(StopStrings&&) noexcept = default;

StopStrings::Step StopStrings::append(std::string_view text) {
    const std::size_t num_scanned = held_.size();
    held_ += text;
    if (automaton_ != nullptr) {
        const std::string_view pending = held_;
        for (std::size_t end = num_scanned; end < pending.size(); ++end) {
            state_ = automaton_->next(state_, pending[end]);
            if (const auto match = automaton_->nodes[state_].match) return stop_at(end + 1, *match);
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
    const std::size_t num_pending = automaton_ == nullptr ? 0 : automaton_->nodes[state_].open;
    const std::string_view free_text =
        std::string_view(held_).substr(0, held_.size() - num_pending);
    std::string taken(free_text.substr(0, base::complete_utf8_prefix(free_text)));
    held_.erase(0, taken.size());
    return taken;
}

StopStrings::Step StopStrings::stop_at(std::size_t end, std::size_t index) {
    const std::string& found = strings_[index];
    const std::size_t length = include_in_output_ ? end : end - found.size();
    const std::string_view kept = std::string_view(held_).substr(0, length);
    Step step;
    step.text = kept.substr(0, base::complete_utf8_prefix(kept));
    step.match = found;
    held_.clear();
    state_ = Automaton::kRoot;
    return step;
}

std::string StopStrings::finish() {
    state_ = Automaton::kRoot;
    return std::exchange(held_, {});
}

}  // namespace pagoda::decode
