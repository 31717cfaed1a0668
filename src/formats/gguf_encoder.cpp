#include "formats/gguf_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include "formats/gguf_layout.h"

namespace pagoda::formats {
namespace {

using base::Result;
using base::Status;

// Appends to a header; every value is little-endian as the host is (byte_reader.h).
class ByteSink final {
  public:
    template <class T>
    void put(T value) {
        static_assert(std::is_arithmetic_v<T>);
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof(T));
        std::memcpy(bytes_.data() + at, &value, sizeof(T));
    }
    void put_string(std::string_view text) {
        put<std::uint64_t>(text.size());
        const auto* begin = reinterpret_cast<const std::byte*>(text.data());
        bytes_.insert(bytes_.end(), begin, begin + text.size());
    }
    void put_type(GgufType type) { put(static_cast<std::uint32_t>(type)); }
    void pad(std::uint64_t alignment) {
        bytes_.resize(static_cast<std::size_t>(align_up(bytes_.size(), alignment)));
    }
    [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

base::Error wrong_value(GgufType type) {
    const GgufTypeInfo* known = find_gguf_type(static_cast<std::uint32_t>(type));
    return base::invalid(fmt::format("does not hold a value of type {}",
                                     known == nullptr ? "(unknown)" : known->name));
}

template <class Stored>
Status put_integer(ByteSink& sink, std::int64_t value) {
    if constexpr (std::is_same_v<Stored, std::uint64_t>) {
        if (value < 0) return base::invalid(fmt::format("is {}, which u64 cannot hold", value));
    } else if (value < std::int64_t{std::numeric_limits<Stored>::min()} ||
               value > std::int64_t{std::numeric_limits<Stored>::max()}) {
        return base::invalid(fmt::format("is {}, outside the range of its type", value));
    }
    sink.put(static_cast<Stored>(value));
    return {};
}

Status put_item(ByteSink& sink, GgufType type, std::int64_t value) {
    switch (type) {
        case GgufType::kUint8:
            return put_integer<std::uint8_t>(sink, value);
        case GgufType::kInt8:
            return put_integer<std::int8_t>(sink, value);
        case GgufType::kUint16:
            return put_integer<std::uint16_t>(sink, value);
        case GgufType::kInt16:
            return put_integer<std::int16_t>(sink, value);
        case GgufType::kUint32:
            return put_integer<std::uint32_t>(sink, value);
        case GgufType::kInt32:
            return put_integer<std::int32_t>(sink, value);
        case GgufType::kUint64:
            return put_integer<std::uint64_t>(sink, value);
        case GgufType::kInt64:
            return put_integer<std::int64_t>(sink, value);
        default:
            return wrong_value(type);
    }
}

Status put_item(ByteSink& sink, GgufType type, double value) {
    if (type == GgufType::kFloat32) {
        sink.put(static_cast<float>(value));
    } else if (type == GgufType::kFloat64) {
        sink.put(value);
    } else {
        return wrong_value(type);
    }
    return {};
}

Status put_item(ByteSink& sink, GgufType type, bool value) {
    if (type != GgufType::kBool) return wrong_value(type);
    sink.put<std::uint8_t>(value ? 1 : 0);
    return {};
}

Status put_item(ByteSink& sink, GgufType type, const std::string& value) {
    if (type != GgufType::kString) return wrong_value(type);
    sink.put_string(value);
    return {};
}

Status put_array(ByteSink& sink, GgufType item_type, const MetaArray& array, int depth) {
    if (depth > kGgufMaxArrayDepth)
        return base::invalid(fmt::format("has arrays nested deeper than {}", kGgufMaxArrayDepth));
    if (array.size() > kGgufMaxArrayItems)
        return base::invalid(
            fmt::format("has {} items; at most {} are allowed", array.size(), kGgufMaxArrayItems));
    if (const auto* arrays = std::get_if<std::vector<MetaArray>>(&array.items)) {
        sink.put_type(GgufType::kArray);
        sink.put<std::uint64_t>(arrays->size());
        for (const MetaArray& inner : *arrays)
            if (Status done = put_array(sink, item_type, inner, depth + 1); !done) return done;
        return {};
    }
    // Also for an empty array, whose items cannot show that their type is wrong.
    if (item_type == GgufType::kArray ||
        find_gguf_type(static_cast<std::uint32_t>(item_type)) == nullptr)
        return base::invalid("has items without a type");
    sink.put_type(item_type);
    sink.put<std::uint64_t>(array.size());
    const auto put_items = [&](const auto& items) -> Status {
        using Items = std::decay_t<decltype(items)>;
        if constexpr (!std::is_same_v<Items, std::vector<MetaArray>>) {
            for (const typename Items::value_type& item : items)
                if (Status done = put_item(sink, item_type, item); !done) return done;
        }
        return {};
    };
    return std::visit(put_items, array.items);
}

Status put_value(ByteSink& sink, const GgufEntry& entry) {
    const auto put_alternative = [&](const auto& value) -> Status {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, MetaArray>) {
            if (entry.type != GgufType::kArray) return wrong_value(entry.type);
            return put_array(sink, entry.item_type, value, 1);
        } else {
            return put_item(sink, entry.type, value);
        }
    };
    return std::visit(put_alternative, entry.value);
}

Status check_name(std::string_view what, std::string_view name) {
    if (!name.empty() && name.size() <= kGgufMaxNameBytes) return {};
    return base::invalid(fmt::format("{} '{}' has {} bytes; allowed are 1 to {}", what,
                                     printable(name), name.size(), kGgufMaxNameBytes));
}

template <class Named, class Name>
Status check_names(std::string_view what, const std::vector<Named>& values, const Name& name_of) {
    std::vector<std::string_view> names;
    for (const Named& value : values) {
        names.push_back(name_of(value));
        if (Status good = check_name(what, names.back()); !good) return good;
    }
    if (const auto twice = find_duplicate(std::move(names)))
        return base::invalid(fmt::format("{} '{}' occurs twice", what, printable(*twice)));
    return {};
}

Status check_file(const GgufFile& file) {
    if (file.version != 2 && file.version != 3)
        return base::invalid(
            fmt::format("GGUF version {} cannot be written, only 2 and 3", file.version));
    if (file.alignment < kGgufMinAlignment || file.alignment > kGgufMaxAlignment ||
        !std::has_single_bit(file.alignment))
        return base::invalid(
            fmt::format("the alignment must be a power of two from {} to {}, got {}",
                        kGgufMinAlignment, kGgufMaxAlignment, file.alignment));
    if (Status good =
            check_names("key", file.entries,
                        [](const GgufEntry& entry) -> std::string_view { return entry.key; });
        !good)
        return good;
    return check_names("tensor", file.tensors,
                       [](const GgufTensor& tensor) -> std::string_view { return tensor.name; });
}

// The entries to be written: with the alignment when it is not the default and not among them.
Result<std::vector<GgufEntry>> complete_entries(const GgufFile& file) {
    std::vector<GgufEntry> entries = file.entries;
    if (file.find(kGgufAlignmentKey) == nullptr) {
        if (file.alignment != kGgufDefaultAlignment)
            entries.push_back({std::string(kGgufAlignmentKey), GgufType::kUint32,
                               static_cast<std::int64_t>(file.alignment)});
    } else if (file.find_int(kGgufAlignmentKey) != static_cast<std::int64_t>(file.alignment)) {
        return base::invalid(fmt::format("key '{}' differs from the alignment {}",
                                         kGgufAlignmentKey, file.alignment));
    }
    return entries;
}

// Checks the shape as a reader does and returns the tensor's bytes.
Result<std::uint64_t> put_tensor(ByteSink& sink, const GgufTensor& tensor, std::uint64_t offset) {
    if (tensor.shape.empty() || tensor.shape.size() > kGgufMaxDims)
        return base::invalid(fmt::format("tensor '{}' has {} dimensions; allowed are 1 to {}",
                                         printable(tensor.name), tensor.shape.size(),
                                         kGgufMaxDims));
    std::vector<std::uint64_t> extents(tensor.shape.rbegin(), tensor.shape.rend());
    TensorPlace place;
    place.tensor.name = tensor.name;
    place.tensor.dtype = tensor.dtype;
    if (Status good = measure(extents, place); !good) return good.error();
    sink.put_string(tensor.name);
    sink.put(static_cast<std::uint32_t>(extents.size()));
    for (const std::uint64_t extent : extents) sink.put(extent);
    sink.put(gguf_tensor_type(tensor.dtype));
    sink.put(offset);
    return place.bytes;
}

}  // namespace

Result<GgufHeader> encode_gguf_header(const GgufFile& file) {
    if (Status good = check_file(file); !good) return good.error();
    Result<std::vector<GgufEntry>> entries = complete_entries(file);
    if (!entries) return entries.error();
    ByteSink sink;
    for (const char letter : kGgufMagic) sink.put(letter);
    sink.put(file.version);
    sink.put<std::uint64_t>(file.tensors.size());
    sink.put<std::uint64_t>(entries->size());
    for (const GgufEntry& entry : *entries) {
        sink.put_string(entry.key);
        sink.put_type(entry.type);
        if (Status done = put_value(sink, entry); !done)
            return base::invalid(
                fmt::format("key '{}' {}", printable(entry.key), done.error().message), entry.key);
    }
    GgufHeader header;
    std::uint64_t offset = 0;
    for (const GgufTensor& tensor : file.tensors) {
        Result<std::uint64_t> bytes = put_tensor(sink, tensor, offset);
        if (!bytes) return bytes.error();
        if (offset > kGgufMaxTensorBytes)
            return base::invalid(
                fmt::format("the tensors before '{}' take {} bytes; at most {} are allowed",
                            printable(tensor.name), offset, kGgufMaxTensorBytes));
        header.tensor_bytes.push_back(*bytes);
        offset = align_up(offset + *bytes, file.alignment);
    }
    sink.pad(file.alignment);
    header.bytes = std::move(sink).take();
    return header;
}

}  // namespace pagoda::formats
