#pragma once
// The machine's roof: what the chosen variant's densest loops reach here and now, so that kernels
// are judged as a share of it. Takes about a second. Engine thread only (runs on the team).

#include <cstddef>

#include "kernels/ops/device_context.h"
#include "tensor/aligned_buffer.h"

namespace pagoda::kernels {

// Rates in 10^9 per second; a multiplication and an addition are two operations.
struct Roof {
    double int8_gops = 0;
    double bf16_gflops = 0;  // 0: no such instruction
    double f32_gflops = 0;
    double read_gb_s = 0;  // from memory, not from a cache
};

// Parts of the roof one by one, so that each can be measured right beside what it judges. Of all
// threads of the team together, or of one alone.
class RoofMeter {
  public:
    RoofMeter(const DeviceContext& device, bool all_threads)
        : device_(device), all_threads_(all_threads) {}

    // Each the best of `tries`, of about 20 ms or one reading of roof_read_bytes().
    [[nodiscard]] double int8_gops(int tries) const;
    [[nodiscard]] double f32_gflops(int tries) const;
    [[nodiscard]] double bf16_gflops(int tries) const;  // 0: no such instruction
    [[nodiscard]] double read_gb_s(int tries);          // keeps what it reads until its own end

  private:
    const DeviceContext& device_;
    const bool all_threads_;
    tensor::AlignedBuffer read_;
};

// The clock of the roof, in seconds, for whatever is judged by it: of one thread its CPU time,
// which other programs on the machine do not lengthen; of several the wall's.
[[nodiscard]] double roof_clock(const DeviceContext& device, bool all_threads);

// The whole of it, with all threads or one.
[[nodiscard]] Roof measure_roof(const DeviceContext& device, bool all_threads);

// Bytes that measure_roof reads: four times the largest cache, within 64 MiB and 1 GiB and a
// quarter of the free memory.
[[nodiscard]] std::size_t roof_read_bytes();

}  // namespace pagoda::kernels
