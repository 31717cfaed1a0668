#pragma once
// KernelBench: one kernel at a time against the roof of the same moment. Weights and KV are more
// than the caches hold and take turns, so that they come from memory as in a model; the machine's
// peaks are measured beside every run, so that a neighbour on the host slows both. One thread.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops/device_context.h"
#include "kernels/ops/linear.h"
#include "kernels/roof.h"
#include "matrix_work.h"
#include "model_shapes.h"
#include "tensor/dtype.h"

namespace pagoda::apps {

struct KernelRow {
    std::string kernel;  // "linear", "attention"
    std::string type;    // "Q4_0", "KV bf16"
    MatrixShape shape;   // of an attention: heads x head size
    std::int64_t rows = 0;
    std::int64_t depth = 0;  // positions before the rows' last, for attention
    // Medians of the runs.
    double gmac_s = 0, gb_s = 0;
    double peak_share = 0;  // of the peak of its arithmetic: int8 or f32
    double read_share = 0;  // of the read bandwidth, for the bytes of weights or KV
    // Of the nearer of the two roofs, and what the runs spread over.
    double share = 0, least_share = 0, most_share = 0;
};

// What measuring one layer takes at most: the weight as a file has it, its packed copies, and
// max_rows rows in and out.
[[nodiscard]] std::uint64_t linear_bytes(const kernels::Kernels& kernels, tensor::DType dtype,
                                         MatrixShape shape, std::int64_t max_rows);

class KernelBench {
  public:
    // REQUIRES: repeat >= 1. device outlives the bench.
    KernelBench(const kernels::DeviceContext& device, int repeat);

    // One layer of that type with each number of rows.
    [[nodiscard]] std::vector<KernelRow> linear(tensor::DType dtype, MatrixShape shape,
                                                const std::vector<std::int64_t>& rows);
    // The heads of a 1B model: a prefill of 4096 tokens, of which the masked half is not counted,
    // and one row at depth 8192.
    [[nodiscard]] std::vector<KernelRow> attention(kernels::KvDType dtype);

  private:
    struct Work {
        double macs = 0;
        double bytes = 0;
        Arithmetic arithmetic = Arithmetic::kF32;
    };
    [[nodiscard]] double peak_of(Arithmetic arithmetic) const;
    template <class Call>
    void measure(const Work& work, const Call& call, KernelRow& row);

    const kernels::DeviceContext& device_;
    const int repeat_;
    kernels::RoofMeter meter_;
};

}  // namespace pagoda::apps
