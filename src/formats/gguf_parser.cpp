#include "formats/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "formats/byte_reader.h"
#include "formats/gguf_layout.h"
#include "formats/gguf_value_reader.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// What the smallest entry and the smallest tensor take in a file: a name of one byte each.
constexpr std::size_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr std::size_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

class GgufParser final {
  public:
    GgufParser(std::span<const std::byte> bytes, std::string_view label)
        : bytes_(bytes), label_(label), reader_(bytes), values_(reader_) {}

    Result<GgufFile> parse() {
        if (Status read = read_header(); !read) return read.error();
        if (Status read = read_entries(); !read) return read.error();
        if (Status read = read_alignment(); !read) return read.error();
        std::vector<TensorPlace> places;
        places.reserve(static_cast<std::size_t>(num_tensors_));
        for (std::uint64_t index = 0; index < num_tensors_; ++index) {
            Result<TensorPlace> place = read_tensor(index);
            if (!place) return place.error();
            places.push_back(*std::move(place));
        }
        Result<std::vector<GgufTensor>> tensors =
            lay_out_tensors(bytes_, reader_.position(), file_.alignment, std::move(places));
        if (!tensors) return with_label(tensors.error());
        file_.tensors = *std::move(tensors);
        return std::move(file_);
    }

  private:
    [[nodiscard]] Error with_label(const Error& error) const {
        return Error{error.code, fmt::format("{}: {}", label_, error.message), error.param};
    }
    [[nodiscard]] Error damaged(const std::string& reason, std::string param = {}) const {
        return Error{ErrorCode::kDataLoss, fmt::format("{}: {}", label_, reason), std::move(param)};
    }
    [[nodiscard]] Error unsupported(const std::string& reason) const {
        return Error{ErrorCode::kUnsupported, fmt::format("{}: {}", label_, reason)};
    }
    [[nodiscard]] Error cut_in(std::string_view where) const {
        return damaged(fmt::format("the file ends after {} bytes, inside {} (truncated?)",
                                   bytes_.size(), where));
    }

    Status read_header() {
        const auto magic = reader_.read_bytes(kGgufMagic.size());
        if (!magic) return cut_in("the header");
        if (!std::equal(magic->begin(), magic->end(), kGgufMagic.begin(),
                        [](std::byte a, char b) { return std::to_integer<char>(a) == b; }))
            return base::invalid(fmt::format(
                "{}: not a GGUF file: it starts with \"{}\" instead of \"GGUF\"", label_,
                printable({reinterpret_cast<const char*>(magic->data()), magic->size()})));
        const auto version = reader_.read<std::uint32_t>();
        if (!version) return cut_in("the header");
        if (Status known = check_version(*version); !known) return known;
        file_.version = *version;
        const auto num_tensors = reader_.read<std::uint64_t>();
        const auto num_entries = reader_.read<std::uint64_t>();
        if (!num_tensors || !num_entries) return cut_in("the header");
        num_tensors_ = *num_tensors;
        num_entries_ = *num_entries;
        return check_counts();
    }

    [[nodiscard]] Status check_version(std::uint32_t version) const {
        if (version == 2 || version == 3) return {};
        if (version == 1)
            return unsupported(
                "GGUF version 1 (of 2023) is not supported, only 2 and 3; convert again");
        if ((version & 0xffffU) == 0 && version != 0)
            return unsupported("a big-endian GGUF file; only little-endian ones are supported");
        return unsupported(fmt::format("GGUF version {} is not supported, only 2 and 3", version));
    }

    [[nodiscard]] Status check_counts() const {
        const std::size_t max_entries = reader_.remaining() / kMinEntryBytes;
        if (num_entries_ > max_entries)
            return damaged(fmt::format(
                "the header announces {} metadata entries; {} bytes hold at most {} (truncated?)",
                num_entries_, reader_.remaining(), max_entries));
        const std::size_t max_tensors = reader_.remaining() / kMinTensorBytes;
        if (num_tensors_ > max_tensors)
            return damaged(fmt::format(
                "the header announces {} tensors; {} bytes hold at most {} (truncated?)",
                num_tensors_, reader_.remaining(), max_tensors));
        return {};
    }

    // A key or a tensor's name; `what` is "key 3 of 20".
    Result<std::string> read_name(const std::string& what) {
        const auto length = reader_.read<std::uint64_t>();
        if (!length) return cut_in(what);
        if (*length == 0 || *length > kGgufMaxNameBytes)
            return damaged(fmt::format("{}: its name has {} bytes; allowed are 1 to {}", what,
                                       *length, kGgufMaxNameBytes));
        const auto name = reader_.read_bytes(*length);
        if (!name) return cut_in(what);
        return std::string(reinterpret_cast<const char*>(name->data()), name->size());
    }

    Status read_entries() {
        file_.entries.reserve(static_cast<std::size_t>(num_entries_));
        for (std::uint64_t index = 0; index < num_entries_; ++index) {
            Result<GgufEntry> entry = read_entry(index);
            if (!entry) return entry.error();
            file_.entries.push_back(*std::move(entry));
        }
        std::vector<std::string_view> keys;
        keys.reserve(file_.entries.size());
        for (const GgufEntry& entry : file_.entries) keys.push_back(entry.key);
        if (const auto twice = find_duplicate(std::move(keys)))
            return damaged(fmt::format("key '{}' occurs twice", printable(*twice)),
                           std::string(*twice));
        return {};
    }

    Result<GgufEntry> read_entry(std::uint64_t index) {
        Result<std::string> key =
            read_name(fmt::format("metadata key {} of {}", index + 1, num_entries_));
        if (!key) return key.error();
        GgufEntry entry;
        entry.key = *std::move(key);
        const std::string where = fmt::format("key '{}'", printable(entry.key));
        const auto number = reader_.read<std::uint32_t>();
        if (!number) return cut_in(where);
        const GgufTypeInfo* type = find_gguf_type(*number);
        if (type == nullptr)
            return damaged(fmt::format("{}: value type {} is unknown", where, *number), entry.key);
        Result<TypedValue> value = values_.read(type->type);
        if (!value) {
            if (value.error().message.empty()) return cut_in(where);
            return damaged(fmt::format("{}: {}", where, value.error().message), entry.key);
        }
        entry.type = type->type;
        entry.value = std::move(value->value);
        entry.item_type = value->item_type;
        return entry;
    }

    Status read_alignment() {
        const MetaValue* value = file_.find(kGgufAlignmentKey);
        if (value == nullptr) return {};
        const auto* alignment = std::get_if<std::int64_t>(value);
        if (alignment == nullptr)
            return damaged(fmt::format("key '{}' must be an integer", kGgufAlignmentKey),
                           std::string(kGgufAlignmentKey));
        const auto wanted = static_cast<std::uint64_t>(*alignment);
        if (wanted < kGgufMinAlignment || wanted > kGgufMaxAlignment ||
            !std::has_single_bit(wanted))
            return damaged(
                fmt::format("key '{}' must be a power of two from {} to {}, got {}",
                            kGgufAlignmentKey, kGgufMinAlignment, kGgufMaxAlignment, *alignment),
                std::string(kGgufAlignmentKey));
        file_.alignment = wanted;
        return {};
    }

    Result<TensorPlace> read_tensor(std::uint64_t index) {
        Result<std::string> name =
            read_name(fmt::format("tensor {} of {}", index + 1, num_tensors_));
        if (!name) return name.error();
        TensorPlace place;
        place.tensor.name = *std::move(name);
        const std::string where = fmt::format("tensor '{}'", printable(place.tensor.name));
        const auto num_dims = reader_.read<std::uint32_t>();
        if (!num_dims) return cut_in(where);
        if (*num_dims == 0 || *num_dims > kGgufMaxDims)
            return damaged(fmt::format("{} has {} dimensions; allowed are 1 to {}", where,
                                       *num_dims, kGgufMaxDims),
                           place.tensor.name);
        std::vector<std::uint64_t> extents;
        for (std::uint32_t dim = 0; dim < *num_dims; ++dim) {
            const auto extent = reader_.read<std::uint64_t>();
            if (!extent) return cut_in(where);
            extents.push_back(*extent);
        }
        const auto type = reader_.read<std::uint32_t>();
        const auto offset = reader_.read<std::uint64_t>();
        if (!type || !offset) return cut_in(where);
        if (Status known = take_type(*type, place.tensor); !known) return known.error();
        place.offset = *offset;
        Status measured = measure(extents, place);
        if (!measured) return with_label(measured.error());
        return place;
    }

    Status take_type(std::uint32_t number, GgufTensor& tensor) const {
        if (const auto dtype = dtype_from_gguf(number)) {
            tensor.dtype = *dtype;
            return {};
        }
        const std::string where = fmt::format("tensor '{}'", printable(tensor.name));
        const std::string_view name = unsupported_gguf_tensor_type(number);
        if (name.empty())
            return unsupported(fmt::format("{} has the unknown type number {}", where, number));
        return unsupported(fmt::format("{} has type {}, which is not supported", where, name));
    }

    std::span<const std::byte> bytes_;
    std::string_view label_;
    ByteReader reader_;
    GgufValueReader values_;
    GgufFile file_;
    std::uint64_t num_tensors_ = 0;
    std::uint64_t num_entries_ = 0;
};

}  // namespace

Result<GgufFile> parse_gguf(std::span<const std::byte> bytes, std::string_view label) {
    return GgufParser(bytes, label).parse();
}

}  // namespace pagoda::formats
