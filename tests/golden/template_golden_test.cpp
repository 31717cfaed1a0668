// The chat templates inside the reference models' files give the reference prompts.

#include <string>

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "tests/golden/tiny_model.h"
#include "text/chat_template.h"

namespace pagoda::golden {
namespace {

std::string token_text(const text::TokenizerSpec& spec, const std::optional<base::TokenId>& id) {
    return id ? spec.tokens[static_cast<std::size_t>(*id)] : std::string();
}

class GoldenTemplate : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTemplate, GivesTheReferencePrompts) {
    const std::string folder = data_folder();
    const auto checkpoint = formats::open_checkpoint(folder + "/gguf/" + GetParam() + ".gguf");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    ASSERT_TRUE(checkpoint->tokenizer.has_value());
    const text::TokenizerSpec& spec = *checkpoint->tokenizer;
    const auto compiled = text::ChatTemplate::compile(spec.chat_template);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    const base::Json golden = read_json(folder + "/models/" + GetParam() + "/golden.json");
    ASSERT_FALSE(golden.find("chat")->as_array().empty());
    for (const base::Json& chat : golden.find("chat")->as_array()) {
        text::ChatInput input;
        input.messages = *chat.find("messages");
        input.add_generation_prompt = chat.find("add_generation_prompt")->as_bool();
        input.bos_token = token_text(spec, spec.bos);
        input.eos_token = token_text(spec, spec.eos);
        const auto text = compiled.value()->render(input);
        ASSERT_TRUE(text.ok()) << text.error().message;
        EXPECT_EQ(text.value(), chat.find("text")->as_string());
    }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTemplate,
                         testing::Values("cohere2", "deepseek-v3", "falcon", "gemma2", "gemma3",
                                         "gpt-oss", "llama", "llama-tied", "mistral-full",
                                         "mixtral", "phi3", "qwen2", "qwen3", "qwen3-moe",
                                         "starcoder2"),
                         [](const auto& model) {
                             std::string name = model.param;
                             for (char& c : name) c = c == '-' ? '_' : c;
                             return name;
                         });

}  // namespace
}  // namespace pagoda::golden
