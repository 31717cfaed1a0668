#include "base/queue.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(BlockingQueue, IsFirstInFirstOut) {
    BlockingQueue<int> queue;
    EXPECT_TRUE(queue.try_push(1));
    EXPECT_TRUE(queue.try_push(2));
    EXPECT_EQ(queue.size(), 2U);
    EXPECT_EQ(queue.pop(), 1);
    EXPECT_EQ(queue.try_pop(), 2);
    EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(BlockingQueue, AFullQueueRefusesAndLeavesTheValue) {
    BlockingQueue<std::unique_ptr<int>> queue(1);
    EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
    auto refused = std::make_unique<int>(2);
    EXPECT_FALSE(queue.try_push(std::move(refused)));
    // NOLINTBEGIN(bugprone-use-after-move): untouched is the promise
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(*refused, 2);
    EXPECT_EQ(**queue.pop(), 1);
    EXPECT_TRUE(queue.try_push(std::move(refused)));
    // NOLINTEND(bugprone-use-after-move)
}

TEST(BlockingQueue, DrainTakesEverythingInOrder) {
    BlockingQueue<int> queue;
    for (int value = 0; value < 5; ++value) EXPECT_TRUE(queue.try_push(int{value}));
    EXPECT_EQ(queue.drain(), (std::deque<int>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(queue.drain().empty());
}

TEST(BlockingQueue, AClosedQueueGivesWhatItHoldsAndThenEnds) {
    BlockingQueue<int> queue;
    EXPECT_TRUE(queue.try_push(1));
    queue.close();
    EXPECT_TRUE(queue.is_closed());
    EXPECT_FALSE(queue.try_push(2));
    EXPECT_EQ(queue.pop(), 1);
    EXPECT_EQ(queue.pop(), std::nullopt);
    queue.wait();
}

TEST(BlockingQueue, CloseWakesEveryWaiter) {
    BlockingQueue<int> queue;
    std::vector<std::thread> waiters;
    waiters.reserve(4);
    for (int waiter = 0; waiter < 3; ++waiter) {
        waiters.emplace_back([&queue] { EXPECT_EQ(queue.pop(), std::nullopt); });
    }
    waiters.emplace_back([&queue] { queue.wait(); });
    queue.close();
    for (std::thread& waiter : waiters) waiter.join();
}

TEST(BlockingQueue, ManyProducersAndConsumersLoseAndDoubleNothing) {
    constexpr int kProducers = 4;
    constexpr int kPerProducer = 5'000;
    BlockingQueue<int> queue(64);
    std::vector<std::vector<int>> taken(3);
    std::vector<std::thread> consumers;
    consumers.reserve(taken.size());
    for (std::vector<int>& mine : taken) {
        consumers.emplace_back([&queue, &mine] {
            while (const std::optional<int> value = queue.pop()) mine.push_back(*value);
        });
    }
    std::vector<std::thread> producers;
    producers.reserve(kProducers);
    for (int producer = 0; producer < kProducers; ++producer) {
        producers.emplace_back([&queue, producer] {
            for (int item = 0; item < kPerProducer; ++item) {
                while (!queue.try_push(producer * kPerProducer + item)) std::this_thread::yield();
            }
        });
    }
    for (std::thread& producer : producers) producer.join();
    queue.close();
    for (std::thread& consumer : consumers) consumer.join();

    std::vector<int> times_seen(kProducers * kPerProducer);
    for (const std::vector<int>& mine : taken) {
        std::vector<int> last(kProducers, -1);
        for (const int value : mine) {
            ++times_seen[static_cast<std::size_t>(value)];
            int& last_of_producer = last[static_cast<std::size_t>(value / kPerProducer)];
            EXPECT_LT(last_of_producer, value) << "a consumer sees each producer's order";
            last_of_producer = value;
        }
    }
    EXPECT_EQ(times_seen, std::vector<int>(kProducers * kPerProducer, 1));
}

}  // namespace
}  // namespace pagoda::base
