#include <algorithm>

#include "loadgen/random_text.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {
namespace {

class Prompts final : public Workload {
  public:
    Prompts(const PromptShape& shape, std::uint64_t seed)
        : shape_(shape), random_(seed), shared_(random_text(random_, shape.shared_tokens)) {}

    std::optional<Ask> next() override {
        const std::int64_t length = random_length(random_, shape_.prompt_tokens, shape_.spread);
        const std::int64_t own = std::max<std::int64_t>(length - shape_.shared_tokens, 1);
        std::string text = shared_;
        if (!text.empty()) text += ' ';
        text += random_text(random_, own);
        return Ask{.session = num_sessions_++,
                   .messages = {{"user", std::move(text)}},
                   .max_tokens = random_length(random_, shape_.output_tokens, shape_.spread)};
    }
    void answered(std::size_t /*session*/, std::string /*text*/) override {}

  private:
    PromptShape shape_;
    Random random_;
    std::string shared_;
    std::size_t num_sessions_ = 0;
};

}  // namespace

std::unique_ptr<Workload> prompts(const PromptShape& shape, std::uint64_t seed) {
    return std::make_unique<Prompts>(shape, seed);
}

}  // namespace pagoda::loadgen
