#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <vector>

namespace pagoda::base {
namespace {

// A mounted hierarchy: the group `mounted_group` is visible at `directory`.
struct Hierarchy {
    std::string directory;
    std::string mounted_group;
    bool version_2 = false;
};

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

bool lists(const std::string& options, std::string_view wanted) {
    const std::vector<std::string> parts = split(options, ',');
    return std::find(parts.begin(), parts.end(), wanted) != parts.end();
}

// mountinfo writes blanks, tabs, newlines and backslashes as three octal digits: "\040".
std::string decode_mount_path(std::string_view text) {
    std::string path;
    while (!text.empty()) {
        unsigned code = 0;
        const bool escaped =
            text.size() >= 4 && text[0] == '\\' &&
            std::from_chars(text.data() + 1, text.data() + 4, code, 8).ptr == text.data() + 4;
        path.push_back(escaped ? static_cast<char>(code) : text[0]);
        text.remove_prefix(escaped ? 4 : 1);
    }
    return path;
}

// The hierarchies that could limit `controller`: a version 1 mount that names it, or version 2.
// A line is "36 35 98:0 /group /mount rw,noatime master:1 - cgroup2 source rw,memory".
std::vector<Hierarchy> find_hierarchies(const std::string& root, std::string_view controller) {
    std::vector<Hierarchy> found;
    std::ifstream file(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        const std::vector<std::string> left = split(line.substr(0, dash), ' ');
        const std::vector<std::string> right = split(line.substr(dash + 3), ' ');
        if (left.size() < 5 || right.size() < 3) continue;
        const bool version_2 = right[0] == "cgroup2";
        if (!version_2 && !(right[0] == "cgroup" && lists(right[2], controller))) continue;
        found.push_back({.directory = decode_mount_path(left[4]),
                         .mounted_group = decode_mount_path(left[3]),
                         .version_2 = version_2});
    }
    return found;
}

// The group of this process, from a line like "4:cpu,cpuacct:/a/b", or "0::/a/b" of version 2.
std::optional<std::string> own_group(const std::string& root, std::string_view controller,
                                     bool version_2) {
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':');
        if (first == std::string::npos) continue;
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (version_2 ? controllers.empty() : lists(controllers, controller)) {
            return line.substr(second + 1);
        }
    }
    return std::nullopt;
}

// The path of `group` below the mount: what is left of it when the mounted group is taken away,
// and nothing when it lies elsewhere (as seen from a container with the host's group names).
std::string path_below_mount(std::string group, std::string mounted_group) {
    if (mounted_group == "/") mounted_group.clear();
    if (group == "/") group.clear();
    if (!group.starts_with(mounted_group)) return "";
    const std::string below = group.substr(mounted_group.size());
    return below.empty() || below[0] == '/' ? below : "";
}

// The directories of this process's group and of the groups above it that are visible.
std::vector<std::string> group_directories(const std::string& root, std::string_view controller,
                                           const Hierarchy& hierarchy) {
    const std::string mount = root + hierarchy.directory;
    const std::optional<std::string> group = own_group(root, controller, hierarchy.version_2);
    std::string below = group ? path_below_mount(*group, hierarchy.mounted_group) : "";
    std::vector<std::string> directories;
    while (!below.empty()) {
        directories.push_back(mount + below);
        below.resize(below.rfind('/'));
    }
    directories.push_back(mount);
    return directories;
}

// The numbers of a file's first line; "max" and what is no number end it.
std::vector<double> read_numbers(const std::string& path) {
    std::vector<double> numbers;
    std::ifstream file(path);
    for (double number = 0; file >> number;) numbers.push_back(number);
    return numbers;
}

std::optional<double> quota_in(const std::string& directory, bool version_2) {
    std::vector<double> quota;
    std::vector<double> period;
    if (version_2) {
        quota = read_numbers(directory + "/cpu.max");
        if (quota.size() == 2) period = {quota[1]};
    } else {
        quota = read_numbers(directory + "/cpu.cfs_quota_us");
        period = read_numbers(directory + "/cpu.cfs_period_us");
    }
    if (quota.empty() || period.empty() || quota[0] <= 0 || period[0] <= 0) return std::nullopt;
    return quota[0] / period[0];
}

std::optional<double> memory_in(const std::string& directory, bool version_2) {
    // Version 1 says "no limit" by the largest multiple of a page.
    constexpr double kUnlimited = 9.0e18;
    std::optional<double> smallest;
    const std::vector<std::string> names =
        version_2 ? std::vector<std::string>{"/memory.max", "/memory.high"}
                  : std::vector<std::string>{"/memory.limit_in_bytes"};
    for (const std::string& name : names) {
        const std::vector<double> limit = read_numbers(directory + name);
        if (limit.empty() || limit[0] < 0 || limit[0] >= kUnlimited) continue;
        smallest = smallest ? std::min(*smallest, limit[0]) : limit[0];
    }
    return smallest;
}

using ReadLimit = std::optional<double> (*)(const std::string& directory, bool version_2);

std::optional<double> smallest_limit(const std::string& root, std::string_view controller,
                                     ReadLimit read) {
    std::optional<double> smallest;
    for (const Hierarchy& hierarchy : find_hierarchies(root, controller)) {
        for (const std::string& directory : group_directories(root, controller, hierarchy)) {
            const std::optional<double> limit = read(directory, hierarchy.version_2);
            if (limit) smallest = smallest ? std::min(*smallest, *limit) : *limit;
        }
    }
    return smallest;
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const std::string& root) {
    return smallest_limit(root, "cpu", quota_in);
}

std::optional<std::uint64_t> cgroup_memory_limit(const std::string& root) {
    const std::optional<double> limit = smallest_limit(root, "memory", memory_in);
    if (!limit) return std::nullopt;
    return static_cast<std::uint64_t>(*limit);
}

}  // namespace pagoda::base
