// A block handle moves, is never copied, and is made by its pool alone, so that every block is
// given back exactly once; and what may have failed is not ignored. given back exactly once.
#include <optional>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "kv/index/block_pool.h"

namespace pagoda::kv {

// The control: handles move, and their pool makes them.
BlockHandle pass_on(BlockHandle handle) {
    return handle;
}
BlockHandle take_first(BlockPool& pool) {
    std::optional<BlockHandle> taken = pool.take();
    return pass_on(std::move(*taken));
}
static_assert(std::is_nothrow_move_constructible_v<BlockHandle>);

#if MISUSE == 1  // error: (use of deleted function|call to deleted constructor)
BlockHandle copy(const BlockHandle& handle) {
    return handle;
}
#elif MISUSE == 2  // error: (use of deleted function|overload resolution selected deleted operator)
void assign(BlockHandle& to, const BlockHandle& from) {
    to = from;
}
#elif MISUSE == \
    3  // error: (is private within this context|calling a private constructor|private member)
BlockHandle forge(BlockPool& pool) {
    return BlockHandle(pool, base::BlockId{0});
}
#elif MISUSE == 4  // error: (use of deleted function|call to deleted constructor)
BlockPool copy(const BlockPool& pool) {
    return pool;
}
#endif

}  // namespace pagoda::kv

namespace pagoda::base {

Result<int> parse();

#if MISUSE == 5  // error: (ignoring return|ignoring returned value).*nodiscard
void ignore() {
    parse();
}
#endif

}  // namespace pagoda::base
