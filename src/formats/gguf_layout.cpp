#include "formats/gguf_layout.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

Error tensor_error(const GgufTensor& tensor, const std::string& reason) {
    return Error{ErrorCode::kDataLoss,
                 fmt::format("tensor '{}' {}", printable(tensor.name), reason), tensor.name};
}

std::string describe_extents(std::span<const std::uint64_t> extents) {
    std::string text;
    for (const std::uint64_t extent : extents)
        text += fmt::format("{}{}", text.empty() ? "" : " x ", extent);
    return text;
}

Status check_place(const TensorPlace& place, std::uint64_t alignment, std::uint64_t data_begin,
                   std::uint64_t file_bytes) {
    if (place.offset % alignment != 0)
        return tensor_error(place.tensor,
                            fmt::format("starts at offset {}, which is no multiple of the "
                                        "alignment {}",
                                        place.offset, alignment));
    const std::uint64_t data_bytes = file_bytes > data_begin ? file_bytes - data_begin : 0;
    if (place.offset <= data_bytes && place.bytes <= data_bytes - place.offset) return {};
    return tensor_error(
        place.tensor,
        fmt::format("takes {} bytes at offset {} of the data, but the file of {} bytes "
                    "holds only {} bytes of data (truncated, or a piece of a larger file?)",
                    place.bytes, place.offset, file_bytes, data_bytes));
}

// Tensors in the order of their offsets.
Status check_overlaps(const std::vector<const TensorPlace*>& sorted) {
    for (std::size_t next = 1; next < sorted.size(); ++next) {
        const TensorPlace& before = *sorted[next - 1];
        const TensorPlace& after = *sorted[next];
        if (after.offset - before.offset < before.bytes)
            return tensor_error(
                after.tensor,
                fmt::format("at offset {} overlaps tensor '{}', which takes {} bytes at "
                            "offset {}",
                            after.offset, printable(before.tensor.name), before.bytes,
                            before.offset));
    }
    return {};
}

bool has_magic_at(std::span<const std::byte> file, std::uint64_t position) {
    return position <= file.size() && file.size() - position >= kGgufMagic.size() &&
           std::memcmp(file.data() + position, kGgufMagic.data(), kGgufMagic.size()) == 0;
}

// `end` is where the last tensor, or the header of a file without tensors, ends.
Status check_end(std::span<const std::byte> file, std::uint64_t end, std::uint64_t alignment) {
    const std::uint64_t padded_end = align_up(end, alignment);
    if (has_magic_at(file, end) || has_magic_at(file, padded_end))
        return Error{
            ErrorCode::kDataLoss,
            "another GGUF file follows its last tensor: parts of a split model must stay separate "
            "files named NAME-00001-of-0000N.gguf"};
    if (file.size() > padded_end)
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{} bytes follow the last tensor, which ends at byte {}",
                                 file.size() - padded_end, end)};
    return {};
}

}  // namespace

Status measure(std::span<const std::uint64_t> extents, TensorPlace& place) {
    const tensor::DTypeInfo& type = tensor::info(place.tensor.dtype);
    const auto block_values = static_cast<std::uint64_t>(type.block_values);
    const auto block_bytes = static_cast<std::uint64_t>(type.block_bytes);
    std::uint64_t blocks = 1;
    for (const std::uint64_t extent : extents) {
        if (extent == 0)
            return tensor_error(
                place.tensor, fmt::format("has a dimension of 0 ({})", describe_extents(extents)));
        const bool is_innermost = place.tensor.shape.empty();
        if (is_innermost && extent % block_values != 0)
            return tensor_error(
                place.tensor,
                fmt::format("has rows of {} values, not a multiple of {}, the block of {}", extent,
                            type.block_values, type.name));
        const std::uint64_t factor = is_innermost ? extent / block_values : extent;
        // Also keeps every extent and the number of values within int64.
        if (factor > kGgufMaxTensorBytes / block_values / block_bytes / blocks)
            return tensor_error(place.tensor, fmt::format("is too large: {} values of {}",
                                                          describe_extents(extents), type.name));
        blocks *= factor;
        place.tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    std::reverse(place.tensor.shape.begin(), place.tensor.shape.end());
    place.bytes = blocks * block_bytes;
    return {};
}

Result<std::vector<GgufTensor>> lay_out_tensors(std::span<const std::byte> file,
                                                std::size_t header_bytes, std::uint64_t alignment,
                                                std::vector<TensorPlace> places) {
    std::vector<std::string_view> names;
    names.reserve(places.size());
    for (const TensorPlace& place : places) names.push_back(place.tensor.name);
    if (const auto twice = find_duplicate(std::move(names)))
        return Error{ErrorCode::kDataLoss,
                     fmt::format("tensor '{}' occurs twice", printable(*twice)),
                     std::string(*twice)};
    const std::uint64_t data_begin = align_up(header_bytes, alignment);
    std::vector<const TensorPlace*> sorted;
    for (const TensorPlace& place : places) {
        if (Status fits = check_place(place, alignment, data_begin, file.size()); !fits)
            return fits.error();
        sorted.push_back(&place);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const TensorPlace* a, const TensorPlace* b) { return a->offset < b->offset; });
    if (Status apart = check_overlaps(sorted); !apart) return apart.error();
    const std::uint64_t end =
        sorted.empty() ? header_bytes : data_begin + sorted.back()->offset + sorted.back()->bytes;
    if (Status ends = check_end(file, end, alignment); !ends) return ends.error();
    std::vector<GgufTensor> tensors;
    tensors.reserve(places.size());
    for (TensorPlace& place : places) {
        place.tensor.data = file.subspan(static_cast<std::size_t>(data_begin + place.offset),
                                         static_cast<std::size_t>(place.bytes));
        tensors.push_back(std::move(place.tensor));
    }
    return tensors;
}

std::optional<std::string_view> find_duplicate(std::vector<std::string_view> names) {
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return std::nullopt;
    return *twice;
}

}  // namespace pagoda::formats
