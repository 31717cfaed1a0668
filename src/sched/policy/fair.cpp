// Fair share by client: a virtual token counter for each (Sheng et al., "Fairness in serving large
// language models", OSDI 2024). The client that got least is served next, its own sequences in
// order of arrival. Output weighs twice as much as prompt. A client that was away comes back level
// with those that stayed, so that idleness saves up no credit. Preempted sequences come before all.

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "sched/policy/rank_queue.h"

namespace pagoda::sched {

namespace {

constexpr std::int64_t kPromptWeight = 1;
constexpr std::int64_t kOutputWeight = 2;

struct Client {
    std::int64_t counter = 0;
    std::int64_t num_sequences = 0;  // waiting and running
    std::map<SequenceRank, const Sequence*> waiting;
};

// Waiting clients, least served first.
using ClientOrder = std::set<std::pair<std::int64_t, base::ClientId>>;
using Clients = std::unordered_map<base::ClientId, Client>;

class FairWalk final : public AdmissionOrder {
  public:
    FairWalk(const RankQueue& resumed, const ClientOrder& order, const Clients& clients)
        : resumed_(resumed), next_client_(order.begin()), end_(order.end()), clients_(clients) {}

    [[nodiscard]] const Sequence* next() override {
        is_resumed_ = true;
        if (const Sequence* sequence = resumed_.next()) return sequence;
        is_resumed_ = false;
        if (!opened_.empty() && (next_client_ == end_ || opened_.begin()->first <= *next_client_)) {
            current_ = opened_.begin();
        } else if (next_client_ != end_) {
            const auto& waiting = clients_.at(next_client_->second).waiting;
            current_ =
                opened_.emplace(*next_client_++, Cursor{waiting.begin(), waiting.end()}).first;
        } else {
            return nullptr;
        }
        last_ = current_->second.next->second;
        advance(0);
        return last_;
    }

    // The client's share of this plan counts at once, so that it cannot take the whole plan.
    void admitted() override {
        if (!is_resumed_ && current_ != opened_.end()) {
            advance(kPromptWeight * last_->spec.num_prompt_tokens);
        }
    }

  private:
    struct Cursor {
        std::map<SequenceRank, const Sequence*>::const_iterator next, end;
    };
    using Opened = std::map<std::pair<std::int64_t, base::ClientId>, Cursor>;

    // Charges the current client; without a charge, goes on to its next sequence.
    void advance(std::int64_t charge) {
        auto node = opened_.extract(current_);
        node.key().first += charge;
        if (charge == 0) ++node.mapped().next;
        current_ = opened_.end();
        if (node.mapped().next != node.mapped().end)
            current_ = opened_.insert(std::move(node)).position;
    }

    RankQueue::Walk resumed_;
    ClientOrder::const_iterator next_client_, end_;
    const Clients& clients_;
    Opened opened_;  // clients of whom this walk has seen a sequence, and that have more
    Opened::iterator current_ = opened_.end();
    const Sequence* last_ = nullptr;
    bool is_resumed_ = false;
};

class Fair final : public Policy {
  public:
    [[nodiscard]] std::int64_t rank_key(const SequenceSpec& /*spec*/,
                                        base::TimePoint /*now*/) const override {
        return 0;
    }

    void enqueue(const Sequence& sequence) override {
        if (sequence.is_resumed()) return resumed_.insert(sequence);
        const base::ClientId id = sequence.spec.client;
        Client& client = clients_[id];
        if (client.num_sequences++ == 0) client.counter = std::max(client.counter, floor_);
        client.waiting.emplace(sequence.rank, &sequence);
        order_.emplace(client.counter, id);
    }

    void remove(const Sequence& sequence) override {
        if (sequence.is_resumed()) return resumed_.erase(sequence);
        const base::ClientId id = sequence.spec.client;
        Client& client = clients_.at(id);
        CHECK(client.waiting.erase(sequence.rank) == 1,
              "a sequence that does not wait was removed");
        if (client.waiting.empty()) order_.erase({client.counter, id});
    }

    void charge_prompt(const Sequence& sequence) override {
        floor_ = std::max(floor_, clients_.at(sequence.spec.client).counter);
        charge(sequence.spec.client, kPromptWeight * sequence.spec.num_prompt_tokens);
    }

    void charge_output(const Sequence& sequence, std::int64_t tokens) override {
        charge(sequence.spec.client, kOutputWeight * tokens);
    }

    void forget(const Sequence& sequence) override {
        --clients_.at(sequence.spec.client).num_sequences;
        if (clients_.size() > 2 * num_kept_ + 64) forget_idle_clients();
    }

    [[nodiscard]] std::unique_ptr<AdmissionOrder> order() const override {
        return std::make_unique<FairWalk>(resumed_, order_, clients_);
    }

  private:
    void charge(base::ClientId id, std::int64_t amount) {
        Client& client = clients_.at(id);
        const bool is_waiting = order_.erase({client.counter, id}) == 1;
        client.counter += amount;
        if (is_waiting) order_.emplace(client.counter, id);
    }

    // A client without sequences whose counter is below the floor would come back at the floor.
    void forget_idle_clients() {
        std::erase_if(clients_, [&](const auto& entry) {
            return entry.second.num_sequences == 0 && entry.second.counter <= floor_;
        });
        num_kept_ = clients_.size();
    }

    Clients clients_;
    ClientOrder order_;
    RankQueue resumed_;
    std::int64_t floor_ = 0;  // counter of the last client that was served, at that time
    std::size_t num_kept_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_fair() {
    return std::make_unique<Fair>();
}

}  // namespace pagoda::sched
