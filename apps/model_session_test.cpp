// What a session takes is what its plan said, for models of every kind of layer and of packed and
// plain weights.

#include "model_session.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "formats/scratch_folder_for_test.h"
#include "model_config.h"

namespace pagoda::apps {
namespace {

// Bytes that the C library has handed out and not got back; large vectors, which have mappings of
// their own, included.
std::size_t allocated() {
    const auto all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

bool allocator_counts() {
    const std::size_t before = allocated();
    const std::vector<char> probe(1U << 20);
    return allocated() >= before + probe.size();
}

class LoadOf : public testing::TestWithParam<const char*> {};

// Small enough that no buffer becomes a mapping of ours, which the C library does not count.
TEST_P(LoadOf, TakesWhatThePlanSaysAlsoWithPackedWeightsThatAreWrittenOrRead) {
    if (!allocator_counts()) GTEST_SKIP() << "a sanitizer's allocator does not count";
    const char* const folder = std::getenv("PAGODA_GOLDEN");
    ASSERT_NE(folder, nullptr) << "PAGODA_GOLDEN must name the reference data";
    const formats::ScratchFolder scratch;
    const std::string cache = scratch.path("packed");
    for (const std::string& packed_cache : {std::string(), cache, cache}) {
        const auto config = Config::load({.flags = {{"max_num_seqs", {"4"}},
                                                    {"max_num_batched_tokens", {"256"}},
                                                    {"max_model_len", {"256"}},
                                                    {"threads", {"2"}},
                                                    {"packed_cache_dir", {packed_cache}}}});
        ASSERT_TRUE(config.ok()) << config.error().message;
        const auto settings = model_settings(*config);
        ASSERT_TRUE(settings.ok()) << settings.error().message;
        base::Logger logger({.level = base::LogLevel::kError});
        const auto session =
            ModelSession::open(std::string(folder) + "/" + GetParam() + ".gguf", *settings, logger);
        ASSERT_TRUE(session.ok()) << session.error().message;
        const std::size_t before = allocated();
        ASSERT_TRUE((*session)->start("test").ok());
        const auto taken = static_cast<double>(allocated() - before);
        EXPECT_EQ(std::filesystem::exists(cache), !packed_cache.empty());

        const plan::MemoryPlan& plan = (*session)->plan();
        const auto planned =
            static_cast<double>(plan.weights_bytes + plan.workspace_bytes + plan.kv_bytes);
        // Names, tables and the engine's books have a share of their own.
        constexpr double kBooks = 256U << 10;
        EXPECT_LE(taken, planned + kBooks);
        EXPECT_GE(taken, planned * 0.98);
    }
}

INSTANTIATE_TEST_SUITE_P(Golden, LoadOf,
                         testing::Values("gguf/llama", "gguf/qwen3", "gguf/gemma2", "gguf/gemma3",
                                         "gguf-quant/llama-Q4_K", "gguf-quant/llama-F16"));

TEST(ModelSession, AnErrorInATemplateOfItsOwnFileNamesThatFileAlone) {
    const char* const folder = std::getenv("PAGODA_GOLDEN");
    ASSERT_NE(folder, nullptr) << "PAGODA_GOLDEN must name the reference data";
    const auto config = Config::load({.flags = {{"chat_template", {"/nowhere.jinja"}}}});
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto settings = model_settings(*config);
    ASSERT_TRUE(settings.ok()) << settings.error().message;
    base::Logger logger({.level = base::LogLevel::kError});
    const auto session =
        ModelSession::open(std::string(folder) + "/gguf/llama.gguf", *settings, logger);
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.error().message, "/nowhere.jinja: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace pagoda::apps
