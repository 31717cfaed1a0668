#pragma once
// Rows cut into parts whose sums stay in registers.

namespace pagoda::kernels {
namespace {

// `rows` cut into parts of at most kMax rows: `larger` of size + 1 rows, the others of size.
struct RowCut {
    int parts, size, larger;
    RowCut(int rows, int max)
        : parts((rows + max - 1) / max), size(rows / parts), larger(rows - size * parts) {}
};

}  // namespace
}  // namespace pagoda::kernels
