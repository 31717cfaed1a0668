#include "engine/loader.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "kernels/registry.h"

namespace pagoda::engine {
namespace {

// Why the golden llama can't be loaded that way; empty when it can.
std::string refusal(const LoadOptions& options) {
    const char* const folder = std::getenv("PAGODA_GOLDEN");
    if (folder == nullptr) return "PAGODA_GOLDEN must name the reference data";
    const auto checkpoint = formats::open_checkpoint(std::string(folder) + "/gguf/llama.gguf");
    if (!checkpoint) return checkpoint.error().message;
    base::ThreadTeam team(1);
    const auto runner = load_runner(
        *checkpoint, {.kernels = &kernels::all_variants().front(), .team = &team}, options);
    return runner ? "" : runner.error().message;
}

constexpr model::ModelLimits kSmall = {
    .max_rows = 16, .max_sequences = 2, .max_positions = 64, .max_logit_rows = 4};

TEST(LoadRunner, SaysWhichMemoryTheSystemRefuses) {
    // More than the address space of any machine, so that no limit has to be set.
    constexpr std::int64_t kEndless = 2'147'483'647;
    EXPECT_EQ(refusal({.limits = kSmall, .group_blocks = {4}}), "");
    const std::string kv = refusal({.limits = kSmall, .group_blocks = {kEndless}});
    EXPECT_NE(kv.find("address space that the KV cache takes"), std::string::npos) << kv;
    const std::string weights =
        refusal({.limits = kSmall, .group_blocks = {4}, .load_bytes = std::uint64_t{1} << 60});
    EXPECT_NE(weights.find("refuses the 1 EiB of address space that weights and "
                           "workspace take"),
              std::string::npos)
        << weights;
}

}  // namespace
}  // namespace pagoda::engine
