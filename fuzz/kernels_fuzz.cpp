// Any bytes are a weight and activations: every variant must give the bits of ref/, a row the same
// bits alone and among others, and nothing may read or write beyond its buffers.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/conformance.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"

namespace {

using pagoda::tensor::DType;
namespace kernels = pagoda::kernels;

// Takes what it is asked for off the front of the input; zeros when there is no more.
class Bytes {
  public:
    explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}
    std::uint8_t number() { return data_.empty() ? std::uint8_t{0} : take(1)[0]; }
    void fill(void* out, std::size_t size) {
        const std::span<const std::uint8_t> part = take(std::min(size, data_.size()));
        std::memset(out, 0, size);
        if (!part.empty()) std::memcpy(out, part.data(), part.size());
    }

  private:
    std::span<const std::uint8_t> take(std::size_t size) {
        const auto part = data_.first(size);
        data_ = data_.subspan(size);
        return part;
    }
    std::span<const std::uint8_t> data_;
};

struct Case {
    DType dtype;
    std::int64_t out, in, rows;
    kernels::LinearSum sum;
    std::vector<std::byte> weight;
    std::vector<float> x;
};

Case read_case(Bytes& bytes) {
    Case test{};
    test.dtype = kernels::kWeightTypes[bytes.number() % std::size(kernels::kWeightTypes)];
    const pagoda::tensor::DTypeInfo& type = pagoda::tensor::info(test.dtype);
    test.out = 1 + bytes.number() % 40;
    test.in = (1 + bytes.number() % 3) * type.block_values;
    if (!type.is_quantized) test.in = 1 + bytes.number() % 70;
    test.rows = 1 + bytes.number() % 9;
    const std::vector<kernels::LinearSum> sums =
        kernels::sums_for(kernels::all_variants().front(), test.dtype, test.in);
    test.sum = bytes.number() % 4 != 0 ? sums.back() : sums.front();
    test.x.resize(static_cast<std::size_t>(test.rows * test.in));
    bytes.fill(test.x.data(), test.x.size() * sizeof(float));
    test.weight.resize(static_cast<std::size_t>(test.out) *
                       pagoda::tensor::row_bytes(test.dtype, test.in));
    bytes.fill(test.weight.data(), test.weight.size());
    return test;
}

std::vector<float> run(const kernels::Kernels& variant, const Case& test, std::int64_t first,
                       std::int64_t rows) {
    std::vector<float> out(static_cast<std::size_t>(rows * test.out));
    kernels::LinearProbe(variant, test.dtype, test.out, test.in, test.weight)
        .run(test.x.data() + first * test.in, rows, out.data(), {.sum = test.sum});
    return out;
}

void expect_same(const std::vector<float>& a, std::span<const float> b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!kernels::same_bits(a[i], b[i])) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes({data, size});
    const Case test = read_case(bytes);
    const kernels::CpuFeature features = kernels::detect_cpu_features();
    const std::vector<float> expected = run(kernels::all_variants().front(), test, 0, test.rows);
    for (const kernels::Kernels& variant : kernels::all_variants()) {
        if (!kernels::contains(features, variant.required)) continue;
        if (test.sum == kernels::LinearSum::kBf16 && variant.linear_bf16 == nullptr) continue;
        expect_same(run(variant, test, 0, test.rows), expected);
        const std::int64_t last = test.rows - 1;
        expect_same(run(variant, test, last, 1),
                    std::span(expected).subspan(static_cast<std::size_t>(last * test.out)));
    }
    return 0;
}
