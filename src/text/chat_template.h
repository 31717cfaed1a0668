#pragma once
// ChatTemplate: a model's Jinja chat templates, compiled once: the main one, and those with a name
// of their own ("tool_use"). Immutable after creation and thread-safe; each render has its own
// state and limits.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace pagoda::text {

class Tokenizer;

struct RenderLimits {
    std::int64_t max_steps = 20'000'000;       // evaluated nodes
    std::size_t max_output_bytes = 64U << 20;  // text, intermediate strings included
    int max_depth = 200;                       // nested calls, macros, expressions
    std::chrono::milliseconds max_time{2000};  // processor time of the rendering thread
};

struct ChatInput {
    base::Json messages;   // array, OpenAI shape
    base::Json tools;      // array or null
    base::Json documents;  // array or null
    bool add_generation_prompt = true;
    bool continue_final_message = false;  // the prompt ends right after the last message's text
    base::Json kwargs;                    // object or null: chat_template_kwargs, further variables
    std::string bos_token, eos_token;     // text of these tokens, empty when there is none
    std::string date_now;  // what strftime_now formats: "YYYY-MM-DDTHH:MM:SS"; empty: now
    // One of the model's named templates. Empty: "tool_use" for tools where there is one, else the
    // main template.
    std::string template_name;

    // Fills bos_token and eos_token.
    void use_tokens_of(const Tokenizer& tokenizer);
};

// A moment in local time, as ChatInput::date_now wants it.
[[nodiscard]] std::string local_time(std::int64_t unix_seconds);

class ChatTemplate {
  public:
    // Errors name line and column, and the feature when it is one that is not supported.
    [[nodiscard]] static base::Result<std::unique_ptr<ChatTemplate>> compile(
        std::string_view source);
    // As TokenizerSpec holds them; `main` may be empty where others are there. A named one that
    // does not compile fails when it is chosen: most models are used without it.
    using NamedSources = std::vector<std::pair<std::string, std::string>>;
    [[nodiscard]] static base::Result<std::unique_ptr<ChatTemplate>> compile(
        std::string_view main, const NamedSources& named);
    ~ChatTemplate();

    // Whether ChatInput::template_name may be this; "default" is the main one.
    [[nodiscard]] bool has(std::string_view name) const;

    // Tool-call arguments given as a JSON string are decoded where the template wants a mapping;
    // content given as parts is joined where it wants a string. A template that raises gives
    // kInvalidArgument with its own message; a limit passed gives kResourceExhausted.
    [[nodiscard]] base::Result<std::string> render(ChatInput input,
                                                   const RenderLimits& limits = {}) const;

    // The main template over any variables (object), without the treatment of messages above.
    [[nodiscard]] base::Result<std::string> render_raw(const base::Json& variables,
                                                       const RenderLimits& limits = {}) const;

  private:
    struct Impl;
    struct Compiled;
    [[nodiscard]] base::Result<const Compiled*> choose(const ChatInput& input) const;
    explicit ChatTemplate(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::text
