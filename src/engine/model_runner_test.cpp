// The same request gives the same tokens and log-probabilities alone and beside others, preempted
// or not, in blocks that held NaN or another sequence's keys before: scheduler and runner over the
// golden models, windows included.

#include "engine/model_runner.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "engine/loader.h"
#include "formats/scratch_folder_for_test.h"
#include "kernels/registry.h"
#include "sched/scheduler.h"

namespace pagoda::engine {
namespace {

using base::SeqId;
using base::TokenId;

constexpr std::int64_t kMaxModelLen = 256;
constexpr std::int64_t kBatchTokens = 64;

std::string golden_file(const std::string& name) {
    const char* const folder = std::getenv("PAGODA_GOLDEN");
    if (folder == nullptr) ADD_FAILURE() << "PAGODA_GOLDEN must name tests/golden";
    return (folder == nullptr ? "" : folder) + std::string("/gguf/") + name;
}

// What a sequence's request was told.
struct Answer {
    std::vector<TokenId> tokens;
    std::vector<decode::TokenLogprob> logprobs, prompt_logprobs;
    std::optional<FinishReason> finish;
    std::optional<base::Error> error;
};

void expect_equal(const std::vector<decode::TokenLogprob>& a,
                  const std::vector<decode::TokenLogprob>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t index = 0; index < a.size(); ++index) {
        EXPECT_EQ(a[index].token, b[index].token);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(a[index].logprob),
                  std::bit_cast<std::uint32_t>(b[index].logprob))
            << index;
        EXPECT_EQ(a[index].rank, b[index].rank);
    }
}

// A scheduler and a runner whose KV memory holds NaN at first.
class Bench {
  public:
    struct Options {
        int threads = 2;
        bool has_prefix_cache = false;
    };
    // num_blocks: of every group, but windows get what one step may need.
    Bench(const std::string& path, std::int64_t num_blocks, const Options& options)
        : checkpoint_(formats::open_checkpoint(path).value()), team_(options.threads) {
        if (options.has_prefix_cache)
            hasher_ = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
        device_ = {.kernels = kernels::choose_variant("", kernels::detect_cpu_features()).value(),
                   .team = &team_};
        auto model = model::Model::load(checkpoint_, device_,
                                        {.max_rows = kBatchTokens,
                                         .max_sequences = 8,
                                         .max_positions = kMaxModelLen,
                                         .max_logit_rows = 16});
        CHECK(model.ok(), model.error().message);
        const auto groups = model::kv_groups((*model)->spec());
        std::vector<std::int64_t> blocks;
        for (const model::KvGroup& group : groups) {
            has_window_ = has_window_ || group.window > 0;
            blocks.push_back(num_blocks + (group.window > 0 ? 8 : 0));
        }
        auto store = make_kv_store((*model)->spec(), kernels::KvDType::kBF16, blocks).value();
        for (int layer = 0; layer < static_cast<int>((*model)->spec().num_layers()); ++layer) {
            const kernels::PagedKvView view = store->layer_view(layer);
            std::memset(view.data, 0xFF,
                        static_cast<std::size_t>(view.num_blocks) * view.block_bytes);
        }
        scheduler_.emplace(sched::SchedulerConfig{.max_num_seqs = 8,
                                                  .max_num_batched_tokens = kBatchTokens,
                                                  .max_model_len = kMaxModelLen,
                                                  .groups = scheduler_groups(groups, blocks),
                                                  .prefix_hasher = hasher_});
        runner_ =
            std::make_unique<ModelRunner>(std::move(model).value(), std::move(store), device_, 16);
        learn_short_outputs();
    }
    Bench(const std::string& path, std::int64_t num_blocks) : Bench(path, num_blocks, {}) {}

    // Runs them together, number k with seed + k.
    std::vector<Answer> run(const std::vector<SequenceInput>& inputs) {
        std::vector<sched::SequenceSpec> specs;
        for (std::size_t number = 0; number < inputs.size(); ++number) {
            const SequenceInput& input = inputs[number];
            const SeqId seq(next_++);
            const std::int64_t num_prompt = std::ssize(input.prompt);
            const auto shared = std::make_shared<const SequenceInput>(input);
            specs.push_back({.seq = seq,
                             .num_prompt_tokens = num_prompt,
                             .max_total_tokens = num_prompt + input.sampling.max_tokens,
                             .computes_whole_prompt = input.sampling.prompt_logprobs.has_value()});
            if (hasher_ != nullptr)
                specs.back().prefix = std::make_shared<const kv::PromptKeys>(
                    hasher_->keys("", {shared, &shared->prompt}));
            waiting_[seq] = {.seq = seq, .input = shared, .seed = input.sampling.seed};
        }
        CHECK(scheduler_->submit(specs, {}).ok(), "the queue takes them");
        while (scheduler_->has_work()) step();
        std::vector<Answer> answers;
        answers.reserve(specs.size());
        for (const sched::SequenceSpec& spec : specs)
            answers.push_back(std::move(answers_[spec.seq]));
        return answers;
    }

    [[nodiscard]] std::uint64_t num_preemptions() const {
        return scheduler_->stats().num_preemptions;
    }
    [[nodiscard]] std::uint64_t num_cached_tokens() const {
        return scheduler_->stats().num_cached_tokens;
    }
    [[nodiscard]] bool has_window() const { return has_window_; }

  private:
    // So that long outputs surprise the scheduler, and somebody must yield.
    void learn_short_outputs() {
        for (int number = 0; number < 20; ++number) {
            const sched::SequenceSpec spec{
                .seq = SeqId(next_++), .num_prompt_tokens = 4, .max_total_tokens = 200};
            CHECK(scheduler_->submit({&spec, 1}, {}).ok(), "the queue takes it");
            const sched::StepPlan plan = scheduler_->plan();
            scheduler_->commit(plan, {plan.step, {{spec.seq, {1}, FinishReason::kStop}}});
        }
    }

    void step() {
        const sched::StepPlan plan = scheduler_->plan();
        std::vector<NewSequence> new_sequences;
        for (const sched::SequencePlan& part : plan.sequences) {
            if (auto node = waiting_.extract(part.seq)) new_sequences.push_back(node.mapped());
        }
        StepOutput output = runner_->run(plan, new_sequences);
        for (std::size_t entry = 0; entry < output.details.size(); ++entry) {
            sched::SequenceResult& result = output.result.sequences[entry];
            SequenceDetails& details = output.details[entry];
            Answer& answer = answers_[result.seq];
            answer.tokens.insert(answer.tokens.end(), result.tokens.begin(), result.tokens.end());
            std::move(details.logprobs.begin(), details.logprobs.end(),
                      std::back_inserter(answer.logprobs));
            std::move(details.prompt_logprobs.begin(), details.prompt_logprobs.end(),
                      std::back_inserter(answer.prompt_logprobs));
            answer.finish = result.finish;
            if (details.error) answer.error = details.error;
        }
        scheduler_->commit(plan, output.result);
        scheduler_->check_invariants();
    }

    formats::Checkpoint checkpoint_;
    base::ThreadTeam team_;
    kernels::DeviceContext device_;
    std::shared_ptr<const kv::PrefixHasher> hasher_;  // owners: the scheduler too; null: no cache
    std::optional<sched::Scheduler> scheduler_;
    std::unique_ptr<ModelRunner> runner_;
    std::map<SeqId, NewSequence> waiting_;
    std::map<SeqId, Answer> answers_;
    std::uint64_t next_ = 1;
    bool has_window_ = false;
};

SequenceInput input(std::int64_t num_prompt, std::uint64_t seed) {
    SequenceInput result;
    for (std::int64_t index = 0; index < num_prompt; ++index)
        result.prompt.push_back(static_cast<TokenId>((index * 37 + num_prompt) % 400 + 3));
    result.sampling.seed = seed;
    result.sampling.max_tokens = 90;
    result.sampling.ignore_eos = true;
    result.sampling.logprobs = 2;
    result.sampling.prompt_logprobs = 1;
    if (seed % 2 == 1) result.sampling.repetition_penalty = 1.3;
    if (seed % 3 == 0) result.sampling.temperature = 0;
    result.stop.max_tokens = 90;
    return result;
}

class ModelRunnerGolden : public testing::TestWithParam<const char*> {};

TEST_P(ModelRunnerGolden, PreemptionCompanyAndOldBlocksChangeNothing) {
    const std::string path = golden_file(GetParam());
    std::vector<SequenceInput> inputs;
    for (std::uint64_t seed = 0; seed < 6; ++seed)
        inputs.push_back(input(static_cast<std::int64_t>(20 + 23 * seed), seed));
    Bench together(path, /*num_blocks=*/9);  // one needs up to 8
    const std::vector<Answer> crowded = together.run(inputs);
    EXPECT_GT(together.num_preemptions(), 0U);
    EXPECT_EQ(together.has_window(), std::string(GetParam()) == "gemma3.gguf");
    for (std::size_t number = 0; number < inputs.size(); ++number) {
        SCOPED_TRACE(number);
        Bench fresh(path, /*num_blocks=*/9);
        const Answer alone = std::move(fresh.run({inputs[number]}).front());
        EXPECT_FALSE(alone.error) << alone.error->message;
        EXPECT_EQ(alone.finish, FinishReason::kLength);
        EXPECT_EQ(alone.tokens.size(), 90U);
        EXPECT_EQ(alone.prompt_logprobs.size(), inputs[number].prompt.size() - 1);
        EXPECT_EQ(crowded[number].tokens, alone.tokens);
        expect_equal(crowded[number].logprobs, alone.logprobs);
        expect_equal(crowded[number].prompt_logprobs, alone.prompt_logprobs);
    }
}

void expect_equal(const Answer& a, const Answer& b) {
    EXPECT_FALSE(a.error || b.error);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.finish, b.finish);
    expect_equal(a.logprobs, b.logprobs);
    expect_equal(a.prompt_logprobs, b.prompt_logprobs);
}

// Its first `common` tokens are those of `like`, the others its own.
SequenceInput like(const SequenceInput& other, std::int64_t common, std::int64_t num_prompt) {
    SequenceInput result = input(num_prompt, other.sampling.seed);
    std::copy(other.prompt.begin(), other.prompt.begin() + common, result.prompt.begin());
    result.sampling.prompt_logprobs.reset();
    result.sampling.max_tokens = 40;
    result.stop.max_tokens = 40;
    return result;
}

TEST_P(ModelRunnerGolden, PrefixHitsOfAnyLengthChangeNothing) {
    const std::string path = golden_file(GetParam());
    for (const int threads : {1, 2}) {
        SCOPED_TRACE(threads);
        Bench cached(path, /*num_blocks=*/24, {.threads = threads, .has_prefix_cache = true});
        Bench plain(path, /*num_blocks=*/24, {.threads = threads});
        for (const std::uint64_t seed : {3U, 4U}) {  // greedy and sampled
            SequenceInput first = like(input(170, seed), 170, 170);
            const Answer said = std::move(cached.run({first}).front());
            expect_equal(said, plain.run({first}).front());
            // Around the ends of blocks, inside of them, and nothing at all.
            for (const std::int64_t common : {0, 5, 31, 32, 33, 63, 64, 95, 100, 127, 128, 160}) {
                SCOPED_TRACE(common);
                const SequenceInput next = like(first, common, 170);
                const std::uint64_t before = cached.num_cached_tokens();
                expect_equal(cached.run({next}).front(), plain.run({next}).front());
                const auto hit = static_cast<std::int64_t>(cached.num_cached_tokens() - before);
                EXPECT_GE(hit, common % 32 >= 4 ? common : common / 32 * 32);
            }
            // The same prompt: all but one token. Twins in one batch. Scores of a cached prompt.
            const std::uint64_t before = cached.num_cached_tokens();
            expect_equal(cached.run({first}).front(), said);
            EXPECT_EQ(cached.num_cached_tokens() - before, 169U);
            const SequenceInput twin = like(input(90, seed), 0, 130);
            for (const Answer& answer : cached.run({twin, twin, twin}))
                expect_equal(answer, plain.run({twin}).front());
            SequenceInput scored = first;
            scored.sampling.prompt_logprobs = 1;
            const std::uint64_t unscored = cached.num_cached_tokens();
            expect_equal(cached.run({scored}).front(), plain.run({scored}).front());
            EXPECT_EQ(cached.num_cached_tokens(), unscored);
            // A second turn: what was said is found as the prompt is.
            SequenceInput turn = first;
            turn.prompt.insert(turn.prompt.end(), said.tokens.begin(), said.tokens.end());
            turn.prompt.push_back(9);
            const std::uint64_t first_turn = cached.num_cached_tokens();
            turn.sampling.max_tokens = turn.stop.max_tokens = 10;
            expect_equal(cached.run({turn}).front(), plain.run({turn}).front());
            EXPECT_EQ(cached.num_cached_tokens() - first_turn, 170U + 39U);
        }
    }
}

TEST_P(ModelRunnerGolden, PreemptedOnesThatResumeFromTheCacheGiveTheSameAnswers) {
    const std::string path = golden_file(GetParam());
    std::vector<SequenceInput> inputs;
    for (std::uint64_t seed = 0; seed < 6; ++seed)
        inputs.push_back(input(static_cast<std::int64_t>(20 + 23 * seed), seed));
    Bench together(path, /*num_blocks=*/9, {.has_prefix_cache = true});
    const std::vector<Answer> crowded = together.run(inputs);
    EXPECT_GT(together.num_preemptions(), 0U);
    EXPECT_GT(together.num_cached_tokens(), 0U);
    Bench plain(path, /*num_blocks=*/9);
    for (std::size_t number = 0; number < inputs.size(); ++number) {
        SCOPED_TRACE(number);
        expect_equal(crowded[number], plain.run({inputs[number]}).front());
    }
}

INSTANTIATE_TEST_SUITE_P(Files, ModelRunnerGolden, testing::Values("llama.gguf", "gemma3.gguf"));

// A copy of a golden file whose last norm holds NaN.
std::string damaged_file(const formats::ScratchFolder& folder, const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const formats::Checkpoint checkpoint = formats::open_checkpoint(path).value();
    for (const formats::CheckpointTensor& tensor : checkpoint.tensors) {
        if (tensor.name != "output_norm.weight") continue;
        const std::string_view norm(reinterpret_cast<const char*>(tensor.view.data),
                                    tensor.view.bytes);
        const std::size_t at = bytes.rfind(norm);
        CHECK(at != std::string::npos, "the norm's bytes are in the file");
        bytes.replace(at, norm.size(), norm.size(), '\xFF');
    }
    return folder.file("damaged.gguf", std::as_bytes(std::span(bytes)));
}

TEST(ModelRunner, PromptRowsThatAreNotNumbersFailTheirSequenceAsSampledOnesDo) {
    const formats::ScratchFolder folder;
    Bench bench(damaged_file(folder, golden_file("llama.gguf")), 9);
    // Two steps long: the first has prompt rows alone.
    const Answer scored = std::move(bench.run({input(100, 1)}).front());
    ASSERT_TRUE(scored.error);
    EXPECT_EQ(scored.error->code, base::ErrorCode::kInternal);
    EXPECT_NE(scored.error->message.find("not numbers at position 1"), std::string::npos)
        << scored.error->message;
    EXPECT_EQ(scored.finish, FinishReason::kError);
    EXPECT_TRUE(scored.tokens.empty());
    SequenceInput sampled = input(100, 1);
    sampled.sampling.prompt_logprobs.reset();
    const Answer failed = std::move(bench.run({sampled}).front());
    ASSERT_TRUE(failed.error);
    EXPECT_NE(failed.error->message.find("position 100"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::engine
