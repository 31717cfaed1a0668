#pragma once
// The fields that chat and text completions share: sampling, lengths, stops, streaming. Both
// OpenAI's and the extensions that users of vLLM send.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/sampling_params.h"
#include "serve/api/api_context.h"
#include "serve/api/field_reader.h"

namespace pagoda::api {

struct GenerationFields {
    std::optional<std::string> model;
    // max_tokens is set once the prompt's length is known; of prompt_logprobs it may have more than
    // the request wants to see.
    decode::SamplingParams sampling;
    std::optional<int> prompt_logprobs;
    std::optional<std::int64_t> max_tokens;
    std::int64_t num_choices = 1;
    std::vector<std::string> stop;
    bool include_stop_string = false;
    bool skip_special_tokens = true;
    bool echo = false;  // completions alone: the prompt's text goes before the answer
    bool stream = false;
    bool include_usage = false;           // a last chunk with the usage
    bool continuous_usage_stats = false;  // usage in every chunk
    std::int32_t priority = 0;
    std::string cache_salt;  // beside the client: who has another one shares no KV
};

// Reads them; what is known and not supported is refused by name. Errors are left in the reader.
// Kinds of values are checked here, ranges and sizes by the engine, which names the fields alike.
// `is_chat` decides the names of lengths and log-probabilities.
[[nodiscard]] GenerationFields read_generation_fields(FieldReader& reader,
                                                      const ApiContext& context, bool is_chat);

}  // namespace pagoda::api
