#pragma once
// From chat messages to prompt text: what chat completions, /apply-template and /tokenize share.

#include <string>

#include "base/result.h"
#include "serve/api/api_context.h"
#include "serve/api/field_reader.h"
#include "text/chat_template.h"

namespace pagoda::api {

struct ChatFields {
    text::ChatInput input;
    // Of the request, where that is trusted: Jinja, or the name of one of the model's. Empty: the
    // model's own choice.
    std::string own_template;
};

// Reads messages and template options, and takes the messages out of the body. Errors stay in the
// reader.
[[nodiscard]] ChatFields read_chat_fields(FieldReader& reader, const ApiContext& context);

// The prompt's text. A template that raises is the client's error, with its own message.
[[nodiscard]] base::Result<std::string> render_prompt(const ApiContext& context, ChatFields fields);

}  // namespace pagoda::api
