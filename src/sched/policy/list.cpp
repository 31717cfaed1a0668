// The policies by name and kind.

#include <array>
#include <memory>
#include <string>

#include <fmt/core.h>

#include "sched/policy/policy.h"

namespace pagoda::sched {

namespace {

struct Row {
    PolicyKind kind;
    std::string_view name;
    std::unique_ptr<Policy> (*make)(const SchedulerConfig& config);
};

constexpr std::array kRows{
    Row{PolicyKind::kFcfs, "fcfs", [](const SchedulerConfig&) { return make_fcfs(); }},
    Row{PolicyKind::kPriority, "priority",
        [](const SchedulerConfig& config) { return make_priority(config.priority_aging); }},
    Row{PolicyKind::kFair, "fair", [](const SchedulerConfig&) { return make_fair(); }},
};

const Row& row_of(PolicyKind kind) {
    for (const Row& row : kRows) {
        if (row.kind == kind) return row;
    }
    CHECK(false, "a policy has no row");
    return kRows[0];
}

}  // namespace

base::Result<PolicyKind> parse_policy(std::string_view name) {
    std::string known;
    for (const Row& row : kRows) {
        if (row.name == name) return row.kind;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    return base::invalid(
        fmt::format("scheduling_policy must be one of {}, got \"{}\"", known, name),
        "scheduling_policy");
}

std::string_view policy_name(PolicyKind kind) {
    return row_of(kind).name;
}

std::unique_ptr<Policy> make_policy(const SchedulerConfig& config) {
    return row_of(config.policy).make(config);
}

}  // namespace pagoda::sched
