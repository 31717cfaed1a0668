#include "base/cpu_topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/byte_size.h"
#include "base/cgroup.h"

namespace pagoda::base {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

// A file system of a test's own, removed at its end.
class FakeRoot {
  public:
    FakeRoot() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "pagoda-root-XXXXXX").string();
        root_ = mkdtemp(pattern.data());
    }
    ~FakeRoot() { std::filesystem::remove_all(root_); }
    FakeRoot(const FakeRoot&) = delete;
    FakeRoot& operator=(const FakeRoot&) = delete;

    FakeRoot& put(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
        return *this;
    }
    // Version 2 alone, as on today's distributions.
    FakeRoot& with_version_2(const std::string& group) {
        put("/proc/self/mountinfo",
            "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
            "35 22 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
            "rw,memory_recursiveprot\n");
        return put("/proc/self/cgroup", "0::" + group + "\n");
    }
    // Version 1, with the mounted group that a container sees.
    FakeRoot& with_version_1(const std::string& group, const std::string& mounted_group) {
        put("/proc/self/mountinfo",
            "32 31 0:28 " + mounted_group +
                " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                "35 31 0:31 " +
                mounted_group + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
        return put("/proc/self/cgroup",
                   "5:memory:" + group + "\n4:cpuset:/\n3:cpu,cpuacct:" + group + "\n");
    }
    const std::string& path() const { return root_; }

  private:
    std::string root_;
};

std::vector<int> first_cpus(int count) {
    std::vector<int> cpus(static_cast<std::size_t>(count));
    std::iota(cpus.begin(), cpus.end(), 0);
    return cpus;
}

TEST(CgroupVersion2, ReadsTheQuotaOfItsOwnGroup) {
    FakeRoot root;
    root.with_version_2("/app").put("/sys/fs/cgroup/app/cpu.max", "200000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 2.0);
    EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 2);
}

TEST(CgroupVersion2, AQuotaOfAFractionCountsItsWholeCores) {
    FakeRoot root;
    root.with_version_2("/app").put("/sys/fs/cgroup/app/cpu.max", "765000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 7.65);
    EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 7);
}

TEST(CgroupVersion2, LessThanOneCoreIsOneThread) {
    FakeRoot root;
    root.with_version_2("/app").put("/sys/fs/cgroup/app/cpu.max", "25000 100000\n");
    EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 1);
}

TEST(CgroupVersion2, TheSmallestQuotaOfAllParentsCounts) {
    FakeRoot root;
    root.with_version_2("/pod/container/app")
        .put("/sys/fs/cgroup/pod/container/app/cpu.max", "max 100000\n")
        .put("/sys/fs/cgroup/pod/container/cpu.max", "800000 100000\n")
        .put("/sys/fs/cgroup/pod/cpu.max", "150000 50000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 3.0);
}

TEST(CgroupVersion2, MaxIsNoLimit) {
    FakeRoot root;
    root.with_version_2("/app")
        .put("/sys/fs/cgroup/app/cpu.max", "max 100000\n")
        .put("/sys/fs/cgroup/app/memory.max", "max\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), std::nullopt);
    EXPECT_EQ(cgroup_memory_limit(root.path()), std::nullopt);
    EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 16);
}

TEST(CgroupVersion2, AGroupThatIsNotVisibleFallsBackToTheMount) {
    FakeRoot root;
    root.with_version_2("/../../elsewhere").put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 4.0);
}

TEST(CgroupVersion2, TheSmallestMemoryLimitOfAllParentsCounts) {
    FakeRoot root;
    root.with_version_2("/pod/app")
        .put("/sys/fs/cgroup/pod/app/memory.max", std::to_string(900 * kMiB) + "\n")
        .put("/sys/fs/cgroup/pod/app/memory.high", "max\n")
        .put("/sys/fs/cgroup/pod/memory.max", std::to_string(700 * kMiB) + "\n")
        .put("/sys/fs/cgroup/pod/memory.high", std::to_string(600 * kMiB) + "\n")
        .put("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");
    EXPECT_EQ(cgroup_memory_limit(root.path()), 600 * kMiB);
    EXPECT_EQ(usable_memory_bytes(root.path()), 600 * kMiB);
}

TEST(CgroupVersion1, ReadsQuotaAndMemoryThroughParents) {
    FakeRoot root;
    root.with_version_1("/pod/app", "/")
        .put("/sys/fs/cgroup/cpu,cpuacct/pod/app/cpu.cfs_quota_us", "-1\n")
        .put("/sys/fs/cgroup/cpu,cpuacct/pod/app/cpu.cfs_period_us", "100000\n")
        .put("/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "765000\n")
        .put("/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n")
        .put("/sys/fs/cgroup/memory/pod/app/memory.limit_in_bytes", "9223372036854771712\n")
        .put("/sys/fs/cgroup/memory/pod/memory.limit_in_bytes", std::to_string(512 * kMiB));
    EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 7);
    EXPECT_EQ(cgroup_memory_limit(root.path()), 512 * kMiB);
}

TEST(CgroupVersion1, AContainerSeesItsGroupAtTheMount) {
    FakeRoot root;
    root.with_version_1("/docker/abc", "/docker/abc")
        .put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n")
        .put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 3.0);
}

TEST(CgroupVersion1, AGroupBesideTheMountedOneIsNotMistakenForIt) {
    FakeRoot root;
    root.with_version_1("/docker/abcdef", "/docker/abc")
        .put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n")
        .put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
        .put("/sys/fs/cgroup/cpu,cpuacctdef/cpu.cfs_quota_us", "100000\n")
        .put("/sys/fs/cgroup/cpu,cpuacctdef/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 3.0);
}

TEST(Cgroup, MountPointsWithBlanksAreRead) {
    FakeRoot root;
    root.put("/proc/self/mountinfo", "35 22 0:30 / /my\\040groups rw - cgroup2 none rw\n")
        .put("/proc/self/cgroup", "0::/\n")
        .put("/my groups/cpu.max", "500000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 5.0);
}

TEST(Cgroup, NothingToReadIsNoLimit) {
    const FakeRoot root;
    EXPECT_EQ(cgroup_cpu_quota(root.path()), std::nullopt);
    EXPECT_EQ(cgroup_memory_limit(root.path()), std::nullopt);
    EXPECT_EQ(usable_memory_bytes(root.path()), 0U);
    EXPECT_EQ(usable_cores(first_cpus(3), root.path()), 3);
}

TEST(Cgroup, NonsenseInTheFilesIsNoLimit) {
    FakeRoot root;
    root.put("/proc/self/mountinfo",
             "- cgroup2\nx - cgroup2 y\n35 22 0:30 / /c rw - cgroup2 none rw\n")
        .put("/proc/self/cgroup", "nonsense\n1:\n0::/a\n")
        .put("/c/a/cpu.max", "0 0\n")
        .put("/c/cpu.max", "100\n")
        .put("/c/memory.max", "\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), std::nullopt);
    EXPECT_EQ(cgroup_memory_limit(root.path()), std::nullopt);
}

TEST(Cgroup, OfBothVersionsAtOnceTheSmallestLimitCounts) {
    FakeRoot root;
    root.with_version_1("/pod", "/")
        .put("/proc/self/mountinfo",
             "32 31 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
             "33 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
        .put("/proc/self/cgroup", "3:cpu:/pod\n0::/user/app\n")
        .put("/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "600000\n")
        .put("/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n")
        .put("/sys/fs/cgroup/unified/user/app/cpu.max", "max 100000\n")
        .put("/sys/fs/cgroup/unified/user/cpu.max", "450000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root.path()), 4.5);
    EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 4);
}

TEST(Cgroup, ValuesThatCannotBeAreNoLimit) {
    for (const char* value : {"lots 100000\n", "-200000 100000\n", "200000 -100000\n", "200000 0\n",
                              "nan 100000\n", "inf inf\n", "\n", "", "1 2 3\n"}) {
        FakeRoot root;
        root.with_version_2("/app").put("/sys/fs/cgroup/app/cpu.max", value);
        EXPECT_EQ(cgroup_cpu_quota(root.path()), std::nullopt) << value;
        EXPECT_EQ(usable_cores(first_cpus(16), root.path()), 16) << value;
    }
    for (const char* value : {"lots\n", "-5\n", "1e300\n", "nan\n", ""}) {
        FakeRoot root;
        root.with_version_2("/app")
            .put("/sys/fs/cgroup/app/memory.max", value)
            .put("/proc/meminfo", "MemTotal:  1024 kB\n");
        EXPECT_EQ(cgroup_memory_limit(root.path()), std::nullopt) << value;
        EXPECT_EQ(usable_memory_bytes(root.path()), kMiB) << value;
    }
}

TEST(CpuTopology, TheSmallerOfAffinityAndQuotaCounts) {
    FakeRoot root;
    root.with_version_2("/app").put("/sys/fs/cgroup/app/cpu.max", "765000 100000\n");
    for (int cpus = 1; cpus <= 16; ++cpus)
        EXPECT_EQ(usable_cores(first_cpus(cpus), root.path()), std::min(cpus, 7));
}

TEST(CpuTopology, CountsOneProcessorPerPhysicalCore) {
    FakeRoot root;
    const auto siblings = [](int cpu) {
        return "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
               "/topology/thread_siblings_list";
    };
    // Processors 0 to 3 and 4 to 7 are the two halves of four cores; 8 and 9 share one as well.
    for (int cpu = 0; cpu < 8; ++cpu) {
        const int core = cpu % 4;
        root.put(siblings(cpu), std::to_string(core) + "," + std::to_string(core + 4) + "\n");
    }
    for (const int cpu : {8, 9}) root.put(siblings(cpu), "8-9\n");
    EXPECT_EQ(one_cpu_per_core(first_cpus(10), root.path()), (std::vector<int>{0, 1, 2, 3, 8}));
    // Affinity to the second halves only, and to both halves of one core.
    EXPECT_EQ(one_cpu_per_core(std::vector<int>{5, 6, 2}, root.path()), (std::vector<int>{5, 6}));
    EXPECT_EQ(usable_cores(std::vector<int>{3, 7}, root.path()), 1);
}

TEST(CpuTopology, AQuotaAboveTheCoresChangesNothing) {
    FakeRoot root;
    root.with_version_2("/app").put("/sys/fs/cgroup/app/cpu.max", "3200000 100000\n");
    EXPECT_EQ(usable_cores(first_cpus(4), root.path()), 4);
}

TEST(CpuTopology, CountsTheMemoryNodesOfTheAllowedProcessors) {
    FakeRoot root;
    for (int cpu = 0; cpu < 8; ++cpu) {
        const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
        root.put(folder + "/node" + std::to_string(cpu / 4) + "/meminfo", "");
        root.put(folder + "/nodes/x", "").put(folder + "/node/x", "").put(folder + "/online", "1");
    }
    EXPECT_EQ(num_memory_nodes(first_cpus(8), root.path()), 2);
    EXPECT_EQ(num_memory_nodes(first_cpus(4), root.path()), 1);
    EXPECT_EQ(num_memory_nodes(std::vector<int>{3, 7}, root.path()), 2);
    EXPECT_EQ(num_memory_nodes(std::vector<int>{40}, root.path()), 1);
}

TEST(CpuTopology, ThisProcessMayUseSomething) {
    EXPECT_FALSE(allowed_cpus().empty());
    EXPECT_GT(memory_limit_bytes(), 64 * kMiB);
    EXPECT_GT(resident_bytes(), kMiB);
    EXPECT_LT(resident_bytes(), memory_limit_bytes());
}

}  // namespace
}  // namespace pagoda::base
