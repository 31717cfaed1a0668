#pragma once
// The format of a file of packed weights: what a kernel variant makes of a model's matrices, kept
// on disk so that they need not be packed again. Little-endian; all of it is derived, so that a
// file that is not exactly as it should be is made anew rather than understood.
//
//    0  "PagodaPW"    8  format version:u32   12  layout:u32   16  layout version:u32
//   20  weights:u32  24  index bytes:u64      32  file bytes:u64
//   40  variant: 32 bytes, zeros behind the name     72  model digest:16     88  zeros:8
//   96  checksum of the index behind the header:16  112  checksum of the first 112 bytes:16
//  128  for each weight: name length:u16 name type:u32 (GGUF's number) rows:u64 cols:u64 offset:u64
//       bytes:u64 checksum:16 (base::ChunkedHash); then zeros to a whole page: the index ends here
//       the packed weights, in the order of the index and without gaps but for the zeros that bring
//       the next one, and the end of the file, to a multiple of 64
//
// Values; functions are pure and thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace pagoda::formats {

inline constexpr std::uint32_t kPackedVersion = 1;
inline constexpr std::size_t kPackedHeaderBytes = 128;
inline constexpr std::size_t kPackedMaxVariantBytes = 31;
inline constexpr std::uint64_t kPackedPage = 4096;     // the index is whole pages of it
inline constexpr std::uint64_t kPackedAlignment = 64;  // of weights and of the file
inline constexpr std::uint32_t kPackedMaxWeights = 1U << 20;
inline constexpr std::uint64_t kPackedMaxIndexBytes = std::uint64_t{64} << 20;

// What packed bytes depend on besides the source.
struct PackedKey {
    std::string variant;  // of the kernels: 1 to 31 letters, digits or underscores
    std::uint32_t layout = 0, layout_version = 0;
    base::Hash128 model;  // digest of the tensors that were packed

    friend bool operator==(const PackedKey&, const PackedKey&) = default;
};

struct PackedEntry {
    std::string name;  // of the tensor
    tensor::DType dtype = tensor::DType::kF32;
    std::int64_t rows = 0, cols = 0;
    std::uint64_t bytes = 0;   // packed
    std::uint64_t offset = 0;  // in the file
    base::Hash128 checksum;

    friend bool operator==(const PackedEntry&, const PackedEntry&) = default;
};

struct PackedIndex {
    PackedKey key;
    std::vector<PackedEntry> entries;
    std::uint64_t index_bytes = 0;  // with the header
    std::uint64_t file_bytes = 0;

    friend bool operator==(const PackedIndex&, const PackedIndex&) = default;
};

// Sets the entries' offsets and the sizes. Refuses what the format can't hold.
[[nodiscard]] base::Status place_packed_entries(PackedIndex& index);
// The first index_bytes of the file. REQUIRES: place_packed_entries().
[[nodiscard]] std::vector<std::byte> encode_packed_index(const PackedIndex& index);
// Writes both checksums of an encoded index over those that are there. For encode_packed_index()
// and for who damages files on purpose. REQUIRES: at least a header.
void seal_packed_index(std::span<std::byte> bytes);

// How many bytes the index has, from the file's first ones and its size; at most
// kPackedMaxIndexBytes and never more than the file.
[[nodiscard]] base::Result<std::uint64_t> packed_index_bytes(std::span<const std::byte> header,
                                                             std::uint64_t file_bytes);
// Trusts nothing. `bytes` are the index; more may follow. Every entry that comes out lies inside
// the file, aligned, behind the one before it. Errors say what is wrong, not where.
[[nodiscard]] base::Result<PackedIndex> parse_packed_index(std::span<const std::byte> bytes,
                                                           std::uint64_t file_bytes);

}  // namespace pagoda::formats
