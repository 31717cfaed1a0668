#include "formats/gguf_value_reader.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Error value_error(std::string reason) {
    return Error{ErrorCode::kDataLoss, std::move(reason)};
}
Error ended() {
    return value_error({});
}

// One item, widened to the type that MetaValue keeps.
template <class Wide, class Stored>
Result<Wide> read_number(ByteReader& reader) {
    const auto stored = reader.read<Stored>();
    if (!stored) return ended();
    if constexpr (std::is_same_v<Stored, std::uint64_t>) {
        if (*stored > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return value_error(fmt::format("{} exceeds the largest integer {}", *stored,
                                           std::numeric_limits<std::int64_t>::max()));
    }
    return static_cast<Wide>(*stored);
}

Result<bool> read_bool(ByteReader& reader) {
    const auto stored = reader.read<std::uint8_t>();
    if (!stored) return ended();
    if (*stored > 1)
        return value_error(fmt::format("a boolean is stored as {}, must be 0 or 1", *stored));
    return *stored == 1;
}

Result<std::string> read_string(ByteReader& reader) {
    const auto length = reader.read<std::uint64_t>();
    if (!length) return ended();
    const auto bytes = reader.read_bytes(*length);
    if (!bytes)
        return value_error(
            fmt::format("a string of {} bytes, but only {} bytes are left in the file", *length,
                        reader.remaining()));
    return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Result<std::int64_t> read_integer(ByteReader& reader, GgufType type) {
    using Wide = std::int64_t;
    switch (type) {
        case GgufType::kUint8:
            return read_number<Wide, std::uint8_t>(reader);
        case GgufType::kInt8:
            return read_number<Wide, std::int8_t>(reader);
        case GgufType::kUint16:
            return read_number<Wide, std::uint16_t>(reader);
        case GgufType::kInt16:
            return read_number<Wide, std::int16_t>(reader);
        case GgufType::kUint32:
            return read_number<Wide, std::uint32_t>(reader);
        case GgufType::kInt32:
            return read_number<Wide, std::int32_t>(reader);
        case GgufType::kUint64:
            return read_number<Wide, std::uint64_t>(reader);
        default:
            return read_number<Wide, std::int64_t>(reader);
    }
}

Result<double> read_float(ByteReader& reader, GgufType type) {
    return type == GgufType::kFloat32 ? read_number<double, float>(reader)
                                      : read_number<double, double>(reader);
}

// `count` items, whose place in the file was checked.
template <class T, class ReadItem>
Result<MetaArray> read_items(std::uint64_t count, const ReadItem& read_item) {
    std::vector<T> items;
    items.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t index = 0; index < count; ++index) {
        Result<T> item = read_item();
        if (!item) {
            if (item.error().message.empty()) return ended();
            return value_error(fmt::format("item {}: {}", index, item.error().message));
        }
        items.push_back(*std::move(item));
    }
    return MetaArray{std::move(items)};
}

Result<MetaArray> read_plain_items(ByteReader& reader, GgufType type, std::uint64_t count) {
    switch (type) {
        case GgufType::kBool:
            return read_items<bool>(count, [&] { return read_bool(reader); });
        case GgufType::kString:
            return read_items<std::string>(count, [&] { return read_string(reader); });
        case GgufType::kFloat32:
        case GgufType::kFloat64:
            return read_items<double>(count, [&] { return read_float(reader, type); });
        default:
            return read_items<std::int64_t>(count, [&] { return read_integer(reader, type); });
    }
}

}  // namespace

Result<TypedValue> GgufValueReader::read(GgufType type) {
    if (type == GgufType::kArray) {
        Result<TypedArray> array = read_array(1);
        if (!array) return array.error();
        return TypedValue{std::move(array->array), array->item_type};
    }
    Result<MetaValue> value = read_scalar(type);
    if (!value) return value.error();
    return TypedValue{*std::move(value)};
}

Result<MetaValue> GgufValueReader::read_scalar(GgufType type) {
    const auto widen = [](auto value) -> Result<MetaValue> {
        if (!value) return value.error();
        return MetaValue(*std::move(value));
    };
    switch (type) {
        case GgufType::kBool:
            return widen(read_bool(reader_));
        case GgufType::kString:
            return widen(read_string(reader_));
        case GgufType::kFloat32:
        case GgufType::kFloat64:
            return widen(read_float(reader_, type));
        default:
            return widen(read_integer(reader_, type));
    }
}

Status GgufValueReader::check_array_size(const GgufTypeInfo& type, std::uint64_t count) {
    const std::size_t max_items = reader_.remaining() / type.min_bytes;
    if (count > max_items)
        return value_error(
            fmt::format("an array of {} {} items, but the {} bytes left in the file hold {}", count,
                        type.name, reader_.remaining(), max_items));
    if (count > kGgufMaxArrayItems)
        return value_error(
            fmt::format("an array of {} items; at most {} are allowed", count, kGgufMaxArrayItems));
    num_array_items_ += static_cast<std::size_t>(count);
    if (num_array_items_ > kGgufMaxTotalArrayItems)
        return value_error(
            fmt::format("more than {} array items in one file", kGgufMaxTotalArrayItems));
    return {};
}

Result<GgufValueReader::TypedArray> GgufValueReader::read_array(int depth) {
    if (depth > kGgufMaxArrayDepth)
        return value_error(fmt::format("arrays nest deeper than {}", kGgufMaxArrayDepth));
    const auto number = reader_.read<std::uint32_t>();
    const auto count = reader_.read<std::uint64_t>();
    if (!number || !count) return ended();
    const GgufTypeInfo* type = find_gguf_type(*number);
    if (type == nullptr) return value_error(fmt::format("array item type {} is unknown", *number));
    if (Status fits = check_array_size(*type, *count); !fits) return fits.error();
    if (type->type == GgufType::kArray) return read_nested(*count, depth);
    Result<MetaArray> array = read_plain_items(reader_, type->type, *count);
    if (!array) return array.error();
    return TypedArray{*std::move(array), type->type};
}

Result<GgufValueReader::TypedArray> GgufValueReader::read_nested(std::uint64_t count, int depth) {
    std::vector<MetaArray> arrays;
    arrays.reserve(static_cast<std::size_t>(count));
    GgufType innermost = GgufType::kArray;
    for (std::uint64_t index = 0; index < count; ++index) {
        Result<TypedArray> inner = read_array(depth + 1);
        if (!inner) return inner.error();
        if (innermost == GgufType::kArray) innermost = inner->item_type;
        if (inner->item_type != innermost && inner->item_type != GgufType::kArray)
            return value_error("the arrays in an array differ in the type of their items");
        arrays.push_back(std::move(inner->array));
    }
    return TypedArray{MetaArray{std::move(arrays)}, innermost};
}

}  // namespace pagoda::formats
