// Ids of different kinds neither mix nor convert.
#include "base/ids.h"

namespace pagoda::base {

std::int64_t twice(SeqId id) {
    return static_cast<std::int64_t>(id.value) * 2;
}

// The control: what is meant to compile does.
const std::int64_t kFromItsOwnKind = twice(SeqId{4});
const bool kOrdered = BlockId{1} < BlockId{2};

#if MISUSE == 1  // error: (could not convert|no matching function)
const std::int64_t kFromAnotherKind = twice(RequestId{4});
#elif MISUSE == 2  // error: (could not convert|no matching function)
const std::int64_t kFromANumber = twice(4);
#elif MISUSE == 3  // error: (no match for|invalid operands)
const bool kMixed = SeqId{1} == RequestId{1};
#elif MISUSE == 4  // error: (cannot convert|no viable conversion)
const std::uint64_t kToANumber = SeqId{1};
#elif MISUSE == 5  // error: (no match for|invalid operands)
const auto kArithmetic = BlockId{1} + BlockId{2};
#endif

}  // namespace pagoda::base
