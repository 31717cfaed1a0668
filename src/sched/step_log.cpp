#include "sched/step_log.h"

#include <array>
#include <charconv>
#include <string_view>

#include "base/check.h"
#include "sched/step_log_text.h"

namespace pagoda::sched {

namespace {

template <class Integer>
void append_digits(std::string& line, Integer value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    line.append(digits.data(), end);
}

// `,"name":value`, or without the comma at the beginning of an object.
template <class T>
void append_member(std::string& line, std::string_view name, const T& value) {
    if (line.back() != '{') line += ',';
    line += '"';
    line += name;
    line += "\":";
    append_text(line, value);
}

// Members that say nothing are left out, flags that are not set and lists without entries.
void append_flag(std::string& line, std::string_view name, bool value) {
    if (value) append_member(line, name, value);
}
template <class T>
void append_list(std::string& line, std::string_view name, const std::vector<T>& values) {
    if (!values.empty()) append_member(line, name, values);
}

void append_string(std::string& line, std::string_view name, std::string_view plain) {
    if (line.back() != '{') line += ',';
    line += '"';
    line += name;
    line += "\":\"";
    line += plain;
    line += '"';
}

std::string begin_event(std::string_view kind) {
    std::string line = "{";
    append_string(line, "event", kind);
    return line;
}

void append_prompt(std::string& line, const kv::PromptKeys& prompt) {
    line += '{';
    append_string(line, "scope", prompt.root.hex());
    line += ",\"tokens\":";
    append_tokens(line, *prompt.tokens);
    line += '}';
}

void append_sequence(std::string& line, const SequenceSpec& spec) {
    line += '{';
    append_member(line, "seq", spec.seq);
    // Clients are 64 bits, more than a number in JSON keeps everywhere.
    append_string(line, "client", base::Hash128{spec.client.value, 0}.hex().substr(16));
    append_member(line, "num_prompt_tokens", spec.num_prompt_tokens);
    append_member(line, "max_total_tokens", spec.max_total_tokens);
    if (spec.priority != 0) append_member(line, "priority", std::int64_t{spec.priority});
    if (spec.max_step_tokens != 0) append_member(line, "max_step_tokens", spec.max_step_tokens);
    append_flag(line, "computes_whole_prompt", spec.computes_whole_prompt);
}

void append_part(std::string& line, const SequencePlan& part) {
    line += '{';
    append_member(line, "seq", part.seq);
    append_member(line, "first_position", part.first_position);
    append_member(line, "num_tokens", part.num_tokens);
    append_flag(line, "is_sampled", part.is_sampled);
    append_flag(line, "is_restart", part.is_restart);
    append_list(line, "cached", part.cached);
    append_list(line, "replaced", part.replaced);
    append_list(line, "new_blocks", part.new_blocks);
    append_list(line, "copies", part.copies);
    line += '}';
}

void append_result(std::string& line, const SequenceResult& result, bool with_tokens) {
    line += '{';
    if (!result.tokens.empty() && with_tokens) {
        line += "\"tokens\":";
        append_tokens(line, result.tokens);
    } else if (!result.tokens.empty()) {
        append_member(line, "num_tokens", static_cast<std::int64_t>(result.tokens.size()));
    }
    if (result.finish) append_string(line, "finish", finish_name(*result.finish));
    line += '}';
}

std::string sequence_event(std::string_view kind, base::SeqId seq) {
    std::string line = begin_event(kind);
    append_member(line, "seq", seq);
    line += "}\n";
    return line;
}

}  // namespace

std::string_view finish_name(FinishReason reason) {
    switch (reason) {
        case FinishReason::kStop:
            return "stop";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kAborted:
            return "aborted";
        case FinishReason::kError:
            return "error";
    }
    return "";
}

void append_text(std::string& line, std::int64_t value) {
    append_digits(line, value);
}
void append_text(std::string& line, std::uint64_t value) {
    append_digits(line, value);
}
void append_text(std::string& line, bool value) {
    line += value ? "true" : "false";
}
void append_text(std::string& line, base::SeqId seq) {
    append_digits(line, seq.value);
}
void append_text(std::string& line, base::BlockId block) {
    append_digits(line, block.value);
}
void append_text(std::string& line, const NewBlock& block) {
    line += '[';
    append_digits(line, block.group);
    line += ',';
    append_text(line, block.block);
    line += ']';
}
void append_text(std::string& line, const BlockCopy& copy) {
    line += '[';
    append_digits(line, copy.group);
    line += ',';
    append_text(line, copy.from);
    line += ',';
    append_text(line, copy.to);
    line += ']';
}
void append_text(std::string& line, const ReplacedBlock& replaced) {
    line += '[';
    append_digits(line, replaced.group);
    line += ',';
    append_digits(line, replaced.index);
    line += ',';
    append_text(line, replaced.block);
    line += ']';
}
void append_text(std::string& line, const PassedOver& over) {
    line += '[';
    append_text(line, over.seq);
    line += ',';
    append_digits(line, over.by);
    line += ']';
}
void append_text(std::string& line, const CachedBlocks& cached) {
    line += '[';
    append_digits(line, cached.first_index);
    line += ',';
    append_text(line, cached.blocks);
    line += ']';
}
void append_tokens(std::string& line, const std::vector<base::TokenId>& tokens) {
    line += '[';
    for (const base::TokenId& token : tokens) {
        if (&token != tokens.data()) line += ',';
        append_digits(line, token);
    }
    line += ']';
}

std::string header_line(const SchedulerConfig& config) {
    std::string line = "{";
    append_member(line, "pagoda_step_log", kStepLogVersion);
    append_member(line, "max_num_seqs", config.max_num_seqs);
    append_member(line, "max_num_batched_tokens", config.max_num_batched_tokens);
    append_member(line, "max_queue", config.max_queue);
    append_member(line, "max_model_len", config.max_model_len);
    append_string(line, "policy", policy_name(config.policy));
    append_member(line, "priority_aging_ns", std::int64_t{config.priority_aging.count()});
    append_member(line, "target_itl_ns", std::int64_t{config.target_itl.count()});
    append_member(line, "has_prefix_cache", config.prefix_hasher != nullptr);
    line += ",\"groups\":[";
    for (const KvGroupSpec& group : config.groups) {
        line += &group == config.groups.data() ? "{" : ",{";
        append_member(line, "num_blocks", group.num_blocks);
        append_member(line, "window", group.window);
        line += '}';
    }
    line += "]}\n";
    return line;
}

std::string submit_line(std::span<const SequenceSpec> sequences, base::TimePoint now) {
    std::string line = begin_event("submit");
    append_member(line, "time_ns", std::int64_t{now.time_since_epoch().count()});
    // Those of one request have one prompt, which is written once.
    std::vector<const kv::PromptKeys*> prompts;
    line += ",\"sequences\":[";
    for (const SequenceSpec& spec : sequences) {
        if (&spec != sequences.data()) line += ',';
        append_sequence(line, spec);
        if (spec.prefix != nullptr) {
            if (prompts.empty() || prompts.back() != spec.prefix.get())
                prompts.push_back(spec.prefix.get());
            append_member(line, "prompt", static_cast<std::int64_t>(prompts.size()) - 1);
        }
        line += '}';
    }
    line += ']';
    if (!prompts.empty()) {
        line += ",\"prompts\":[";
        for (const kv::PromptKeys* prompt : prompts) {
            if (prompt != prompts.front()) line += ',';
            append_prompt(line, *prompt);
        }
        line += ']';
    }
    line += "}\n";
    return line;
}

std::string cancel_line(base::SeqId seq) {
    return sequence_event("cancel", seq);
}

std::string finish_line(base::SeqId seq) {
    return sequence_event("finish", seq);
}

std::string reset_line() {
    return begin_event("reset_prefix_cache") + "}\n";
}

std::string step_line(const SchedulerConfig& config, const StepPlan& plan,
                      const StepResult& result) {
    CHECK(result.sequences.size() == plan.sequences.size(), "the result is not of this plan");
    std::string line = begin_event("step");
    append_member(line, "step", plan.step);
    append_member(line, "took_ns", std::int64_t{result.took.count()});
    append_list(line, "ended", plan.ended);
    append_list(line, "preempted", plan.preempted);
    append_list(line, "passed_over", plan.passed_over);
    append_list(line, "evicted", plan.evicted);
    line += ",\"sequences\":[";
    for (const SequencePlan& part : plan.sequences) {
        if (&part != plan.sequences.data()) line += ',';
        append_part(line, part);
    }
    line += "],\"results\":[";
    for (const SequenceResult& part : result.sequences) {
        if (&part != result.sequences.data()) line += ',';
        append_result(line, part, config.prefix_hasher != nullptr);
    }
    line += "]}\n";
    return line;
}

}  // namespace pagoda::sched
