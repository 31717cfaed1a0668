#pragma once
// Which processors this process may use, and how many cores and how much memory that is. `root` is
// prepended to every path, so that tests bring their own files; it is empty otherwise. Free
// functions over the file system, thread-safe.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pagoda::base {

// Ids of the logical processors in this thread's affinity mask, ascending; never empty.
[[nodiscard]] std::vector<int> allowed_cpus();

// The first allowed logical processor of each physical core, in the order of `cpus`.
[[nodiscard]] std::vector<int> one_cpu_per_core(std::span<const int> cpus, const std::string& root);

// The smaller of the physical cores among `cpus` and the whole part of the cgroup quota, at
// least 1.
[[nodiscard]] int usable_cores(std::span<const int> cpus, const std::string& root);

// The number of memory nodes (NUMA) that `cpus` lie on, 1 where the system does not say.
[[nodiscard]] int num_memory_nodes(std::span<const int> cpus, const std::string& root);

// The smaller of physical memory and the cgroup limit, in bytes. 0 when neither can be read.
[[nodiscard]] std::uint64_t usable_memory_bytes(const std::string& root);

}  // namespace pagoda::base
