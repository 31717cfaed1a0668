#pragma once
// The numbers and limits of the GGUF format, versions 2 and 3 (little-endian), and a GGUF file as
// plain data, the form in which it is read and written:
//
//   +----------------------------------------------------------------+
//   | "GGUF"  version:u32  num_tensors:u64  num_entries:u64          |
//   | entry:  key:string  type:u32  value                            |  num_entries times
//   | tensor: name:string  num_dims:u32  dims:u64[]  type:u32        |
//   |         offset:u64 (from the start of the data)                |  num_tensors times
//   | padding to the alignment                                       |
//   | data of the tensors, each at a multiple of the alignment       |
//   +----------------------------------------------------------------+
//
//   string = length:u64 bytes          array = item type:u32 count:u64 items
//
// Dimensions stand innermost first in the file and outermost first in a shape here.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "tensor/dtype.h"

namespace pagoda::formats {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr std::uint64_t kGgufDefaultAlignment = 32;
constexpr std::uint64_t kGgufMinAlignment = 8;
constexpr std::uint64_t kGgufMaxAlignment = 1U << 20;
// Of one tensor: its size and its offset together stay within 64 bits.
constexpr std::uint64_t kGgufMaxTensorBytes = std::uint64_t{1} << 62;
constexpr std::size_t kGgufMaxNameBytes = 65535;           // keys and tensor names
constexpr std::size_t kGgufMaxArrayItems = 1U << 24;       // in one array
constexpr std::size_t kGgufMaxTotalArrayItems = 1U << 26;  // in all arrays of a file
constexpr int kGgufMaxArrayDepth = 4;
constexpr std::uint32_t kGgufMaxDims = 4;

constexpr std::string_view kGgufAlignmentKey = "general.alignment";
constexpr std::string_view kGgufSplitIndexKey = "split.no";
constexpr std::string_view kGgufSplitCountKey = "split.count";
constexpr std::string_view kGgufSplitTensorsKey = "split.tensors.count";

// Types of metadata values, by their numbers in the file.
enum class GgufType : std::uint32_t {
    kUint8 = 0,
    kInt8 = 1,
    kUint16 = 2,
    kInt16 = 3,
    kUint32 = 4,
    kInt32 = 5,
    kFloat32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kUint64 = 10,
    kInt64 = 11,
    kFloat64 = 12,
};

struct GgufTypeInfo {
    GgufType type;
    std::string_view name;  // "u32"
    std::size_t min_bytes;  // of a value in the file; exact for numbers
};

// Null when the format has no such type.
[[nodiscard]] const GgufTypeInfo* find_gguf_type(std::uint32_t number);

// Types of tensors: the number of each DType in the file, and back.
[[nodiscard]] std::uint32_t gguf_tensor_type(tensor::DType dtype);
[[nodiscard]] std::optional<tensor::DType> dtype_from_gguf(std::uint32_t number);
// The name of a type that the format knows and this engine does not; empty for unknown numbers.
[[nodiscard]] std::string_view unsupported_gguf_tensor_type(std::uint32_t number);

// The place of a data section after a header of that many bytes. REQUIRES: no overflow.
[[nodiscard]] constexpr std::uint64_t align_up(std::uint64_t bytes, std::uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

struct GgufEntry {
    std::string key;
    GgufType type = GgufType::kString;
    MetaValue value;
    // Of an array: the type of its items, of the innermost ones where arrays nest. kArray when an
    // array of arrays holds none.
    GgufType item_type = GgufType::kString;
};

struct GgufTensor {
    std::string name;
    tensor::DType dtype = tensor::DType::kF32;
    std::vector<std::int64_t> shape;  // outermost first, 1 to 4 extents, none 0
    std::span<const std::byte> data;  // borrowed: of the file's bytes, or of whoever writes a file
};

struct GgufFile {
    std::uint32_t version = 3;
    std::uint64_t alignment = kGgufDefaultAlignment;  // written as general.alignment unless default
    std::vector<GgufEntry> entries;
    std::vector<GgufTensor> tensors;

    [[nodiscard]] const MetaValue* find(std::string_view key) const;
    // The value when the key is there and holds an integer.
    [[nodiscard]] std::optional<std::int64_t> find_int(std::string_view key) const;
};

// Text from a file, for a message: at most 80 characters, everything but printable ASCII escaped.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace pagoda::formats
