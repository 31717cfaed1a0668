#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "base/utf8.h"
#include "serve/api/generation.h"
#include "serve/api/prompt_tokens.h"
#include "serve/api/request_body.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

using base::Json;

constexpr std::size_t kMaxPrompts = 128;

base::Result<std::vector<base::TokenId>> read_ids(const Json& list, std::int64_t vocab_size) {
    std::vector<base::TokenId> ids;
    ids.reserve(list.as_array().size());
    for (const Json& id : list.as_array()) {
        if (!id.is_int() || id.as_int() < 0 || id.as_int() >= vocab_size)
            return base::invalid(fmt::format("prompt has the token id {}, must be an integer from "
                                             "0 to {}",
                                             brief(id), vocab_size - 1),
                                 "prompt");
        ids.push_back(static_cast<base::TokenId>(id.as_int()));
    }
    return ids;
}

base::Result<std::vector<base::TokenId>> read_prompt(const ApiContext& context, const Json& prompt,
                                                     bool add_special) {
    std::vector<base::TokenId> ids;
    if (prompt.is_string()) {
        using Ends = text::EncodeOptions::SpecialEnds;
        auto encoded =
            prompt_tokens(context, prompt.as_string(), add_special ? Ends::kModel : Ends::kNone);
        if (!encoded) return encoded.error();
        ids = std::move(encoded).value();
    } else if (prompt.is_array()) {
        auto read = read_ids(prompt, context.engine->vocab_size());
        if (!read) return read.error();
        ids = std::move(read).value();
    } else {
        return base::invalid(
            "prompt must be a string, an array of token ids, or an array of "
            "either, got " +
                brief(prompt),
            "prompt");
    }
    if (ids.empty()) return base::invalid("prompt is empty", "prompt");
    return ids;
}

// One prompt, or a list of them: a list of integers is one prompt.
base::Result<std::vector<const Json*>> split_prompts(const Json* prompt) {
    if (prompt == nullptr) return base::invalid("prompt is missing", "prompt");
    const bool is_list = prompt->is_array() && !prompt->as_array().empty() &&
                         !prompt->as_array().front().is_number();
    if (!is_list) return std::vector<const Json*>{prompt};
    if (prompt->as_array().size() > kMaxPrompts)
        return base::invalid(fmt::format("prompt has {} entries, the most is {}",
                                         prompt->as_array().size(), kMaxPrompts),
                             "prompt");
    std::vector<const Json*> list;
    for (const Json& entry : prompt->as_array()) list.push_back(&entry);
    return list;
}

base::Result<std::vector<GenerationPrompt>> make_prompts(const ApiContext& context,
                                                         const GenerationFields& fields,
                                                         const Json* prompts_field,
                                                         bool add_special) {
    const auto list = split_prompts(prompts_field);
    if (!list) return list.error();
    std::vector<GenerationPrompt> prompts;
    for (const Json* entry : *list) {
        auto tokens = read_prompt(context, *entry, add_special);
        if (!tokens) return tokens.error();
        GenerationPrompt prompt{.tokens = std::move(tokens).value()};
        const auto max_tokens = engine::resolve_max_tokens(
            fields.max_tokens, std::ssize(prompt.tokens), context.engine->max_model_len());
        if (!max_tokens) return max_tokens.error();
        prompt.max_tokens = *max_tokens;
        if (fields.echo)
            prompt.echo = entry->is_string() ? entry->as_string()
                                             : base::replace_invalid_utf8(context.tokenizer->decode(
                                                   prompt.tokens, fields.skip_special_tokens));
        prompts.push_back(std::move(prompt));
    }
    return prompts;
}

}  // namespace

void completions(const ApiContext& context, http::Request&& request, Writer writer) {
    FieldReader reader = read_body(request);
    GenerationFields fields = read_generation_fields(reader, context, /*is_chat=*/false);
    fields.echo = reader.boolean("echo", false);
    const Json* prompt = reader.any("prompt");
    const bool add_special = reader.boolean("add_special_tokens", true);
    const Json* suffix = reader.any("suffix");
    reader.refuse_unless("suffix", suffix != nullptr && *suffix == Json(""),
                         "text is only continued");
    if (fields.max_tokens == 0 && !fields.echo && !fields.prompt_logprobs)
        reader.fail(base::invalid(
            "max_tokens is 0, must be at least 1 (0 only with echo or prompt_logprobs)",
            "max_tokens"));
    // What is echoed has its log-probabilities, too.
    if (fields.echo && fields.sampling.logprobs)
        fields.sampling.prompt_logprobs =
            std::max(fields.prompt_logprobs.value_or(0), *fields.sampling.logprobs);
    if (const auto good = check_fields(context, reader, fields.model); !good)
        return writer->send(to_response(good.error()));
    auto prompts = make_prompts(context, fields, prompt, add_special);
    if (!prompts) return writer->send(to_response(prompts.error()));
    Generation::start(context, completion_shape(),
                      {.fields = std::move(fields),
                       .prompts = std::move(prompts).value(),
                       .request_id = request.id,
                       .client = client_of(request),
                       .ignored_fields = reader.unread(),
                       .writer = std::move(writer)});
}

}  // namespace pagoda::api
