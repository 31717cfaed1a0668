#pragma once
// EncodeState: what one encode call carries: the ids so far, scratch space, and the question
// whether the caller has given up. Owned by one thread, for one call.

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace pagoda::text {

// A run of bytes of one word that is a token, or may become part of one.
struct Symbol {
    std::uint32_t begin = 0;
    std::uint32_t bytes = 0;  // 0: merged away
    base::TokenId id = -1;
    std::int32_t prev = -1, next = -1;
};

class EncodeState {
  public:
    explicit EncodeState(const EncodeOptions& options) : options_(options) {}

    // Counts work in bytes or merges and asks the caller every 64 Ki of it. False: give up.
    [[nodiscard]] bool go_on(std::size_t work) {
        work_ += work;
        if (work_ < kWorkPerCheck) return !is_cancelled_;
        work_ = 0;
        if (options_.is_cancelled != nullptr && options_.is_cancelled(options_.cancel_context)) {
            is_cancelled_ = true;
        }
        return !is_cancelled_;
    }

    std::vector<base::TokenId> ids;
    std::size_t fragment_begin = 0;  // in ids: where the text between special tokens began
    std::vector<Symbol> symbols;     // scratch of the word at hand
    std::string text;                // scratch of the fragment at hand

  private:
    static constexpr std::size_t kWorkPerCheck = 64U << 10;
    const EncodeOptions& options_;  // the caller's, for this call
    std::size_t work_ = 0;
    bool is_cancelled_ = false;
};

}  // namespace pagoda::text
