#include "text/tokenize/pre_tokenizer.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::text {
namespace {

class Collector final : public WordSink {
  public:
    bool word(std::string_view text) override {
        words.emplace_back(text);
        return true;
    }
    std::vector<std::string> words;
};

std::vector<std::string> split(std::string_view name, std::string_view text) {
    const PreTokenizerEntry* entry = find_pre_tokenizer(name);
    EXPECT_NE(entry, nullptr) << name;
    Collector collector;
    EXPECT_TRUE(split_words(*entry->rule, text, collector));
    return collector.words;
}

struct Row {
    std::string_view rule;
    std::string_view text;
    std::vector<std::string> words;
};

// What the regular expression of each family gives.
const Row kRows[] = {
    {"gpt-2", "I've  been\n 123", {"I", "'ve", " ", " been", "\n", " 123"}},
    {"gpt-2", "don'T \n\nx  ", {"don", "'", "T", " \n", "\n", "x", "  "}},
    {"smollm", "a 12", {"a", " ", "1", "2"}},
    {"llama-bpe", "We'LL 1234\tfoo", {"We", "'LL", " ", "123", "4", "\tfoo"}},
    {"llama-bpe", " \n\n  x!!\n\n", {" \n\n", " ", " x", "!!\n\n"}},
    {"llama-bpe", "'\u017F", {"'\u017F"}},
    {"qwen2", "x12", {"x", "1", "2"}},
    {"qwen35", "\u0928\u0947", {"\u0928\u0947"}},
    {"seed-coder", "!!\n", {"!!", "\n"}},
    {"gpt-4o", "camelCase HTTPServer's", {"camel", "Case", " HTTPServer's"}},
    {"gpt-4o", "AB\u4F60C d//\n", {"AB\u4F60", "C", " d", "//\n"}},
    {"tekken", "it's 12", {"it", "'s", " ", "1", "2"}},
    {"kimi-k2", "a\u4F60\u597Db", {"a", "\u4F60\u597D", "b"}},
    {"deepseek-v3", "a1234\u4F60\u597D.b", {"a", "123", "4", "\u4F60\u597D", ".b"}},
    {"deepseek-llm", "ab \u4F60\n1", {"ab", " ", "\u4F60", "\n", "1"}},
    {"deepseek-coder", "a, b12", {"a", ",", " b", "1", "2"}},
    {"falcon", "a+b 12345", {"a", "+", "b", " ", "123", "45"}},
    {"default", "a`b 1234", {"a", "`", "b", " ", "123", "4"}},
    {"bloom", "Hi there, you", {"Hi", " there", ",", " you"}},
    {"viking", "a12.", {"a", "1", "2", "."}},
    {"superbpe", "of the 12345", {"of the ", "12", "345"}},
    {"tiny_aya", "1234567 1234a", {"1", "234", "567", " ", "123", "4", "a"}},
    {"jais-2", "       x", {"    ", "  ", " x"}},
    {"exaone-moe", "one two 3", {"one two", " ", "3"}},
    {"chameleon",
     "IMGIMGABZ<sentinel:12>a",
     {"IMGIMGABZ", "<", "sentinel", ":", "1", "2", ">", "a"}},
    {"minicpm5", "1234", {"123", "4"}},
    {"laguna", "a\n\n b", {"a", "\n\n", " b"}},
    {"spark2_5", "a\n\nb", {"a", "\n", "\n", "b"}},
    {"afmoe", "1234\u0E40\u0E41!", {"1", "234", "\u0E40\u0E41", "!"}},
    {"youtu", "\uAC00\uFF01x1", {"\uAC00", "\uFF01", "x", "1"}},
    {"gemma4", "a b\n\nc", {"a b", "\n\n", "c"}},
    {"whitespace", " a  b", {" ", "a", "  ", "b"}},
};

TEST(PreTokenizer, SplitsAsEachFamilyDoes) {
    for (const Row& row : kRows) {
        EXPECT_EQ(split(row.rule, row.text), row.words) << row.rule << ": " << row.text;
    }
}

TEST(PreTokenizer, AnEmptyNameIsDefaultAndOthersAreUnknown) {
    EXPECT_EQ(find_pre_tokenizer("")->name, "default");
    EXPECT_EQ(find_pre_tokenizer("GPT-2"), nullptr);
    EXPECT_NE(pre_tokenizer_names().find("llama-bpe, llama3"), std::string::npos);
}

// One name of each rule.
std::vector<std::string_view> rules() {
    std::vector<std::string_view> names;
    std::set<const PreRule*> seen;
    const std::string all = pre_tokenizer_names();
    for (std::size_t begin = 0; begin < all.size();) {
        std::size_t end = all.find(", ", begin);
        if (end == all.npos) end = all.size();
        const PreTokenizerEntry* entry = find_pre_tokenizer(all.substr(begin, end - begin));
        if (seen.insert(entry->rule).second) names.push_back(entry->name);
        begin = end + 2;
    }
    return names;
}

std::string repeat(std::string_view unit, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += unit;
    return text;
}

// A rule that looks again at what it has seen would take minutes here, one that recurses would
// overflow the stack.
TEST(PreTokenizer, LongRunsCostLinearTimeUnderEveryRule) {
    const std::string texts[] = {
        repeat("a", 40000),      repeat("A", 40000),      repeat(".", 40000),
        repeat("\u4F60", 20000), repeat("\n", 40000),     repeat(" ", 40000),
        repeat("7", 40000),      repeat(" \u0663", 5000), repeat("<sentinel:1", 5000),
        repeat("A\u0301", 5000), repeat("\u01C5 ", 5000), repeat("\t\u3000", 5000) + "x",
        repeat("\u0301", 40000), repeat("'", 40000),
    };
    for (const std::string_view rule : rules()) {
        for (const std::string& text : texts) {
            std::size_t bytes = 0;
            for (const std::string& word : split(rule, text)) bytes += word.size();
            EXPECT_EQ(bytes, text.size()) << rule;
        }
    }
}

TEST(PreTokenizer, StopsWhenTheSinkSaysSo) {
    class Two final : public WordSink {
      public:
        bool word(std::string_view) override { return ++count < 2; }
        int count = 0;
    } sink;
    EXPECT_FALSE(split_words(*find_pre_tokenizer("gpt-2")->rule, "a b c d", sink));
    EXPECT_EQ(sink.count, 2);
}

}  // namespace
}  // namespace pagoda::text
