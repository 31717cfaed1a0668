#include "base/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>

#include <sched.h>

#include "base/cgroup.h"

namespace pagoda::base {
namespace {

// The first processor of a list like "0-3,8" or "4,36"; empty when it is no such list.
std::optional<int> first_in_list(std::string_view list) {
    int first = 0;
    const auto read = std::from_chars(list.data(), list.data() + list.size(), first);
    if (read.ec != std::errc()) return std::nullopt;
    return first;
}

// The name of a processor's core: the lowest processor on it. Itself when the kernel does not say.
int core_of(int cpu, const std::string& root) {
    const std::string path = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                             "/topology/thread_siblings_list";
    std::string list;
    std::getline(std::ifstream(path), list);
    return first_in_list(list).value_or(cpu);
}

// The memory node of a processor, from the name of the folder "node3" beside its topology.
std::optional<int> node_of(int cpu, const std::string& root) {
    const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
        const std::string name = entry.path().filename();
        int node = 0;
        const char* end = name.data() + name.size();
        if (name.starts_with("node") && std::from_chars(name.data() + 4, end, node).ptr == end &&
            name.size() > 4)
            return node;
    }
    return std::nullopt;
}

// A kB figure of /proc/meminfo, in bytes.
std::optional<std::uint64_t> physical_memory(const std::string& root) {
    std::ifstream file(root + "/proc/meminfo");
    std::string name;
    std::uint64_t kib = 0;
    std::string unit;
    while (file >> name >> kib >> unit) {
        if (name == "MemTotal:") return kib * 1024;
    }
    return std::nullopt;
}

}  // namespace

std::vector<int> allowed_cpus() {
    // The mask must be at least as large as the kernel's, which is not known beforehand.
    for (int max_cpus = CPU_SETSIZE; max_cpus <= 1 << 20; max_cpus *= 2) {
        const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
            CPU_ALLOC(max_cpus), [](cpu_set_t* set) { CPU_FREE(set); });
        const std::size_t mask_bytes = CPU_ALLOC_SIZE(max_cpus);
        if (mask == nullptr || sched_getaffinity(0, mask_bytes, mask.get()) != 0) continue;
        std::vector<int> cpus;
        for (int cpu = 0; cpu < max_cpus; ++cpu) {
            if (CPU_ISSET_S(cpu, mask_bytes, mask.get())) cpus.push_back(cpu);
        }
        if (!cpus.empty()) return cpus;
    }
    std::vector<int> cpus(std::max(1U, std::thread::hardware_concurrency()));
    for (std::size_t index = 0; index < cpus.size(); ++index) cpus[index] = static_cast<int>(index);
    return cpus;
}

std::vector<int> one_cpu_per_core(std::span<const int> cpus, const std::string& root) {
    std::vector<int> cores;
    std::vector<int> chosen;
    for (const int cpu : cpus) {
        const int core = core_of(cpu, root);
        if (std::find(cores.begin(), cores.end(), core) != cores.end()) continue;
        cores.push_back(core);
        chosen.push_back(cpu);
    }
    return chosen;
}

int usable_cores(std::span<const int> cpus, const std::string& root) {
    auto cores = static_cast<int>(one_cpu_per_core(cpus, root).size());
    if (const std::optional<double> quota = cgroup_cpu_quota(root)) {
        if (*quota < cores) cores = static_cast<int>(std::floor(*quota));
    }
    return std::max(cores, 1);
}

int num_memory_nodes(std::span<const int> cpus, const std::string& root) {
    std::set<int> nodes;
    for (const int cpu : cpus)
        if (const std::optional<int> node = node_of(cpu, root)) nodes.insert(*node);
    return std::max(1, static_cast<int>(nodes.size()));
}

std::uint64_t usable_memory_bytes(const std::string& root) {
    const std::optional<std::uint64_t> physical = physical_memory(root);
    const std::optional<std::uint64_t> limit = cgroup_memory_limit(root);
    if (physical && limit) return std::min(*physical, *limit);
    return physical.value_or(limit.value_or(0));
}

}  // namespace pagoda::base
