#include <array>

#include "decode/processors/processors.h"

namespace pagoda::decode {

std::span<const LogitEdit> logit_edits() {
    static const std::array kEdits{logit_bias_edit(), penalties_edit(), min_tokens_edit()};
    return kEdits;
}

std::span<const CandidateFilter> logit_filters() {
    static const std::array kFilters{top_k_filter()};
    return kFilters;
}

std::span<const CandidateFilter> weight_filters() {
    static const std::array kFilters{typical_p_filter(), top_p_filter(), min_p_filter()};
    return kFilters;
}

}  // namespace pagoda::decode
