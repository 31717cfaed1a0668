// Any bytes as a file of packed weights: refused with one line, or an index whose entries lie in
// the file one behind the other, that is written again with the same bytes. The same with checksums
// that hold, so that what stands behind them is reached.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "formats/packed_index.h"

namespace {

using namespace pagoda;

constexpr std::size_t kIndexBytesAt = 24, kFileBytesAt = 32;

void put(std::vector<std::byte>& bytes, std::size_t offset, std::uint64_t value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

void check_index(const formats::PackedIndex& index, std::span<const std::byte> bytes) {
    std::uint64_t place = index.index_bytes;
    for (const formats::PackedEntry& entry : index.entries) {
        CHECK(entry.offset % formats::kPackedAlignment == 0, "an entry out of alignment");
        CHECK(entry.offset >= place && entry.bytes > 0, "an entry inside the one before");
        CHECK(entry.offset <= bytes.size() && entry.bytes <= bytes.size() - entry.offset,
              "an entry beyond the file");
        place = entry.offset + entry.bytes;
    }
    const std::vector<std::byte> again = formats::encode_packed_index(index);
    CHECK(
        again.size() == index.index_bytes && std::equal(again.begin(), again.end(), bytes.begin()),
        "what was read is not what is written");
    formats::PackedIndex placed = index;
    CHECK(formats::place_packed_entries(placed).ok() && placed.entries == index.entries,
          "the entries have other places when they are written");
}

void look_at(std::span<const std::byte> bytes) {
    const auto size = formats::packed_index_bytes(bytes, bytes.size());
    const auto index = formats::parse_packed_index(bytes, bytes.size());
    if (index.ok()) {
        CHECK(size.ok() && *size == index->index_bytes, "an index of two sizes");
        check_index(*index, bytes);
        return;
    }
    const std::string& message = index.error().message;
    CHECK(!message.empty() && message.find('\n') == std::string::npos, message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    look_at(bytes);
    if (size < formats::kPackedHeaderBytes) return 0;
    std::vector<std::byte> sealed(bytes.begin(), bytes.end());
    put(sealed, kFileBytesAt, std::uint64_t{size});
    std::uint64_t index_bytes = 0;
    std::memcpy(&index_bytes, sealed.data() + kIndexBytesAt, sizeof(index_bytes));
    if (index_bytes < formats::kPackedHeaderBytes || index_bytes > size) {
        index_bytes = size / formats::kPackedPage * formats::kPackedPage;
        put(sealed, kIndexBytesAt, index_bytes);
    }
    if (index_bytes < formats::kPackedHeaderBytes) return 0;
    formats::seal_packed_index(std::span(sealed).first(static_cast<std::size_t>(index_bytes)));
    look_at(sealed);
    return 0;
}
