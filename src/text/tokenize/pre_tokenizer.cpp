#include "text/tokenize/pre_tokenizer.h"

#include "text/tokenize/pre_steps.h"

namespace pagoda::text {
namespace {

using namespace step;  // NOLINT(google-build-using-namespace): the table below reads as its rules

constexpr CharMask kNotWord = kSpace | kLetter | kNumber;  // [^\s\p{L}\p{N}] is outside this
constexpr CharMask kNoLead = kNewline | kLetter | kNumber;

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr PreStep kGpt2Steps[] = {
    contraction,         space_then<kLetter>,
    space_then<kNumber>, space_then_outside<kNotWord, Tail::kNone>,
    blanks_before_blank, blanks,
};
// (?i:'s|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <PreStep kNumbers>
constexpr PreStep kCl100kSteps[] = {
    contraction_any_case,
    led<kNoLead, kLetter>,
    kNumbers,
    space_then_outside<kNotWord, Tail::kNewlines>,
    lines,
    blanks_before_blank,
    blanks,
};
constexpr PreStep kSeedCoderSteps[] = {
    contraction_any_case,
    led<kNoLead, kLetter>,
    few<kNumber, 1>,
    space_then_outside<kNotWord | kNewline, Tail::kNone>,
    lines,
    blanks_before_blank,
    blanks,
};
constexpr PreStep kJais2Steps[] = {
    contraction_any_case,
    led<kNoLead, kLetter>,
    few<kNumber, 3>,
    space_then_outside<kNotWord, Tail::kNewlines>,
    lines,
    blanks_in_powers,
};
constexpr PreStep kQwen35Steps[] = {
    contraction_any_case,
    led<kNoLead, kLetter | kMark>,
    few<kNumber, 1>,
    space_then_outside<kNotWord | kMark, Tail::kNewlines>,
    lines,
    blanks_before_blank,
    blanks,
};
constexpr PreStep kExaoneMoeSteps[] = {
    contraction_any_case,
    spaced_words,
    few<kNumber, 1>,
    space_then_outside<kNotWord, Tail::kOneNewlineOrSlash>,
    lines,
    blanks_before_blank,
    blanks,
};
template <PreStep kWord, int kDigits, Tail kTail>
constexpr PreStep kO200kSteps[] = {
    kWord, few<kNumber, kDigits>, space_then_outside<kNotWord, kTail>,
    lines, blanks_before_blank,   blanks,
};
constexpr PreStep kKimiSteps[] = {
    run<kHan>,       cased_word_contracted<kHan>,
    few<kNumber, 3>, space_then_outside<kNotWord, Tail::kNewlines>,
    lines,           blanks_before_blank,
    blanks,
};
// [!-~ punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*| ...
constexpr PreStep kDeepseekV3Words[] = {
    punct_then_ascii_word,
    led<kNewline | kLetter | kPunct | kSymbol, kLetter | kMark>,
    space_then_lines<kPunct | kSymbol>,
    lines,
    blanks_before_blank,
    blanks,
};
constexpr PreStep kSparkWords[] = {
    punct_then_ascii_word,        led<kNewline | kLetter | kPunct | kSymbol, kLetter | kMark>,
    space_then<kPunct | kSymbol>, newline,
    blanks_before_blank,          blanks,
};
constexpr PreStep kYoutuScripts[] = {hangul_of_youtu, puncts_of_youtu, bopomofo_of_youtu,
                                     cjk_of_deepseek_v3};

// A pass of one alternative.
template <PreStep kStep>
constexpr PreStep kOnly[] = {kStep};

template <PreStep kStep>
constexpr PrePass kOnlyPass = {kOnly<kStep>};

constexpr PrePass kGpt2[] = {{kGpt2Steps}};
constexpr PrePass kDigitsGpt2[] = {kOnlyPass<few<kNumber, 1>>, {kGpt2Steps}};
constexpr PrePass kLlama3[] = {{kCl100kSteps<few<kNumber, 3>>}};
constexpr PrePass kQwen2[] = {{kCl100kSteps<few<kNumber, 1>>}};
constexpr PrePass kQwen35[] = {{kQwen35Steps}};
constexpr PrePass kSeedCoder[] = {{kSeedCoderSteps}};
constexpr PrePass kJais2[] = {{kJais2Steps}};
constexpr PrePass kMiniCpm5[] = {kOnlyPass<few<kNumber, 3>>, {kCl100kSteps<run<kNumber>>}};
constexpr PrePass kLaguna[] = {kOnlyPass<line_or_feeds>, {kCl100kSteps<few<kNumber, 1>>}};
constexpr PrePass kExaoneMoe[] = {{kExaoneMoeSteps}};
constexpr PrePass kO200k[] = {
    {kO200kSteps<cased_word_contracted<0>, 3, Tail::kNewlinesAndSlashes>}};
constexpr PrePass kTekken[] = {{kO200kSteps<cased_word<0>, 1, Tail::kNewlinesAndSlashes>}};
constexpr PrePass kKimi[] = {{kKimiSteps}};
constexpr PrePass kYoutu[] = {
    {kYoutuScripts}, {kO200kSteps<cased_word_contracted<0>, 1, Tail::kNewlinesAndSlashes>}};
constexpr PrePass kTinyAya[] = {
    kOnlyPass<digits_from_word_end>,
    {kO200kSteps<cased_word_contracted<0>, 3, Tail::kNewlinesAndSlashes>}};
constexpr PrePass kDeepseekV3[] = {
    kOnlyPass<few<kNumber, 3>>, kOnlyPass<cjk_of_deepseek_v3>, {kDeepseekV3Words}};
constexpr PrePass kSpark[] = {kOnlyPass<few<kNumber, 3>>,
                              kOnlyPass<cjk_of_deepseek_v3>,
                              {kSparkWords},
                              kOnlyPass<few<kNumber, 1>>};
constexpr PrePass kAfmoe[] = {
    kOnlyPass<digits_from_end>, kOnlyPass<asian_of_afmoe>, {kDeepseekV3Words}};
constexpr PrePass kDeepseekLlm[] = {
    kOnlyPass<newline>,       kOnlyPass<blank_then_cased>,    kOnlyPass<blank_then_wide_punct>,
    kOnlyPass<blanks_at_end>, kOnlyPass<cjk_of_deepseek_llm>, kOnlyPass<run<kNumber>>};
constexpr PrePass kDeepseekCoder[] = {kOnlyPass<newline>, kOnlyPass<blank_then<kLetter>>,
                                      kOnlyPass<blank_then<kPunct>>, kOnlyPass<cjk_of_deepseek_llm>,
                                      kOnlyPass<few<kNumber, 1>>};
constexpr PrePass kFalcon[] = {
    kOnlyPass<falcon_puncts>, {kGpt2Steps}, kOnlyPass<three_ascii_digits>};
constexpr PrePass kDefault[] = {kOnlyPass<default_puncts>,
                                {kGpt2Steps},
                                kOnlyPass<run<kNumber>>,
                                kOnlyPass<three_ascii_digits>};
constexpr PrePass kBloom[] = {kOnlyPass<bloom_word>};
constexpr PrePass kViking[] = {kOnlyPass<bloom_word>, kOnlyPass<few<kNumber, 1>>};
constexpr PrePass kSuperBpe[] = {kOnlyPass<run<kNumber>>, kOnlyPass<between_group_starts>};
constexpr PrePass kChameleon[] = {kOnlyPass<sentinel>,  kOnlyPass<image_code>,
                                  kOnlyPass<indent>,    kOnlyPass<few<kNumber, 1>>,
                                  kOnlyPass<one_punct>, {kGpt2Steps}};
constexpr PrePass kLines[] = {kOnlyPass<line_or_feeds>};
constexpr PrePass kNonBlanks[] = {kOnlyPass<non_blanks>};

constexpr PreRule kGpt2Rule{kGpt2};
constexpr PreRule kDigitsGpt2Rule{kDigitsGpt2};
constexpr PreRule kLlama3Rule{kLlama3};
constexpr PreRule kQwen2Rule{kQwen2};
constexpr PreRule kQwen35Rule{kQwen35};
constexpr PreRule kSeedCoderRule{kSeedCoder};
constexpr PreRule kJais2Rule{kJais2};
constexpr PreRule kMiniCpm5Rule{kMiniCpm5};
constexpr PreRule kLagunaRule{kLaguna};
constexpr PreRule kExaoneMoeRule{kExaoneMoe};
constexpr PreRule kO200kRule{kO200k};
constexpr PreRule kTekkenRule{kTekken};
constexpr PreRule kKimiRule{kKimi};
constexpr PreRule kYoutuRule{kYoutu};
constexpr PreRule kTinyAyaRule{kTinyAya};
constexpr PreRule kDeepseekV3Rule{kDeepseekV3};
constexpr PreRule kSparkRule{kSpark};
constexpr PreRule kAfmoeRule{kAfmoe};
constexpr PreRule kDeepseekLlmRule{kDeepseekLlm};
constexpr PreRule kDeepseekCoderRule{kDeepseekCoder};
constexpr PreRule kFalconRule{kFalcon};
constexpr PreRule kDefaultRule{kDefault};
constexpr PreRule kBloomRule{kBloom};
constexpr PreRule kVikingRule{kViking};
constexpr PreRule kSuperBpeRule{kSuperBpe};
constexpr PreRule kChameleonRule{kChameleon};
constexpr PreRule kLinesRule{kLines, false};
constexpr PreRule kNonBlanksRule{kNonBlanks, false};

constexpr PreTokenizerEntry plain(std::string_view name, const PreRule& rule) {
    return {name, &rule, false, false, false};
}
constexpr PreTokenizerEntry whole_words(std::string_view name, const PreRule& rule,
                                        bool adds_bos = false) {
    return {name, &rule, true, adds_bos, false};
}

constexpr PreTokenizerEntry kTable[] = {
    plain("default", kDefaultRule),
    // GPT-2's rule
    plain("gpt-2", kGpt2Rule),
    plain("phi-2", kGpt2Rule),
    plain("mpt", kGpt2Rule),
    plain("olmo", kGpt2Rule),
    plain("jais", kGpt2Rule),
    plain("trillion", kGpt2Rule),
    plain("exaone4", kGpt2Rule),
    plain("gigachat", kGpt2Rule),
    plain("a.x-4.0", kGpt2Rule),
    plain("mellum", kGpt2Rule),
    plain("modern-bert", kGpt2Rule),
    plain("granite-docling", kGpt2Rule),
    plain("jina-es", kGpt2Rule),
    plain("jina-de", kGpt2Rule),
    plain("jina-v1-en", kGpt2Rule),
    plain("jina-v2-es", kGpt2Rule),
    plain("jina-v2-de", kGpt2Rule),
    plain("jina-v2-code", kGpt2Rule),
    plain("roberta-bpe", kGpt2Rule),
    // single digits, then GPT-2's rule
    plain("starcoder", kDigitsGpt2Rule),
    plain("refact", kDigitsGpt2Rule),
    plain("command-r", kDigitsGpt2Rule),
    plain("smollm", kDigitsGpt2Rule),
    plain("codeshell", kDigitsGpt2Rule),
    plain("exaone", kDigitsGpt2Rule),
    plain("minerva-7b", kDigitsGpt2Rule),
    plain("mellum2", kDigitsGpt2Rule),
    // cl100k with numbers of one to three digits
    whole_words("llama-bpe", kLlama3Rule, true),
    whole_words("llama3", kLlama3Rule, true),
    whole_words("llama-v3", kLlama3Rule, true),
    whole_words("falcon3", kLlama3Rule, true),
    whole_words("falcon-h1", kLlama3Rule, true),
    whole_words("pixtral", kLlama3Rule, true),
    whole_words("midm-2.0", kLlama3Rule, true),
    whole_words("lfm2", kLlama3Rule, true),
    whole_words("jina-v5-nano", kLlama3Rule, true),
    plain("dbrx", kLlama3Rule),
    plain("smaug-bpe", kLlama3Rule),
    plain("chatglm-bpe", kLlama3Rule),
    plain("glm4", kLlama3Rule),
    plain("jais-2", kJais2Rule),
    whole_words("minicpm5", kMiniCpm5Rule),
    // cl100k with single digits
    plain("qwen2", kQwen2Rule),
    plain("deepseek-r1-qwen", kQwen2Rule),
    plain("megrez", kQwen2Rule),
    plain("kormo", kQwen2Rule),
    plain("f2llmv2", kQwen2Rule),
    plain("stablelm2", kQwen2Rule),
    plain("hunyuan", kQwen2Rule),
    plain("solar-open", kQwen2Rule),
    plain("grok-2", kQwen2Rule),
    plain("bailingmoe", kQwen2Rule),
    plain("bailingmoe2", kQwen2Rule),
    plain("llada-moe", kQwen2Rule),
    plain("qwen35", kQwen35Rule),
    plain("seed-coder", kSeedCoderRule),
    plain("laguna", kLagunaRule),
    plain("exaone-moe", kExaoneMoeRule),
    // o200k: words by case
    whole_words("gpt-4o", kO200kRule),
    whole_words("llama4", kO200kRule),
    plain("kanana2", kO200kRule),
    plain("talkie", kO200kRule),
    plain("minimax-m2", kO200kRule),
    whole_words("granite-embed-multi-97m", kO200kRule),
    whole_words("tekken", kTekkenRule, true),
    whole_words("kimi-k2", kKimiRule),
    whole_words("youtu", kYoutuRule),
    plain("tiny_aya", kTinyAyaRule),
    plain("cohere2moe", kTinyAyaRule),
    // DeepSeek's
    plain("deepseek-llm", kDeepseekLlmRule),
    plain("deepseek-coder", kDeepseekCoderRule),
    plain("deepseek-v3", kDeepseekV3Rule),
    plain("hunyuan-dense", kDeepseekV3Rule),
    plain("hy_v4", kDeepseekV3Rule),
    plain("joyai-llm", kDeepseekV3Rule),
    plain("spark2_5", kSparkRule),
    plain("afmoe", kAfmoeRule),
    // others
    plain("falcon", kFalconRule),
    plain("bloom", kBloomRule),
    plain("gpt3-finnish", kBloomRule),
    plain("poro-chat", kBloomRule),
    plain("viking", kVikingRule),
    plain("superbpe", kSuperBpeRule),
    {"chameleon", &kChameleonRule, false, true, false},
    // merges over characters
    {"gemma4", &kLinesRule, false, true, true},
    {"granite-embed-multi-311m", &kLinesRule, false, true, true},
    {"sarvam-moe", &kLinesRule, false, false, true},
    {"whitespace", &kNonBlanksRule, false, false, false},
};

// Runs pass `index` and those after it over one piece. The depth is the number of passes.
bool split_pass(std::span<const PrePass> passes, std::string_view text, WordSink& sink) {
    if (passes.empty()) return sink.word(text);
    const std::span<const PreStep> steps = passes.front().steps;
    const std::span<const PrePass> rest = passes.subspan(1);
    CharScan scan(text, CharTable::instance());
    std::size_t gap = 0;  // where the unmatched text before `pos` begins
    for (std::size_t pos = 0; pos < text.size();) {
        std::size_t end = pos;
        for (const PreStep step : steps) {
            end = step(scan, pos);
            if (end > pos) break;
        }
        if (end == pos) {
            pos += scan.at(pos).bytes;
            continue;
        }
        if (gap < pos && !split_pass(rest, text.substr(gap, pos - gap), sink)) return false;
        if (!split_pass(rest, text.substr(pos, end - pos), sink)) return false;
        pos = gap = end;
    }
    return gap == text.size() || split_pass(rest, text.substr(gap), sink);
}

}  // namespace

const PreTokenizerEntry* find_pre_tokenizer(std::string_view name) {
    if (name.empty()) name = "default";
    for (const PreTokenizerEntry& entry : kTable) {
        if (entry.name == name) return &entry;
    }
    return nullptr;
}

std::string pre_tokenizer_names() {
    std::string names;
    for (const PreTokenizerEntry& entry : kTable) {
        if (!names.empty()) names += ", ";
        names += entry.name;
    }
    return names;
}

bool split_words(const PreRule& rule, std::string_view text, WordSink& sink) {
    return split_pass(rule.passes, text, sink);
}

}  // namespace pagoda::text
