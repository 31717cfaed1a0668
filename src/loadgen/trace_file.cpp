#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"
#include "loadgen/random_text.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {
namespace {

constexpr std::int64_t kBlockTokens = 512;
constexpr std::int64_t kMostTokens = 10'000'000;
constexpr std::int64_t kMostMilliseconds = 100LL * 365 * 24 * 3600 * 1000;

struct Entry {
    base::Duration at{};
    std::int64_t num_inputs = 0;
    std::int64_t num_outputs = 0;
    std::vector<std::uint64_t> blocks;
};

class Trace final : public Workload {
  public:
    explicit Trace(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    std::optional<Ask> next() override {
        if (num_asked_ == entries_.size()) return std::nullopt;
        const Entry& entry = entries_[num_asked_];
        return Ask{.session = num_asked_++,
                   .messages = {{"user", text_of(entry)}},
                   .max_tokens = entry.num_outputs,
                   .at = entry.at};
    }
    void answered(std::size_t /*session*/, std::string /*text*/) override {}

  private:
    // Blocks of the same identity are the same text; what they do not cover is the entry's own.
    [[nodiscard]] std::string text_of(const Entry& entry) const {
        std::string text;
        std::int64_t left = entry.num_inputs;
        const auto say = [&](std::uint64_t identity, std::int64_t count) {
            if (count <= 0) return;
            Random random(identity);
            if (!text.empty()) text += ' ';
            text += random_text(random, count);
            left -= count;
        };
        for (const std::uint64_t block : entry.blocks) say(block, std::min(left, kBlockTokens));
        constexpr std::uint64_t kOwn = 1ULL << 63U;  // no identity of a block
        say(kOwn | num_asked_, left);
        return text;
    }

    std::vector<Entry> entries_;  // by time
    std::size_t num_asked_ = 0;
};

base::Result<std::int64_t> integer_of(const base::Json& line, std::string_view name,
                                      std::int64_t least, std::int64_t most) {
    const base::Json* value = line.find(name);
    const bool is_whole = value != nullptr && value->is_number() &&
                          value->as_double() >= static_cast<double>(least) &&
                          value->as_double() <= static_cast<double>(most);
    if (!is_whole)
        return base::invalid(fmt::format("{} must be a number from {} to {}, got {}", name, least,
                                         most, value == nullptr ? "nothing" : value->dump()),
                             std::string(name));
    return value->is_int() ? value->as_int() : static_cast<std::int64_t>(value->as_double());
}

base::Result<Entry> entry_of(std::string_view text) {
    const auto line = base::Json::parse(text);
    if (!line) return line.error();
    const auto at = integer_of(*line, "timestamp", 0, kMostMilliseconds);
    if (!at) return at.error();
    const auto inputs = integer_of(*line, "input_length", 1, kMostTokens);
    if (!inputs) return inputs.error();
    const auto outputs = integer_of(*line, "output_length", 1, kMostTokens);
    if (!outputs) return outputs.error();
    Entry entry{
        .at = std::chrono::milliseconds(*at), .num_inputs = *inputs, .num_outputs = *outputs};
    const base::Json* blocks = line->find("hash_ids");
    if (blocks == nullptr) return entry;
    if (!blocks->is_array())
        return base::invalid("hash_ids must be a list of integers", "hash_ids");
    for (const base::Json& block : blocks->as_array()) {
        if (!block.is_int() || block.as_int() < 0)
            return base::invalid(
                fmt::format("hash_ids must be integers from 0, got {}", block.dump()), "hash_ids");
        entry.blocks.push_back(static_cast<std::uint64_t>(block.as_int()));
    }
    return entry;
}

}  // namespace

base::Result<std::unique_ptr<Workload>> read_trace(std::string_view text) {
    std::vector<Entry> entries;
    for (std::int64_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        auto entry = entry_of(line);
        if (!entry)
            return base::invalid(fmt::format("line {}: {}", number, entry.error().message),
                                 "trace");
        entries.push_back(*std::move(entry));
    }
    if (entries.empty()) return base::invalid("the trace has no request", "trace");
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.at < b.at; });
    return std::unique_ptr<Workload>(std::make_unique<Trace>(std::move(entries)));
}

}  // namespace pagoda::loadgen
