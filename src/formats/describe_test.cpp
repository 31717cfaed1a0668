#include "formats/describe.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/sample_gguf_for_test.h"

namespace pagoda::formats {
namespace {

base::Json describe_sample(const SampleGguf& sample) {
    const auto bytes = encode_gguf(sample.file);
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    const auto checkpoint = checkpoint_from_gguf(*bytes, "sample.gguf");
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    return describe(*checkpoint);
}

const base::Json& metadata_entry(const base::Json& report, std::string_view key) {
    static const base::Json kNone;
    for (const base::Json& entry : report.find("metadata")->as_array())
        if (entry.find("key")->as_string() == key) return entry;
    ADD_FAILURE() << key << " is not in the report";
    return kNone;
}

TEST(Describe, ListsTensorsAndTotals) {
    const SampleGguf sample;
    const base::Json report = describe_sample(sample);
    EXPECT_EQ(report.find("architecture")->as_string(), "llama");
    EXPECT_EQ(report.find("format")->as_string(), "GGUF 3");
    ASSERT_EQ(report.find("tensors")->as_array().size(), 4U);
    EXPECT_EQ(
        report.find("tensors")->as_array()[2].dump(),
        R"({"name":"blk.0.attn_q.weight","type":"Q6_K","shape":[2,256],"bytes":420,"file":"sample.gguf"})");
    EXPECT_EQ(report.find("totals")->dump(), R"({"tensors":4,"values":677,"bytes":580})");
    EXPECT_EQ(report.find("types")->as_array()[0].dump(),
              R"({"type":"Q6_K","tensors":1,"values":512,"bytes":420})");
    EXPECT_EQ(report.find("files")->as_array().size(), 1U);
}

TEST(Describe, ShowsScalarsWholeAndLongValuesByTheirStart) {
    SampleGguf sample;
    sample.file.entries.push_back(
        array_entry("long.array", GgufType::kInt32, std::vector<std::int64_t>(1000, 7)));
    std::string text(600, 'x');
    text.replace(79, 2, "\xc3\xa4");  // a character across the place where the text is cut
    sample.file.entries.push_back(string_entry("long.text", text));
    const base::Json report = describe_sample(sample);
    EXPECT_EQ(metadata_entry(report, "llama.block_count").dump(),
              R"({"key":"llama.block_count","type":"integer","value":2})");
    EXPECT_EQ(metadata_entry(report, "llama.rope.freq_base").find("value")->as_double(), 10000.0);
    EXPECT_EQ(metadata_entry(report, "llama.window").dump(),
              R"({"key":"llama.window","type":"array of booleans","value":[true,false]})");
    EXPECT_EQ(metadata_entry(report, "llama.nested").dump(),
              R"({"key":"llama.nested","type":"array of arrays","value":[[-1,2]]})");
    EXPECT_EQ(
        metadata_entry(report, "long.array").dump(),
        R"({"key":"long.array","type":"array of integers","count":1000,"first":[7,7,7,7,7,7,7,7]})");
    EXPECT_EQ(metadata_entry(report, "long.text").find("bytes")->as_int(), 600);
    EXPECT_EQ(metadata_entry(report, "long.text").find("start")->as_string(), std::string(79, 'x'));
}

TEST(Describe, SummarisesTokenizerAndTemplate) {
    const SampleGguf sample;
    const base::Json report = describe_sample(sample);
    EXPECT_EQ(
        report.find("tokenizer")->dump(),
        R"({"kind":"byte-level BPE","pre_tokenizer":null,"tokens":4,"merges":1,"has_scores":false,)"
        R"("special":{"eos":{"id":2,"text":"ab"}},"end_of_generation":[{"id":2,"text":"ab"},)"
        R"({"id":3,"text":"<|im_end|>"}],"add_bos":null,"add_eos":null,"add_space_prefix":null})");
    EXPECT_EQ(report.find("chat_template")->dump(), R"({"bytes":14,"named":[]})");
    SampleGguf bare;
    bare.erase("tokenizer.ggml.model");
    EXPECT_TRUE(describe_sample(bare).find("tokenizer")->is_null());
    EXPECT_TRUE(describe_sample(bare).find("chat_template")->is_null());
}

}  // namespace
}  // namespace pagoda::formats
