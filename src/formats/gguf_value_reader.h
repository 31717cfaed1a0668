#pragma once
// GgufValueReader: metadata values of a GGUF file, widened to MetaValue. Borrows a ByteReader for
// its life; counts the array items of the whole file against their limit. Not thread-safe.

#include "base/result.h"
#include "formats/byte_reader.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {

struct TypedValue {
    MetaValue value;
    GgufType item_type = GgufType::kString;  // as in GgufEntry
};

class GgufValueReader {
  public:
    explicit GgufValueReader(ByteReader& reader) : reader_(reader) {}

    // Errors say what is wrong with the value, without file and key; the message is empty when the
    // bytes ended.
    [[nodiscard]] base::Result<TypedValue> read(GgufType type);

  private:
    struct TypedArray {
        MetaArray array;
        GgufType item_type = GgufType::kString;
    };
    base::Result<MetaValue> read_scalar(GgufType type);
    base::Result<TypedArray> read_array(int depth);
    base::Status check_array_size(const GgufTypeInfo& type, std::uint64_t count);
    base::Result<TypedArray> read_nested(std::uint64_t count, int depth);

    ByteReader& reader_;
    std::size_t num_array_items_ = 0;
};

}  // namespace pagoda::formats
