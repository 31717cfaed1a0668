#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"
#include "sched/step_log.h"
#include "sched/step_log_text.h"

namespace pagoda::sched {

namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

// What a scheduler is ever given, with room; sums of so many stay within 64 bits.
struct Range {
    std::int64_t least = 0, most = 0;
};
constexpr Range kAny = {std::numeric_limits<std::int64_t>::min(),
                        std::numeric_limits<std::int64_t>::max()};
constexpr Range kId = {0, std::numeric_limits<std::int64_t>::max()};
constexpr Range kInt32 = {std::numeric_limits<std::int32_t>::min(),
                          std::numeric_limits<std::int32_t>::max()};
constexpr Range kTokens = {0, std::int64_t{1} << 30};
constexpr Range kTime = {0, std::int64_t{1} << 60};
constexpr std::int64_t kMaxGroups = 64;
// Of all groups: the pools take memory for them before anything was replayed.
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 22;

// The first thing that was wrong with a line; what is read behind it does not matter.
class Fault {
  public:
    void set(std::string message) {
        if (!message_) message_ = std::move(message);
    }
    [[nodiscard]] bool is_set() const { return message_.has_value(); }
    [[nodiscard]] Error error() const { return {ErrorCode::kDataLoss, *message_}; }

  private:
    std::optional<std::string> message_;
};

std::int64_t to_integer(Fault& fault, std::string_view name, const Json& value, Range range) {
    if (!value.is_int()) {
        fault.set(fmt::format("{} must be an integer, got {}", name, value.type_name()));
    } else if (value.as_int() < range.least || value.as_int() > range.most) {
        fault.set(fmt::format("{} must be from {} to {}, got {}", name, range.least, range.most,
                              value.as_int()));
    } else {
        return value.as_int();
    }
    return range.least;
}

// The members of one object: each is taken once, and close() refuses those that nobody took.
class Members {
  public:
    Members(Fault& fault, std::string_view what, const Json& value)
        : fault_(fault), what_(what), value_(value) {
        if (!value.is_object())
            fault_.set(fmt::format("{} must be an object, got {}", what, value.type_name()));
    }

    [[nodiscard]] const Json* take(std::string_view name) {
        const Json* found = value_.find(name);
        if (found != nullptr) taken_.push_back(name);
        return found;
    }
    std::int64_t integer(std::string_view name, Range range,
                         std::optional<std::int64_t> fallback = std::nullopt) {
        const Json* found = need(name, fallback.has_value());
        return found == nullptr ? fallback.value_or(range.least)
                                : to_integer(fault_, name, *found, range);
    }
    bool flag(std::string_view name) {
        const Json* found = take(name);
        if (found == nullptr) return false;
        if (found->is_bool()) return found->as_bool();
        fault_.set(fmt::format("{} must be a boolean, got {}", name, found->type_name()));
        return false;
    }
    std::string text(std::string_view name) {
        const Json* found = need(name, false);
        if (found == nullptr) return {};
        if (found->is_string()) return found->as_string();
        fault_.set(fmt::format("{} must be a string, got {}", name, found->type_name()));
        return {};
    }
    // Empty where there is none.
    const Json::Array& list(std::string_view name) {
        static const Json::Array kNone;
        const Json* found = take(name);
        if (found == nullptr) return kNone;
        if (found->is_array()) return found->as_array();
        fault_.set(fmt::format("{} must be an array, got {}", name, found->type_name()));
        return kNone;
    }
    void close() {
        if (!value_.is_object()) return;
        for (const auto& [name, value] : value_.as_object()) {
            if (std::find(taken_.begin(), taken_.end(), name) == taken_.end())
                fault_.set(fmt::format("{} has a member that is not known: {}", what_,
                                       Json(name.substr(0, 60)).dump()));
        }
    }

  private:
    const Json* need(std::string_view name, bool is_optional) {
        const Json* found = take(name);
        if (found == nullptr && !is_optional)
            fault_.set(fmt::format("{} has no member {}", what_, name));
        return found;
    }

    Fault& fault_;
    std::string_view what_;
    const Json& value_;
    std::vector<std::string_view> taken_;
};

// An array of so many integers.
template <std::size_t kCount>
std::array<std::int64_t, kCount> tuple(Fault& fault, std::string_view name, const Json& value) {
    std::array<std::int64_t, kCount> numbers{};
    if (!value.is_array() || value.as_array().size() != kCount) {
        fault.set(fmt::format("an entry of {} must be an array of {} numbers", name, kCount));
        return numbers;
    }
    for (std::size_t i = 0; i < kCount; ++i)
        numbers[i] = to_integer(fault, name, value.as_array()[i], kAny);
    return numbers;
}

std::int32_t narrow(Fault& fault, std::string_view name, std::int64_t value) {
    if (value < kInt32.least || value > kInt32.most)
        fault.set(fmt::format("a group or block of {} is out of range: {}", name, value));
    return static_cast<std::int32_t>(value);
}

std::vector<base::TokenId> read_tokens(Fault& fault, Members& members) {
    std::vector<base::TokenId> tokens;
    const Json::Array& list = members.list("tokens");
    tokens.reserve(list.size());
    for (const Json& token : list)
        tokens.push_back(static_cast<base::TokenId>(to_integer(fault, "a token", token, kInt32)));
    return tokens;
}

std::vector<base::SeqId> read_ids(Fault& fault, Members& members, std::string_view name) {
    std::vector<base::SeqId> ids;
    for (const Json& id : members.list(name))
        ids.emplace_back(static_cast<std::uint64_t>(to_integer(fault, name, id, kId)));
    return ids;
}

std::vector<NewBlock> read_blocks(Fault& fault, Members& members, std::string_view name) {
    std::vector<NewBlock> blocks;
    for (const Json& entry : members.list(name)) {
        const auto [group, block] = tuple<2>(fault, name, entry);
        blocks.push_back({narrow(fault, name, group), base::BlockId(narrow(fault, name, block))});
    }
    return blocks;
}

std::vector<CachedBlocks> read_cached(Fault& fault, Members& members) {
    std::vector<CachedBlocks> cached;
    for (const Json& entry : members.list("cached")) {
        if (!entry.is_array() || entry.as_array().size() != 2 || !entry.as_array()[1].is_array()) {
            fault.set("an entry of cached must be [first_index, [block, ...]]");
            return cached;
        }
        CachedBlocks& group = cached.emplace_back();
        group.first_index = to_integer(fault, "first_index", entry.as_array()[0], kAny);
        for (const Json& block : entry.as_array()[1].as_array())
            group.blocks.emplace_back(
                static_cast<std::int32_t>(to_integer(fault, "cached", block, kInt32)));
    }
    return cached;
}

SequencePlan read_part(Fault& fault, const Json& value) {
    Members members(fault, "a sequence of the plan", value);
    SequencePlan part;
    part.seq = base::SeqId(static_cast<std::uint64_t>(members.integer("seq", kId)));
    part.first_position = members.integer("first_position", kAny);
    part.num_tokens = members.integer("num_tokens", kAny);
    part.is_sampled = members.flag("is_sampled");
    part.is_restart = members.flag("is_restart");
    part.cached = read_cached(fault, members);
    for (const Json& entry : members.list("replaced")) {
        const auto [group, index, block] = tuple<3>(fault, "replaced", entry);
        part.replaced.push_back({narrow(fault, "replaced", group), index,
                                 base::BlockId(narrow(fault, "replaced", block))});
    }
    part.new_blocks = read_blocks(fault, members, "new_blocks");
    for (const Json& entry : members.list("copies")) {
        const auto [group, from, to] = tuple<3>(fault, "copies", entry);
        part.copies.push_back({narrow(fault, "copies", group),
                               base::BlockId(narrow(fault, "copies", from)),
                               base::BlockId(narrow(fault, "copies", to))});
    }
    members.close();
    return part;
}

std::optional<FinishReason> read_finish(Fault& fault, Members& members) {
    if (members.take("finish") == nullptr) return std::nullopt;
    const std::string name = members.text("finish");
    for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength,
                                      FinishReason::kAborted, FinishReason::kError}) {
        if (finish_name(reason) == name) return reason;
    }
    fault.set("finish must be stop, length, aborted or error");
    return std::nullopt;
}

SequenceResult read_result(Fault& fault, const Json& value) {
    Members members(fault, "a result", value);
    SequenceResult result;
    result.tokens = read_tokens(fault, members);
    if (const std::int64_t count = members.integer("num_tokens", {0, 1}, 0); count > 0)
        result.tokens.resize(static_cast<std::size_t>(count));
    result.finish = read_finish(fault, members);
    members.close();
    return result;
}

LoggedStep read_step(Fault& fault, Members& members) {
    LoggedStep step;
    step.plan.step = static_cast<std::uint64_t>(members.integer("step", kId));
    step.result.step = step.plan.step;
    step.result.took = base::Duration(members.integer("took_ns", kTime, 0));
    step.plan.ended = read_ids(fault, members, "ended");
    step.plan.preempted = read_ids(fault, members, "preempted");
    for (const Json& entry : members.list("passed_over")) {
        const auto [seq, by] = tuple<2>(fault, "passed_over", entry);
        step.plan.passed_over.push_back({base::SeqId(static_cast<std::uint64_t>(seq)), by});
    }
    step.plan.evicted = read_blocks(fault, members, "evicted");
    for (const Json& part : members.list("sequences"))
        step.plan.sequences.push_back(read_part(fault, part));
    for (const Json& part : members.list("results"))
        step.result.sequences.push_back(read_result(fault, part));
    if (step.result.sequences.size() != step.plan.sequences.size())
        fault.set(fmt::format("the step has {} sequences and {} results",
                              step.plan.sequences.size(), step.result.sequences.size()));
    for (std::size_t i = 0; !fault.is_set() && i < step.plan.sequences.size(); ++i)
        step.result.sequences[i].seq = step.plan.sequences[i].seq;
    return step;
}

base::ClientId read_client(Fault& fault, Members& members) {
    const std::string text = members.text("client");
    std::uint64_t client = 0;
    const char* end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(text.data(), end, client, 16);
    if (failed != std::errc() || rest != end || text.size() != 16)
        fault.set("client must be 16 hexadecimal digits");
    return base::ClientId(client);
}

using Prompts = std::vector<std::shared_ptr<const kv::PromptKeys>>;

Prompts read_prompts(Fault& fault, Members& members, const SchedulerConfig& config) {
    Prompts prompts;
    for (const Json& value : members.list("prompts")) {
        if (config.prefix_hasher == nullptr) {
            fault.set("a prompt is there, and the header has no prefix cache");
            break;
        }
        Members prompt(fault, "a prompt", value);
        std::string scope = prompt.text("scope");
        // Owners: the prompt's keys, which the sequences share.
        auto tokens =
            std::make_shared<const std::vector<base::TokenId>>(read_tokens(fault, prompt));
        prompt.close();
        prompts.push_back(std::make_shared<const kv::PromptKeys>(
            config.prefix_hasher->keys(std::move(scope), std::move(tokens))));
    }
    return prompts;
}

SequenceSpec read_sequence(Fault& fault, const Json& value, const Prompts& prompts) {
    Members members(fault, "a sequence", value);
    SequenceSpec spec;
    spec.seq = base::SeqId(static_cast<std::uint64_t>(members.integer("seq", kId)));
    spec.client = read_client(fault, members);
    spec.num_prompt_tokens = members.integer("num_prompt_tokens", {1, kTokens.most});
    spec.max_total_tokens =
        members.integer("max_total_tokens", {spec.num_prompt_tokens, kTokens.most});
    spec.priority = static_cast<std::int32_t>(members.integer("priority", kInt32, 0));
    spec.max_step_tokens = members.integer("max_step_tokens", kTokens, 0);
    spec.computes_whole_prompt = members.flag("computes_whole_prompt");
    constexpr std::int64_t kNone = -1;
    const std::int64_t prompt = members.integer("prompt", {kNone, std::ssize(prompts) - 1}, kNone);
    if (prompt != kNone && !fault.is_set()) {
        spec.prefix = prompts[static_cast<std::size_t>(prompt)];
        if (std::ssize(*spec.prefix->tokens) != spec.num_prompt_tokens)
            fault.set(fmt::format("num_prompt_tokens is {}, the prompt has {} tokens",
                                  spec.num_prompt_tokens, spec.prefix->tokens->size()));
    }
    members.close();
    return spec;
}

LoggedSubmit read_submit(Fault& fault, Members& members, const SchedulerConfig& config) {
    LoggedSubmit submit;
    submit.now = base::TimePoint(base::Duration(members.integer("time_ns", kTime)));
    const Prompts prompts = read_prompts(fault, members, config);
    for (const Json& value : members.list("sequences"))
        submit.sequences.push_back(read_sequence(fault, value, prompts));
    return submit;
}

base::SeqId read_seq(Members& members) {
    return base::SeqId(static_cast<std::uint64_t>(members.integer("seq", kId)));
}

LoggedEvent read_event(Fault& fault, Members& members, const SchedulerConfig& config) {
    const std::string kind = members.text("event");
    if (kind == "step") return read_step(fault, members);
    if (kind == "submit") return read_submit(fault, members, config);
    if (kind == "cancel") return LoggedCancel{read_seq(members)};
    if (kind == "finish") return LoggedFinish{read_seq(members)};
    if (kind != "reset_prefix_cache")
        fault.set("event must be submit, cancel, finish, reset_prefix_cache or step");
    return LoggedReset{};
}

void read_groups(Fault& fault, Members& members, SchedulerConfig& config) {
    const Json::Array& groups = members.list("groups");
    if (std::ssize(groups) > kMaxGroups)
        fault.set(fmt::format("groups must be {} at most, got {}", kMaxGroups, groups.size()));
    std::int64_t num_blocks = 0;
    for (const Json& value : groups) {
        if (fault.is_set()) return;
        Members group(fault, "a group", value);
        KvGroupSpec spec;
        spec.num_blocks = group.integer("num_blocks", {1, kMaxBlocks});
        spec.window = group.integer("window", kTokens);
        group.close();
        num_blocks += spec.num_blocks;
        config.groups.push_back(spec);
    }
    if (num_blocks > kMaxBlocks)
        fault.set(
            fmt::format("all groups have {} blocks, the limit is {}", num_blocks, kMaxBlocks));
}

SchedulerConfig read_header(Fault& fault, Members& members) {
    SchedulerConfig config;
    config.max_num_seqs = members.integer("max_num_seqs", kTokens);
    config.max_num_batched_tokens = members.integer("max_num_batched_tokens", kTokens);
    config.max_queue = members.integer("max_queue", kTokens);
    config.max_model_len = members.integer("max_model_len", kTokens);
    const auto policy = parse_policy(members.text("policy"));
    if (policy) config.policy = *policy;
    if (!policy) fault.set(policy.error().message);
    config.priority_aging = base::Duration(members.integer("priority_aging_ns", kTime));
    config.target_itl = base::Duration(members.integer("target_itl_ns", kTime, 0));
    // Any key finds the same: a hash only leads to a candidate, whose tokens are compared.
    if (members.flag("has_prefix_cache"))
        config.prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
    read_groups(fault, members, config);
    members.close();
    if (fault.is_set()) return config;
    if (const base::Status valid = validate(config); !valid) fault.set(valid.error().message);
    return config;
}

base::Result<Json> parse(std::string_view line) {
    auto value = Json::parse(line, {.max_depth = 8});
    if (!value) return Error{ErrorCode::kDataLoss, value.error().message};
    return value;
}

}  // namespace

base::Result<SchedulerConfig> parse_header_line(std::string_view line) {
    auto value = parse(line);
    if (!value || value->find("pagoda_step_log") == nullptr)
        return Error{ErrorCode::kDataLoss,
                     "no step log of pagoda: the first line must be its header"};
    Fault fault;
    Members members(fault, "the header", *value);
    const std::int64_t version = members.integer("pagoda_step_log", kAny);
    if (!fault.is_set() && version != kStepLogVersion)
        return Error{ErrorCode::kUnsupported,
                     fmt::format("the log has format version {}, this program reads {}", version,
                                 kStepLogVersion)};
    SchedulerConfig config = read_header(fault, members);
    if (fault.is_set()) return fault.error();
    return config;
}

base::Result<LoggedEvent> parse_event_line(std::string_view line, const SchedulerConfig& config) {
    auto value = parse(line);
    if (!value) return std::move(value).error();
    Fault fault;
    Members members(fault, "an event", *value);
    LoggedEvent event = read_event(fault, members, config);
    members.close();
    if (fault.is_set()) return fault.error();
    return event;
}

}  // namespace pagoda::sched
