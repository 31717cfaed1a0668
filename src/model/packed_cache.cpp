#include "model/packed_cache.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/clock.h"
#include "base/terminal_text.h"

namespace pagoda::model {
namespace {

double seconds_since(base::TimePoint began) {
    return std::chrono::duration<double>(base::system_clock().now() - began).count();
}

base::Hash128 digest_bytes(std::span<const std::byte> bytes, base::ThreadTeam& team) {
    base::ChunkedHash hash(bytes.size());
    team.for_each(hash.num_chunks(), [&](std::int64_t chunk) {
        hash.set(chunk, bytes.subspan(hash.chunk_begin(chunk), hash.chunk_bytes(chunk)));
    });
    return hash.finish();
}

}  // namespace

base::Hash128 digest_tensors(const formats::Checkpoint& checkpoint, base::ThreadTeam& team) {
    std::string text;  // a line for each tensor; a name's length keeps lines from being forged
    for (const formats::CheckpointTensor& tensor : checkpoint.tensors) {
        const tensor::TensorView& view = tensor.view;
        text +=
            fmt::format("{} {} {}", tensor.name.size(), tensor.name, tensor::info(view.dtype).name);
        for (const std::int64_t extent : view.shape) text += fmt::format(" {}", extent);
        text += fmt::format(" {}\n", digest_bytes({view.data, view.bytes}, team).hex());
        if (checkpoint.storage) checkpoint.storage->release(view.data, view.bytes);
    }
    return base::hash128(std::as_bytes(std::span(text)));
}

PackedCache::PackedCache(const PackedCacheOptions& options, const formats::Checkpoint& checkpoint,
                         const kernels::DeviceContext& device)
    : options_(options), team_(*device.team) {
    const base::TimePoint began = base::system_clock().now();
    key_ = {.variant = device.kernels->name,
            .layout = device.kernels->layout,
            .layout_version = device.kernels->layout_version,
            .model = digest_tensors(checkpoint, team_)};
    digest_seconds_ = seconds_since(began);
    const std::string name = fmt::format("{}-{}.packed", key_.model.hex(), key_.variant);
    path_ = (std::filesystem::path(options_.folder) / name).string();
}

std::optional<formats::PackedFile> PackedCache::open(
    const std::vector<formats::PackedEntry>& expected) const {
    auto file = formats::PackedFile::open(path_);
    if (!file) {
        if (file.error().code != base::ErrorCode::kNotFound) tell_unusable(file.error());
        return std::nullopt;
    }
    if (const base::Status fits = file->expect(key_, expected); !fits) {
        tell_unusable(fits.error());
        return std::nullopt;
    }
    return std::move(file).value();
}

void PackedCache::write(std::vector<formats::PackedEntry> entries,
                        std::span<const std::span<const std::byte>> payloads) const {
    const base::TimePoint began = base::system_clock().now();
    std::uint64_t bytes = 0;
    for (const std::span<const std::byte> payload : payloads) bytes += payload.size();
    const base::Status written =
        formats::write_packed_file(path_, {.key = key_, .entries = std::move(entries)}, payloads,
                                   team_, options_.write_progress);
    if (!written) {
        warn("packed weights are not kept: " + written.error().message);
        return;
    }
    inform(
        fmt::format("packed weights: wrote {} to {} in {:.2f} s, the model's digest took {:.2f} s",
                    base::format_byte_size(bytes), path_, seconds_since(began), digest_seconds_));
}

void PackedCache::tell_read(std::uint64_t bytes, double seconds) const {
    inform(
        fmt::format("packed weights: read {} from {} in {:.2f} s, the model's digest took {:.2f} s",
                    base::format_byte_size(bytes), path_, seconds, digest_seconds_));
}

void PackedCache::tell_unusable(const base::Error& error) const {
    warn("packed weights are packed anew: " + error.message);
}

void PackedCache::warn(const std::string& line) const {
    if (options_.logger != nullptr) options_.logger->warning(base::terminal_line(line));
}

void PackedCache::inform(const std::string& line) const {
    if (options_.logger != nullptr) options_.logger->info(base::terminal_line(line));
}

}  // namespace pagoda::model
