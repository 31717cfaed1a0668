// The tokenizer of every golden GGUF against the reference's ids: strings, chats (special tokens
// recognised) and prompts (BOS where the model asks for it), and the decode of every string.

#include <filesystem>

#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "tests/golden/tiny_model.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace pagoda::golden {
namespace {

namespace fs = std::filesystem;
using Ends = text::EncodeOptions::SpecialEnds;

std::unique_ptr<text::Tokenizer> tokenizer_of(const std::string& path) {
    auto checkpoint = formats::open_checkpoint(path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_TRUE(checkpoint->tokenizer.has_value()) << path;
    auto tokenizer = text::Tokenizer::create(std::move(*checkpoint->tokenizer));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return std::move(tokenizer).value();
}

// gguf_ids stands where a reader of GGUF metadata must get other ids than one of tokenizer.json.
std::vector<base::TokenId> expected_ids(const base::Json& entry) {
    const base::Json* ids = entry.find("gguf_ids");
    return token_ids(ids != nullptr ? *ids : *entry.find("ids"));
}

void expect_encoded(const text::Tokenizer& tokenizer, const base::Json& entry, Ends ends) {
    const base::Json* text = entry.find("text");
    if (text == nullptr || !text->is_string()) return;  // a prompt of one bare id
    const auto ids = tokenizer.encode(text->as_string(), {.ends = ends});
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, expected_ids(entry)) << text->as_string();
}

std::string streamed(const text::Tokenizer& tokenizer, const std::vector<base::TokenId>& ids) {
    text::Detokenizer detokenizer(tokenizer, true);
    std::string text;
    for (const base::TokenId id : ids) text += detokenizer.append(id);
    return text + detokenizer.finish();
}

void check_model(const std::string& gguf, const std::string& reference_path) {
    SCOPED_TRACE(gguf);
    const auto tokenizer = tokenizer_of(gguf);
    const base::Json reference = read_json(reference_path);
    for (const base::Json& entry : reference.find("tokenize")->as_array()) {
        expect_encoded(*tokenizer, entry, Ends::kNone);
        const std::vector<base::TokenId> ids = token_ids(*entry.find("ids"));
        const std::string& decoded = entry.find("decoded")->as_string();
        EXPECT_EQ(tokenizer->decode(ids, true), decoded);
        EXPECT_EQ(streamed(*tokenizer, ids), decoded);
    }
    for (const base::Json& entry : reference.find("chat")->as_array()) {
        expect_encoded(*tokenizer, entry, Ends::kNone);
    }
    for (const base::Json& entry : reference.find("prompts")->as_array()) {
        expect_encoded(*tokenizer, entry, Ends::kModel);
    }
}

TEST(TokenizerGolden, IdsAndTextEqualTheReferenceForEveryModel) {
    const fs::path root = data_folder();
    std::size_t models = 0;
    for (const fs::directory_entry& file : fs::directory_iterator(root / "gguf")) {
        if (file.path().extension() != ".gguf") continue;
        const std::string name = file.path().stem().string();
        // The tokenizer's part is the same in gguf/gpt-oss.golden.json.
        check_model(file.path().string(), (root / "models" / name / "golden.json").string());
        ++models;
    }
    EXPECT_EQ(models, 15U);
}

}  // namespace
}  // namespace pagoda::golden
