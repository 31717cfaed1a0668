#pragma once
// The matrices of well-known model sizes, for benches: output x input features of the distinct
// layers of Llama-like models. Constant.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace pagoda::apps {

struct MatrixShape {
    std::int64_t out = 0, in = 0;
    friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

// q and attention output, k and v, gate and up, down, head.
struct ModelShapes {
    std::string_view name;
    std::array<MatrixShape, 5> shapes;
};

inline constexpr std::array kModelShapes = {
    ModelShapes{"135m", {{{576, 576}, {192, 576}, {1536, 576}, {576, 1536}, {49152, 576}}}},
    ModelShapes{"360m", {{{960, 960}, {320, 960}, {2560, 960}, {960, 2560}, {49152, 960}}}},
    ModelShapes{"1b", {{{2048, 2048}, {512, 2048}, {8192, 2048}, {2048, 8192}, {128256, 2048}}}},
    ModelShapes{"3b", {{{3072, 3072}, {1024, 3072}, {8192, 3072}, {3072, 8192}, {128256, 3072}}}},
    ModelShapes{"8b", {{{4096, 4096}, {1024, 4096}, {14336, 4096}, {4096, 14336}, {128256, 4096}}}},
    ModelShapes{"14b",
                {{{5120, 5120}, {1024, 5120}, {17408, 5120}, {5120, 17408}, {151936, 5120}}}},
    ModelShapes{"32b",
                {{{8192, 5120}, {1024, 5120}, {25600, 5120}, {5120, 25600}, {151936, 5120}}}},
    ModelShapes{"70b",
                {{{8192, 8192}, {1024, 8192}, {28672, 8192}, {8192, 28672}, {128256, 8192}}}},
};

}  // namespace pagoda::apps
