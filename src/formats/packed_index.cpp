#include "formats/packed_index.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "formats/byte_reader.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Hash128;
using base::Result;
using base::Status;

constexpr std::string_view kMagic = "PagodaPW";
constexpr std::size_t kVariantOffset = 40;
constexpr std::size_t kTableChecksumOffset = 96;
constexpr std::size_t kHeaderChecksumOffset = 112;
constexpr std::size_t kMaxNameBytes = 65535;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 30;
constexpr std::uint64_t kMaxWeightBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 62;

Error damaged(std::string reason) {
    return Error{ErrorCode::kDataLoss, std::move(reason), {}};
}

bool is_variant_name(std::string_view name) {
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    };
    return !name.empty() && name.size() <= kPackedMaxVariantBytes &&
           std::all_of(name.begin(), name.end(), is_plain);
}

bool is_zero(std::span<const std::byte> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::size_t entry_bytes(const PackedEntry& entry) {
    return 2 + entry.name.size() + 4 + 4 * 8 + 16;
}

class ByteWriter {
  public:
    template <class T>
    void put(T value) {
        const auto* from = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), from, from + sizeof(T));
    }
    void put_hash(const Hash128& hash) {
        put(hash.low);
        put(hash.high);
    }
    void put_text(std::string_view text) {
        const auto* from = reinterpret_cast<const std::byte*>(text.data());
        bytes_.insert(bytes_.end(), from, from + text.size());
    }
    void fill_to(std::size_t size) { bytes_.resize(size); }
    [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

void store_hash(std::span<std::byte> bytes, std::size_t offset, const Hash128& hash) {
    std::memcpy(bytes.data() + offset, &hash.low, 8);
    std::memcpy(bytes.data() + offset + 8, &hash.high, 8);
}

Hash128 load_hash(std::span<const std::byte> bytes, std::size_t offset) {
    Hash128 hash;
    std::memcpy(&hash.low, bytes.data() + offset, 8);
    std::memcpy(&hash.high, bytes.data() + offset + 8, 8);
    return hash;
}

std::optional<Hash128> read_hash(ByteReader& reader) {
    const auto low = reader.read<std::uint64_t>();
    const auto high = reader.read<std::uint64_t>();
    if (!low || !high) return std::nullopt;
    return Hash128{*low, *high};
}

// The header's numbers, once its checksum holds.
struct Header {
    std::uint32_t weights = 0;
    std::uint64_t index_bytes = 0;
    PackedKey key;
};

Result<Header> parse_header(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
    if (bytes.size() < kPackedHeaderBytes || file_bytes < kPackedHeaderBytes)
        return damaged(fmt::format("it ends inside its header of {} bytes", kPackedHeaderBytes));
    if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
        return damaged("it is no file of packed weights");
    ByteReader reader(bytes.first(kPackedHeaderBytes));
    static_cast<void>(reader.read_bytes(kMagic.size()));
    // The header is long enough for all of these.
    if (const auto version = reader.read<std::uint32_t>().value(); version != kPackedVersion)
        return damaged(
            fmt::format("it has version {} of the format, not {}", version, kPackedVersion));
    if (base::hash128(bytes.first(kHeaderChecksumOffset)) !=
        load_hash(bytes, kHeaderChecksumOffset))
        return damaged("its header does not have its checksum");
    Header header;
    header.key.layout = reader.read<std::uint32_t>().value();
    header.key.layout_version = reader.read<std::uint32_t>().value();
    header.weights = reader.read<std::uint32_t>().value();
    header.index_bytes = reader.read<std::uint64_t>().value();
    const auto stated_bytes = reader.read<std::uint64_t>().value();
    const auto name = reader.read_bytes(kPackedMaxVariantBytes + 1).value();
    header.key.model = read_hash(reader).value();
    const auto reserved = reader.read<std::uint64_t>().value();
    const auto end = std::find(name.begin(), name.end(), std::byte{0});
    header.key.variant.assign(reinterpret_cast<const char*>(name.data()),
                              static_cast<std::size_t>(end - name.begin()));
    if (stated_bytes != file_bytes)
        return damaged(fmt::format("it has {} bytes, not {}", file_bytes, stated_bytes));
    if (!is_variant_name(header.key.variant) || !is_zero(name.subspan(header.key.variant.size())) ||
        reserved != 0)
        return damaged("its header holds what no header holds");
    if (header.index_bytes < kPackedHeaderBytes || header.index_bytes % kPackedPage != 0 ||
        header.index_bytes > std::min(file_bytes, kPackedMaxIndexBytes))
        return damaged(fmt::format("its index has {} bytes", header.index_bytes));
    if (header.weights > kPackedMaxWeights)
        return damaged(fmt::format("it has {} weights, at most {} are allowed", header.weights,
                                   kPackedMaxWeights));
    return header;
}

// An entry that begins where the one before it ended; `place` is moved to its end.
Result<PackedEntry> parse_entry(ByteReader& reader, std::uint64_t file_bytes,
                                std::uint64_t& place) {
    constexpr const char* kCut = "its index ends inside an entry";
    const auto length = reader.read<std::uint16_t>();
    const auto name = reader.read_bytes(length.value_or(0));
    const auto type = reader.read<std::uint32_t>();
    const auto rows = reader.read<std::int64_t>();
    const auto cols = reader.read<std::int64_t>();
    const auto offset = reader.read<std::uint64_t>();
    const auto bytes = reader.read<std::uint64_t>();
    const auto checksum = read_hash(reader);
    if (!length || !name || !type || !rows || !cols || !offset || !bytes || !checksum)
        return damaged(kCut);
    PackedEntry entry{
        .name = std::string(reinterpret_cast<const char*>(name->data()), name->size()),
        .rows = *rows,
        .cols = *cols,
        .bytes = *bytes,
        .offset = *offset,
        .checksum = *checksum};
    const std::string shown = printable(entry.name);
    const auto dtype = dtype_from_gguf(*type);
    if (!dtype) return damaged(fmt::format("weight '{}' has the type {}", shown, *type));
    entry.dtype = *dtype;
    if (*rows < 1 || *cols < 1 || *rows > kMaxExtent || *cols > kMaxExtent)
        return damaged(fmt::format("weight '{}' has {} x {} values", shown, *rows, *cols));
    if (*offset != place)
        return damaged(fmt::format("weight '{}' begins at {}, not {}", shown, *offset, place));
    if (*bytes == 0 || *bytes > file_bytes - place)
        return damaged(fmt::format("weight '{}' has {} bytes, {} are left in the file", shown,
                                   *bytes, file_bytes - place));
    place += *bytes;
    const std::uint64_t padding = (kPackedAlignment - place % kPackedAlignment) % kPackedAlignment;
    if (padding > file_bytes - place)
        return damaged(fmt::format("the file ends at {}, behind weight '{}'", file_bytes, shown));
    place += padding;
    return entry;
}

}  // namespace

Status place_packed_entries(PackedIndex& index) {
    if (!is_variant_name(index.key.variant))
        return base::invalid(
            fmt::format("'{}' can be no variant of a packed file", printable(index.key.variant)));
    if (index.entries.size() > kPackedMaxWeights)
        return base::invalid(fmt::format("{} weights, a packed file holds {}", index.entries.size(),
                                         kPackedMaxWeights));
    std::uint64_t table = kPackedHeaderBytes;
    for (const PackedEntry& entry : index.entries) {
        if (entry.name.size() > kMaxNameBytes || entry.bytes == 0 || entry.bytes > kMaxWeightBytes)
            return base::invalid(fmt::format("weight '{}' of {} bytes does not suit a packed file",
                                             printable(entry.name), entry.bytes));
        table += entry_bytes(entry);
    }
    index.index_bytes = align_up(table, kPackedPage);
    if (index.index_bytes > kPackedMaxIndexBytes)
        return base::invalid(fmt::format("an index of {} bytes, at most {} are allowed",
                                         index.index_bytes, kPackedMaxIndexBytes));
    std::uint64_t place = index.index_bytes;
    for (PackedEntry& entry : index.entries) {
        entry.offset = place;
        if (entry.bytes > kMaxFileBytes - place)
            return base::invalid("the weights are too many bytes for a packed file");
        place = align_up(place + entry.bytes, kPackedAlignment);
    }
    index.file_bytes = place;
    return {};
}

std::vector<std::byte> encode_packed_index(const PackedIndex& index) {
    ByteWriter writer;
    writer.put_text(kMagic);
    writer.put(kPackedVersion);
    writer.put(index.key.layout);
    writer.put(index.key.layout_version);
    writer.put(static_cast<std::uint32_t>(index.entries.size()));
    writer.put(index.index_bytes);
    writer.put(index.file_bytes);
    writer.put_text(index.key.variant);
    writer.fill_to(kVariantOffset + kPackedMaxVariantBytes + 1);
    writer.put_hash(index.key.model);
    writer.fill_to(kPackedHeaderBytes);
    for (const PackedEntry& entry : index.entries) {
        writer.put(static_cast<std::uint16_t>(entry.name.size()));
        writer.put_text(entry.name);
        writer.put(gguf_tensor_type(entry.dtype));
        writer.put(entry.rows);
        writer.put(entry.cols);
        writer.put(entry.offset);
        writer.put(entry.bytes);
        writer.put_hash(entry.checksum);
    }
    writer.fill_to(static_cast<std::size_t>(index.index_bytes));
    std::vector<std::byte> bytes = writer.take();
    seal_packed_index(bytes);
    return bytes;
}

void seal_packed_index(std::span<std::byte> bytes) {
    CHECK(bytes.size() >= kPackedHeaderBytes, "a packed index begins with a header");
    store_hash(bytes, kTableChecksumOffset, base::hash128(bytes.subspan(kPackedHeaderBytes)));
    store_hash(bytes, kHeaderChecksumOffset, base::hash128(bytes.first(kHeaderChecksumOffset)));
}

Result<std::uint64_t> packed_index_bytes(std::span<const std::byte> header,
                                         std::uint64_t file_bytes) {
    const Result<Header> parsed = parse_header(header, file_bytes);
    if (!parsed) return parsed.error();
    return parsed->index_bytes;
}

Result<PackedIndex> parse_packed_index(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
    Result<Header> header = parse_header(bytes, file_bytes);
    if (!header) return header.error();
    if (header->index_bytes > bytes.size())
        return damaged(fmt::format("it ends inside its index of {} bytes", header->index_bytes));
    const auto table =
        bytes.first(static_cast<std::size_t>(header->index_bytes)).subspan(kPackedHeaderBytes);
    if (base::hash128(table) != load_hash(bytes, kTableChecksumOffset))
        return damaged("its index does not have its checksum");
    PackedIndex index{.key = std::move(header->key),
                      .index_bytes = header->index_bytes,
                      .file_bytes = file_bytes};
    ByteReader reader(table);
    std::uint64_t place = index.index_bytes;
    for (std::uint32_t number = 0; number < header->weights; ++number) {
        Result<PackedEntry> entry = parse_entry(reader, file_bytes, place);
        if (!entry) return entry.error();
        index.entries.push_back(std::move(entry).value());
    }
    if (reader.remaining() >= kPackedPage || !is_zero(table.subspan(reader.position())))
        return damaged("something follows the last entry of its index");
    if (place != file_bytes)
        return damaged(fmt::format("its weights end at {}, the file at {}", place, file_bytes));
    return index;
}

}  // namespace pagoda::formats
