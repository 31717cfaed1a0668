#include "engine/admission.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

using base::ErrorCode;

TEST(Admission, ALimitOfSequencesIsKeptAndARefusedOneTakesNoPlace) {
    Admission admission(4, 1000);
    EXPECT_TRUE(admission.enter({3, 10}).ok());
    EXPECT_EQ(admission.enter({2, 10}).error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(admission.enter({1, 10}).ok());
    EXPECT_EQ(admission.num_active(), 4);
    admission.leave_queue({1, 3});
    EXPECT_EQ(admission.num_active(), 4);
    EXPECT_TRUE(admission.enter({1, 10}).ok());
}

TEST(Admission, WhatWaitsHoldsNoMoreBytesThanTheLimitUnlessItWaitsAlone) {
    Admission admission(100, 1000);
    EXPECT_TRUE(admission.enter({1, 5000}).ok());
    const base::Status refused = admission.enter({1, 1});
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(refused.error().message.find("the limit is"), std::string::npos);
    admission.leave_queue({1, 5000});
    EXPECT_TRUE(admission.enter({1, 600}).ok());
    EXPECT_FALSE(admission.enter({1, 401}).ok());
    EXPECT_TRUE(admission.enter({1, 400}).ok());
}

TEST(Admission, ClosedItTakesNobodyAndIsIdleWhenAllHaveGone) {
    Admission admission(4, 1000);
    ASSERT_TRUE(admission.enter({1, 10}).ok());
    admission.close();
    EXPECT_EQ(admission.enter({1, 10}).error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(admission.wait_idle(std::chrono::milliseconds(1)));
    admission.leave_queue({1, 10});
    EXPECT_TRUE(admission.leave(1));
    EXPECT_TRUE(admission.wait_idle(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace pagoda::engine
