#include "sampling_defaults.h"

#include <gtest/gtest.h>

namespace pagoda::apps {
namespace {

formats::Checkpoint with(std::string name, formats::MetaValue value) {
    formats::Checkpoint checkpoint;
    checkpoint.metadata.emplace_back("general.sampling." + std::move(name), std::move(value));
    return checkpoint;
}

std::string error_of(const formats::Checkpoint& checkpoint) {
    const auto read = read_model_sampling(checkpoint);
    return read ? "" : read.error().message;
}

TEST(ModelSampling, TakesWhatTheFileStatesAndOpenAIsForTheRest) {
    const auto read = read_model_sampling(with("top_k", std::int64_t{40}));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->defaults.top_k, 40);
    EXPECT_EQ(read->defaults.temperature, 1.0);
    EXPECT_TRUE(read->not_applied.empty());
    EXPECT_EQ(read_model_sampling(with("temp", 0.25))->defaults.temperature, 0.25);
}

TEST(ModelSampling, TopKMustBeAWholeNumber) {
    EXPECT_EQ(error_of(with("top_k", 20.0)), "");
    EXPECT_EQ(error_of(with("top_k", 0.5)),
              "general.sampling.top_k must be a whole number from -1 to 1073741824, got 0.5");
    EXPECT_NE(error_of(with("top_k", std::string("many"))), "");
    EXPECT_NE(error_of(with("top_k", 1e30)), "");
}

TEST(ModelSampling, HasTheRangesOfTheSampler) {
    EXPECT_EQ(error_of(with("top_p", 0.0)),
              "general.sampling.top_p must be a number greater than 0 and at most 1, got 0");
    EXPECT_EQ(error_of(with("penalty_repeat", 1e-4)), "");
    EXPECT_NE(error_of(with("penalty_repeat", 1e-5)), "");
    EXPECT_NE(error_of(with("min_p", true)), "");
}

TEST(ModelSampling, NamesTheSettingsThatAreNotApplied) {
    formats::Checkpoint checkpoint = with("mirostat", std::int64_t{2});
    checkpoint.metadata.emplace_back("general.sampling.temp", 0.5);
    checkpoint.metadata.emplace_back("general.name", std::string("toy"));
    const auto read = read_model_sampling(checkpoint);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->not_applied, std::vector<std::string>{"general.sampling.mirostat"});
}

}  // namespace
}  // namespace pagoda::apps
