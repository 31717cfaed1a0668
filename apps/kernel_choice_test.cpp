#include "kernel_choice.h"

#include <gtest/gtest.h>

namespace pagoda::apps {
namespace {

using kernels::CpuFeature;

const kernels::Kernels& variant(std::string_view name) {
    return **kernels::choose_variant(name, static_cast<CpuFeature>(~0U));
}

TEST(SlowKernels, AreNamedOnACpuThatHasNoBetter) {
    const auto warning = slow_kernels_warning(variant("ref"), CpuFeature::kNone);
    ASSERT_TRUE(warning.has_value());
    EXPECT_NE(warning->find("AVX2, FMA, F16C and BMI2"), std::string::npos) << *warning;
}

#if defined(__x86_64__)
TEST(SlowKernels, ThatWereAskedForAreNothingToSay) {
    EXPECT_FALSE(slow_kernels_warning(variant("ref"), CpuFeature::kAvx2));
    EXPECT_FALSE(slow_kernels_warning(variant("avx2"), CpuFeature::kAvx2));
}
#endif

}  // namespace
}  // namespace pagoda::apps
