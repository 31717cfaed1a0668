#include "base/thread_team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/cpu_topology.h"
#include "base/wait_word.h"

namespace pagoda::base {
namespace {

std::chrono::microseconds process_cpu_time() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& time) {
        return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}

std::string name_of_this_thread() {
    std::array<char, 16> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return name.data();
}

class ThreadTeamOfSize : public testing::TestWithParam<int> {};

TEST_P(ThreadTeamOfSize, RunsAJobOnceOnEveryThread) {
    const int num_threads = GetParam();
    ThreadTeam team(num_threads);
    EXPECT_EQ(team.num_threads(), num_threads);
    for (int round = 0; round < 200; ++round) {
        std::vector<int> calls(static_cast<std::size_t>(num_threads));
        std::vector<std::thread::id> ids(calls.size());
        team.run([&](int thread) {
            ++calls[static_cast<std::size_t>(thread)];
            ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
        });
        ASSERT_EQ(calls, std::vector<int>(calls.size(), 1));
        ASSERT_EQ(ids[0], std::this_thread::get_id()) << "the caller is thread 0";
        ASSERT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
    }
}

TEST_P(ThreadTeamOfSize, HandsOutEveryItemOnce) {
    ThreadTeam team(GetParam());
    for (const std::int64_t num_items : {0, 1, 2, 3, 17, 1000, 20'000}) {
        std::vector<std::atomic<int>> times(static_cast<std::size_t>(num_items));
        team.for_each(num_items,
                      [&](std::int64_t item) { ++times[static_cast<std::size_t>(item)]; });
        for (const std::atomic<int>& count : times) ASSERT_EQ(count, 1);
    }
}

// 16 is more than this machine's processors, where nobody may spin.
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamOfSize, testing::Values(1, 2, 3, 16));

TEST(ThreadTeam, WhatAJobWroteIsThereAfterIt) {
    ThreadTeam team(3);
    std::int64_t sum = 0;
    std::vector<std::int64_t> parts(3);
    for (int round = 0; round < 1000; ++round) {
        team.run([&](int thread) { parts[static_cast<std::size_t>(thread)] += thread + 1; });
        sum += parts[0] + parts[1] + parts[2];
    }
    EXPECT_EQ(sum, 6 * 1000 * 1001 / 2);
}

TEST(ThreadTeam, AreNamedAfterTheirWork) {
    ThreadTeam team(2);
    std::string name;
    team.run([&](int thread) {
        if (thread == 1) name = name_of_this_thread();
    });
    EXPECT_EQ(name, "pagoda-compute");
}

TEST(ThreadTeam, LeavesTheCallersAffinityAlone) {
    const int before = ThreadTeam::allowed_cores();
    ThreadTeam team(before);
    team.run([](int) {});
    EXPECT_EQ(ThreadTeam::allowed_cores(), before);
}

// What each thread of a team may run on.
std::vector<std::vector<int>> cpus_of_threads(ThreadTeam& team) {
    std::vector<std::vector<int>> cpus(static_cast<std::size_t>(team.num_threads()));
    team.run([&](int thread) { cpus[static_cast<std::size_t>(thread)] = allowed_cpus(); });
    return cpus;
}

TEST(ThreadTeam, ThatFillsTheMachineHasAProcessorForEachThread) {
    const std::vector<int> all = allowed_cpus();
    ThreadTeam team(static_cast<int>(all.size()));
    const auto cpus = cpus_of_threads(team);
    EXPECT_EQ(cpus[0], all);
    if (!team.is_bound()) GTEST_SKIP() << "one processor, or a quota below them";
    std::set<int> taken;
    for (std::size_t thread = 1; thread < cpus.size(); ++thread) {
        ASSERT_EQ(cpus[thread].size(), 1U);
        EXPECT_TRUE(taken.insert(cpus[thread].front()).second) << "two threads on one processor";
    }
    EXPECT_FALSE(taken.contains(all.front()));  // is left to the caller
}

TEST(ThreadTeam, OfMoreThreadsThanProcessorsMayRunAnywhere) {
    const std::vector<int> all = allowed_cpus();
    for (const std::size_t more : {std::size_t{1}, all.size() + 15}) {
        ThreadTeam team(static_cast<int>(all.size() + more));
        EXPECT_FALSE(team.is_bound());
        for (const std::vector<int>& cpus : cpus_of_threads(team)) EXPECT_EQ(cpus, all);
    }
}

TEST(ThreadTeam, AnIdleTeamUsesNoProcessor) {
    ThreadTeam team(4);
    team.run([](int) {});
    const auto before = process_cpu_time();
    // Time must pass here for there to be idleness to measure; nothing is synchronised by it.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    // One spinning thread would use 300 ms.
    EXPECT_LT(process_cpu_time() - before, std::chrono::milliseconds(60));
}

TEST(ThreadTeam, TeamsComeAndGo) {
    for (int round = 0; round < 50; ++round) {
        ThreadTeam team(3);
        if (round % 2 == 0) team.run([](int) {});
    }
}

TEST(ThreadTeam, AllowsAtLeastOneCoreAndNotMoreThanThereAre) {
    EXPECT_GE(ThreadTeam::allowed_cores(), 1);
    EXPECT_LE(ThreadTeam::allowed_cores(),
              std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

TEST(ThreadTeamDeathTest, AJobInsideAJobIsABrokenInvariant) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(
        {
            ThreadTeam team(2);
            team.run([&team](int thread) {
                if (thread == 1) team.run([](int) {});
            });
        },
        "no job from inside a job");
    EXPECT_DEATH(
        {
            ThreadTeam team(1);
            team.run([&team](int) { team.run([](int) {}); });
        },
        "no job from inside a job");
}

TEST(ThreadTeamDeathTest, MisuseIsABrokenInvariant) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_DEATH(ThreadTeam(0), "at least one thread");
}

// clang tells by features what g++ tells by macros.
#if defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// In a process of its own, whose address space holds few stacks of threads.
void start_more_than_fit() {
    rlimit limit{};
    limit.rlim_cur = limit.rlim_max = std::size_t{1} << 30;
    setrlimit(RLIMIT_AS, &limit);
    const auto team = ThreadTeam::start(1000);
    const bool is_refused = !team && team.error().param == "threads" &&
                            team.error().message.find("threads is 1000, the system allows ") == 0;
    const auto small = ThreadTeam::start(2);  // those that were started have ended
    std::_Exit(is_refused && small.ok() ? 0 : 1);
}

TEST(ThreadTeamDeathTest, MoreThreadsThanTheSystemAllowsAreAnErrorThatNamesBoth) {
    if (kIsSanitized) GTEST_SKIP() << "sanitizers need the address space";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(start_more_than_fit(), testing::ExitedWithCode(0), "");
}

// Two threads pass a turn to each other; a lost wake-up would leave both asleep for ever.
TEST(WaitWord, NoWakeUpIsLost) {
    for (const std::chrono::nanoseconds spin :
         {std::chrono::nanoseconds(0), std::chrono::nanoseconds(500)}) {
        WaitWord ping;
        WaitWord pong;
        constexpr std::uint32_t kTurns = 5'000;
        std::thread other([&] {
            for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
                ping.wait_while(turn, spin);
                pong.advance();
            }
        });
        for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
            ping.advance();
            pong.wait_while(turn, spin);
        }
        other.join();
        EXPECT_EQ(pong.value(), kTurns);
    }
}

}  // namespace
}  // namespace pagoda::base
