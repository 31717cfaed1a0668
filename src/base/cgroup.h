#pragma once
// What the control groups of this process, and all groups above them, allow. Reads versions 1 and 2
// and both at once. `root` is prepended to every path, so that tests bring their own files; it is
// empty otherwise. Free functions over the file system, thread-safe.

#include <cstdint>
#include <optional>
#include <string>

namespace pagoda::base {

// Processors' worth of time per second, as 7.65; empty without a quota.
[[nodiscard]] std::optional<double> cgroup_cpu_quota(const std::string& root);
// Bytes of memory; empty without a limit. The smaller of the hard limit and version 2's
// memory.high, beyond which the kernel slows a process down to reclaim memory.
[[nodiscard]] std::optional<std::uint64_t> cgroup_memory_limit(const std::string& root);

}  // namespace pagoda::base
