#include <utility>

#include "serve/api/chat_prompt.h"
#include "serve/api/generation.h"
#include "serve/api/prompt_tokens.h"
#include "serve/api/request_body.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

// Chat prompts are exactly what the template says: no token is added at either end.
base::Result<GenerationPrompt> make_prompt(const ApiContext& context, ChatFields chat,
                                           const GenerationFields& fields) {
    const auto text = render_prompt(context, std::move(chat));
    if (!text) return text.error();
    auto tokens = prompt_tokens(context, *text, text::EncodeOptions::SpecialEnds::kNone);
    if (!tokens) return tokens.error();
    if (tokens->empty())
        return base::invalid("the chat template made an empty prompt of these messages",
                             "messages");
    const auto max_tokens =
        engine::resolve_max_tokens(fields.max_tokens, static_cast<std::int64_t>(tokens->size()),
                                   context.engine->max_model_len());
    if (!max_tokens) return max_tokens.error();
    return GenerationPrompt{.tokens = std::move(tokens).value(), .max_tokens = *max_tokens};
}

}  // namespace

void chat_completions(const ApiContext& context, http::Request&& request, Writer writer) {
    FieldReader reader = read_body(request);
    GenerationFields fields = read_generation_fields(reader, context, /*is_chat=*/true);
    ChatFields chat = read_chat_fields(reader, context);
    if (const auto good = check_fields(context, reader, fields.model); !good)
        return writer->send(to_response(good.error()));
    auto prompt = make_prompt(context, std::move(chat), fields);
    if (!prompt) return writer->send(to_response(prompt.error()));
    std::vector<GenerationPrompt> prompts;
    prompts.push_back(std::move(prompt).value());
    Generation::start(context, chat_shape(),
                      {.fields = std::move(fields),
                       .prompts = std::move(prompts),
                       .request_id = request.id,
                       .client = client_of(request),
                       .ignored_fields = reader.unread(),
                       .writer = std::move(writer)});
}

}  // namespace pagoda::api
