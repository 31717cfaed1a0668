#include "base/nearest_name.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

const std::vector<std::string_view> kKnown = {"temperature", "top_p", "top_k", "max_tokens",
                                              "min_p",       "stop",  "n"};

TEST(NearestName, FindsOneSlipOfTheKeyboard) {
    EXPECT_EQ(nearest_name("temprature", kKnown), "temperature");    // a letter missing
    EXPECT_EQ(nearest_name("tempperature", kKnown), "temperature");  // one too many
    EXPECT_EQ(nearest_name("temperatrue", kKnown), "temperature");   // two swapped
    EXPECT_EQ(nearest_name("max-Tokens", kKnown), "max_tokens");     // case and dash are free
    EXPECT_EQ(nearest_name("max_token", kKnown), "max_tokens");
}

TEST(NearestName, PrefersTheNearestAndThenTheFirst) {
    EXPECT_EQ(nearest_name("top_q", kKnown), "top_p");
    EXPECT_EQ(nearest_name("topk", kKnown), "top_k");
}

TEST(NearestName, SaysNothingWhenNothingIsNear) {
    EXPECT_EQ(nearest_name("frequency_penalty", kKnown), "");
    EXPECT_EQ(nearest_name("x", kKnown), "");
    EXPECT_EQ(nearest_name("", kKnown), "");
    EXPECT_EQ(nearest_name("temperature", {}), "");
}

TEST(NearestName, LongNamesCostNothing) {
    const std::string long_name(1'000'000, 't');
    EXPECT_EQ(nearest_name(long_name, kKnown), "");
    const std::vector<std::string_view> long_known = {long_name, "stop"};
    EXPECT_EQ(nearest_name("stpo", long_known), "stop");
    const std::string longest(64, 'a');
    const std::vector<std::string_view> longest_known = {longest};
    EXPECT_EQ(nearest_name(longest.substr(1) + "b", longest_known), longest);
}

}  // namespace
}  // namespace pagoda::base
