#pragma once
// What shape of messages a chat template wants. Clients send OpenAI's shape; templates differ in
// whether they take tool-call arguments as text or as a mapping, content as text or as parts, and
// absent content. Found out once, by rendering small conversations, and applied to each request.
// Free functions over immutable values; thread-safe.

#include "base/json.h"
#include "base/result.h"
#include "text/jinja/program.h"

namespace pagoda::text {

struct MessageShape {
    enum class Arguments {
        kAsGiven,  // the template copes with either, or prints no tool calls
        kMapping,
        kText,
    };
    Arguments arguments = Arguments::kAsGiven;
    bool takes_text = true;             // content as a string
    bool takes_parts = false;           // content as a list of parts
    bool takes_null_content = true;     // prints no "None" and does not fail
    bool takes_missing_content = true;  // likewise
};

[[nodiscard]] MessageShape probe_message_shape(const jinja::Program& program);

// Messages as that template wants them: arguments decoded or encoded once, text parts joined by
// newlines or text wrapped as one part, absent content made empty. Errors name the message at
// fault.
[[nodiscard]] base::Result<base::Json> fit_messages(base::Json messages, const MessageShape& shape);

}  // namespace pagoda::text
