#pragma once
// What stands between the model's logits and the draw. Two lists, applied top to bottom; to add
// one, write its file and its row in list.cpp. All are pure functions of their arguments,
// thread-safe.
//
//   logits --> edits (logit bias, penalties, min_tokens) --> greedy: the largest
//                     |
//                     +--> temperature --> filters (top_k, typical_p, top_p, min_p) --> draw
//
// Edits touch single tokens and run for greedy choices too. Temperature comes before the filters,
// as users of vLLM and Hugging Face expect (llama.cpp's own order has it last); each filter sees
// the distribution that the one before it left, renormalised.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "decode/candidates.h"
#include "decode/sampling_params.h"
#include "decode/token_history.h"

namespace pagoda::decode {

struct EditContext {
    const SamplingParams& params;
    const TokenHistory& history;
    std::span<const base::TokenId> held_back;  // what min_tokens forbids
    std::int64_t num_outputs = 0;
};

// Changes the logits of single tokens. logits: [vocab_size]
struct LogitEdit {
    std::string_view name;
    bool (*is_wanted)(const EditContext& context);
    void (*apply)(const EditContext& context, std::span<float> logits);
};

// Removes candidates, never all of them.
struct CandidateFilter {
    std::string_view name;
    bool (*is_wanted)(const SamplingParams& params);
    void (*apply)(const SamplingParams& params, Candidates& candidates);
};

[[nodiscard]] std::span<const LogitEdit> logit_edits();
// Values are logits; temperature is still to come and would not change the choice.
[[nodiscard]] std::span<const CandidateFilter> logit_filters();
// Values are weights: exp((logit - peak) / temperature).
[[nodiscard]] std::span<const CandidateFilter> weight_filters();

// The rows' entries, one file each.
[[nodiscard]] LogitEdit logit_bias_edit();
[[nodiscard]] LogitEdit penalties_edit();
[[nodiscard]] LogitEdit min_tokens_edit();
[[nodiscard]] CandidateFilter top_k_filter();
[[nodiscard]] CandidateFilter typical_p_filter();
[[nodiscard]] CandidateFilter top_p_filter();
[[nodiscard]] CandidateFilter min_p_filter();

}  // namespace pagoda::decode
