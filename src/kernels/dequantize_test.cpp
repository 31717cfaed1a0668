// Dequantisation against blocks whose values are known exactly (tests/golden/gguf-quant).

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "kernels/ops/device_context.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

std::string golden_text(const std::string& name) {
    const char* folder = std::getenv("PAGODA_GOLDEN");
    if (folder == nullptr) return {};
    std::ifstream file(std::string(folder) + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::byte> bytes_from_hex(const std::string& hex) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

int check_type(const Kernels& kernels, tensor::DType dtype, const base::Json& blocks) {
    int checked = 0;
    for (const base::Json& block : blocks.as_array()) {
        const std::vector<std::byte> source = bytes_from_hex(block.find("hex")->as_string());
        const base::Json::Array& expected = block.find("values")->as_array();
        std::vector<float> got(expected.size());
        kernels.dequantize({.dtype = dtype,
                            .source = source.data(),
                            .rows = 1,
                            .cols = static_cast<std::int64_t>(expected.size()),
                            .out = got.data()});
        for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_EQ(got[i], static_cast<float>(expected[i].as_double()))
                << tensor::info(dtype).name << " block " << checked << " value " << i;
        ++checked;
    }
    return checked;
}

TEST(Dequantize, GivesTheExactValuesOfEveryBlockType) {
    const std::string text = golden_text("gguf-quant/blocks.json");
    ASSERT_FALSE(text.empty()) << "PAGODA_GOLDEN must point to tests/golden";
    const auto golden = base::Json::parse(text);
    ASSERT_TRUE(golden.ok());
    for (const Kernels& kernels : all_variants()) {
        if (!contains(detect_cpu_features(), kernels.required)) continue;
        int types = 0;
        for (const auto& [name, entry] : golden->as_object()) {
            const auto dtype = tensor::dtype_from_name(name);
            if (!dtype) continue;  // a type that no model of ours may have
            EXPECT_GT(check_type(kernels, *dtype, *entry.find("blocks")), 0) << name;
            ++types;
        }
        EXPECT_EQ(types, 13) << kernels.name;
    }
}

}  // namespace
}  // namespace pagoda::kernels
