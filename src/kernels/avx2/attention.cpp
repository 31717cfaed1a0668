#include "kernels/avx2/float_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/attention_inl.h"

namespace pagoda::kernels::avx2 {

std::size_t attention_scratch_floats(std::int64_t rows, std::int64_t group, std::int64_t head_dim) {
    return scratch_floats<FloatVec>(rows * group, head_dim);
}

void attention(const AttentionArgs& args) noexcept {
    attend<FloatVec>(args);
}

void attention_merge(const AttentionMergeArgs& args) noexcept {
    merge_partials<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx2
