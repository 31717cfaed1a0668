#include "formats/gguf_types.h"

#include <array>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::formats {
namespace {

using tensor::DType;

// In the order of their numbers, which find_gguf_type() relies on.
constexpr std::array kTypes{
    GgufTypeInfo{GgufType::kUint8, "u8", 1},      GgufTypeInfo{GgufType::kInt8, "i8", 1},
    GgufTypeInfo{GgufType::kUint16, "u16", 2},    GgufTypeInfo{GgufType::kInt16, "i16", 2},
    GgufTypeInfo{GgufType::kUint32, "u32", 4},    GgufTypeInfo{GgufType::kInt32, "i32", 4},
    GgufTypeInfo{GgufType::kFloat32, "f32", 4},   GgufTypeInfo{GgufType::kBool, "bool", 1},
    GgufTypeInfo{GgufType::kString, "string", 8}, GgufTypeInfo{GgufType::kArray, "array", 12},
    GgufTypeInfo{GgufType::kUint64, "u64", 8},    GgufTypeInfo{GgufType::kInt64, "i64", 8},
    GgufTypeInfo{GgufType::kFloat64, "f64", 8},
};

struct TensorTypeNumber {
    std::uint32_t number;
    DType dtype;
};

constexpr std::array kTensorTypes{
    TensorTypeNumber{0, DType::kF32},     TensorTypeNumber{1, DType::kF16},
    TensorTypeNumber{2, DType::kQ4_0},    TensorTypeNumber{3, DType::kQ4_1},
    TensorTypeNumber{6, DType::kQ5_0},    TensorTypeNumber{7, DType::kQ5_1},
    TensorTypeNumber{8, DType::kQ8_0},    TensorTypeNumber{10, DType::kQ2_K},
    TensorTypeNumber{11, DType::kQ3_K},   TensorTypeNumber{12, DType::kQ4_K},
    TensorTypeNumber{13, DType::kQ5_K},   TensorTypeNumber{14, DType::kQ6_K},
    TensorTypeNumber{20, DType::kIQ4_NL}, TensorTypeNumber{23, DType::kIQ4_XS},
    TensorTypeNumber{24, DType::kI8},     TensorTypeNumber{25, DType::kI16},
    TensorTypeNumber{26, DType::kI32},    TensorTypeNumber{27, DType::kI64},
    TensorTypeNumber{28, DType::kF64},    TensorTypeNumber{30, DType::kBF16},
    TensorTypeNumber{39, DType::kMXFP4},
};

struct TensorTypeName {
    std::uint32_t number;
    std::string_view name;
};

// Known to the format's other readers, or once known and withdrawn.
constexpr std::array kUnsupportedTensorTypes{
    TensorTypeName{4, "Q4_2"},        TensorTypeName{5, "Q4_3"},
    TensorTypeName{9, "Q8_1"},        TensorTypeName{15, "Q8_K"},
    TensorTypeName{16, "IQ2_XXS"},    TensorTypeName{17, "IQ2_XS"},
    TensorTypeName{18, "IQ3_XXS"},    TensorTypeName{19, "IQ1_S"},
    TensorTypeName{21, "IQ3_S"},      TensorTypeName{22, "IQ2_S"},
    TensorTypeName{29, "IQ1_M"},      TensorTypeName{31, "Q4_0_4_4"},
    TensorTypeName{32, "Q4_0_4_8"},   TensorTypeName{33, "Q4_0_8_8"},
    TensorTypeName{34, "TQ1_0"},      TensorTypeName{35, "TQ2_0"},
    TensorTypeName{36, "IQ4_NL_4_4"}, TensorTypeName{37, "IQ4_NL_4_8"},
    TensorTypeName{38, "IQ4_NL_8_8"},
};

constexpr std::size_t kMaxPrintable = 80;

}  // namespace

const GgufTypeInfo* find_gguf_type(std::uint32_t number) {
    return number < kTypes.size() ? &kTypes[number] : nullptr;
}

std::uint32_t gguf_tensor_type(DType dtype) {
    for (const TensorTypeNumber& entry : kTensorTypes)
        if (entry.dtype == dtype) return entry.number;
    CHECK(false, fmt::format("{} has no number in GGUF", tensor::info(dtype).name));
    return 0;
}

std::optional<DType> dtype_from_gguf(std::uint32_t number) {
    for (const TensorTypeNumber& entry : kTensorTypes)
        if (entry.number == number) return entry.dtype;
    return std::nullopt;
}

std::string_view unsupported_gguf_tensor_type(std::uint32_t number) {
    for (const TensorTypeName& entry : kUnsupportedTensorTypes)
        if (entry.number == number) return entry.name;
    return {};
}

const MetaValue* GgufFile::find(std::string_view key) const {
    for (const GgufEntry& entry : entries)
        if (entry.key == key) return &entry.value;
    return nullptr;
}

std::optional<std::int64_t> GgufFile::find_int(std::string_view key) const {
    const MetaValue* value = find(key);
    const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    return number == nullptr ? std::nullopt : std::optional(*number);
}

std::string printable(std::string_view text) {
    std::string out;
    for (const char character : text.substr(0, kMaxPrintable)) {
        const auto code = static_cast<unsigned char>(character);
        if (code < 0x20 || code > 0x7e || character == '\\') {
            out += fmt::format("\\x{:02x}", code);
        } else {
            out += character;
        }
    }
    if (text.size() > kMaxPrintable) out += "...";
    return out;
}

}  // namespace pagoda::formats
