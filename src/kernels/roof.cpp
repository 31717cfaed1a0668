#include "kernels/roof.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <span>
#include <string>

#include <unistd.h>

#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

bool is_one_thread(const DeviceContext& device, bool all_threads) {
    return !all_threads || device.team->num_threads() == 1;
}

constexpr int kTries = 9;                // the best counts: other programs can only take away
constexpr double kTryNanoseconds = 2e7;  // of a loop, about

// Runs job(thread, threads) on one thread or all, and returns the seconds until all are done.
template <class Job>
double seconds_of(const DeviceContext& device, bool all_threads, const Job& job) {
    const double begin = roof_clock(device, all_threads);
    if (is_one_thread(device, all_threads))
        job(0, 1);
    else
        device.team->run([&](int thread) { job(thread, device.team->num_threads()); });
    return roof_clock(device, all_threads) - begin;
}

using PeakLoop = double (*)(std::int64_t rounds) noexcept;

// 10^9 operations per second.
double peak_rate(const DeviceContext& device, bool all_threads, PeakLoop loop, int tries) {
    constexpr std::int64_t kProbeRounds = 20'000;
    double operations = 0;
    const double probe =
        seconds_of(device, false, [&](int, int) { operations = loop(kProbeRounds); });
    if (operations <= 0) return 0;
    const auto rounds = static_cast<std::int64_t>(
        std::clamp(kTryNanoseconds * 1e-9 / std::max(probe, 1e-7), 1.0, 1e6) * kProbeRounds);
    const int threads = all_threads ? device.team->num_threads() : 1;
    double best = 0;
    for (int attempt = 0; attempt < tries; ++attempt) {
        const double seconds =
            seconds_of(device, all_threads, [&](int, int) { static_cast<void>(loop(rounds)); });
        const double done = operations / kProbeRounds * static_cast<double>(rounds) * threads;
        best = std::max(best, done / seconds * 1e-9);
    }
    return best;
}

// "32K", "260M"; 0 when the file is missing or says something else.
std::size_t cache_bytes(const std::string& path) {
    std::ifstream file(path);
    std::size_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit)) return 0;
    return unit == 'M' ? size << 20U : size << 10U;
}

}  // namespace

std::size_t roof_read_bytes() {
    constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
    std::size_t largest = 0;
    for (int index = 0; index < 8; ++index)
        largest = std::max(largest, cache_bytes("/sys/devices/system/cpu/cpu0/cache/index" +
                                                std::to_string(index) + "/size"));
    const std::size_t free = static_cast<std::size_t>(std::max(0L, sysconf(_SC_AVPHYS_PAGES))) *
                             static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t most = std::clamp(free / 4, 64 * kMebibyte, 1024 * kMebibyte);
    return std::clamp(4 * largest, 64 * kMebibyte, most) / 4096 * 4096;
}

double roof_clock(const DeviceContext& device, bool all_threads) {
    timespec now{};
    clock_gettime(is_one_thread(device, all_threads) ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                  &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double RoofMeter::int8_gops(int tries) const {
    return peak_rate(device_, all_threads_, device_.kernels->peak_int8, tries);
}

double RoofMeter::f32_gflops(int tries) const {
    return peak_rate(device_, all_threads_, device_.kernels->peak_f32, tries);
}

double RoofMeter::bf16_gflops(int tries) const {
    if (!contains(detect_cpu_features(), CpuFeature::kAvx512Bf16)) return 0;
    return peak_rate(device_, all_threads_, device_.kernels->peak_bf16, tries);
}

double RoofMeter::read_gb_s(int tries) {
    const auto slice = [this](int thread, int threads) {
        const std::size_t size = read_.bytes() / static_cast<std::size_t>(threads) / 512 * 512;
        return std::span(read_.data() + static_cast<std::size_t>(thread) * size, size);
    };
    if (read_.bytes() == 0) {
        read_ = tensor::AlignedBuffer(roof_read_bytes());
        // Touched by whoever reads it later, and filled: untouched pages are all one page of zeros.
        seconds_of(device_, all_threads_, [&](int thread, int threads) {
            std::ranges::fill(slice(thread, threads), std::byte{1});
        });
    }
    double best = 0;
    for (int attempt = 0; attempt < tries; ++attempt) {
        const double seconds = seconds_of(device_, all_threads_, [&](int thread, int threads) {
            const std::span<std::byte> own = slice(thread, threads);
            volatile std::uint64_t sink = device_.kernels->read_memory(own.data(), own.size());
            static_cast<void>(sink);
        });
        best = std::max(best, static_cast<double>(read_.bytes()) / seconds * 1e-9);
    }
    return best;
}

Roof measure_roof(const DeviceContext& device, bool all_threads) {
    RoofMeter meter(device, all_threads);
    return {.int8_gops = meter.int8_gops(kTries),
            .bf16_gflops = meter.bf16_gflops(kTries),
            .f32_gflops = meter.f32_gflops(kTries),
            .read_gb_s = meter.read_gb_s(kTries)};
}

}  // namespace pagoda::kernels
