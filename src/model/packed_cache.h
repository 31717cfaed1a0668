#pragma once
// PackedCache: where a model's packed weights are kept between starts, one file for each digest of
// the model and variant of the kernels. Built and used by the loading thread, which owns the team.
// What is in the folder is believed as far as its checksums go, as the model's file is.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "formats/checkpoint.h"
#include "formats/packed_file.h"
#include "kernels/ops/device_context.h"
#include "model/model.h"

namespace pagoda::model {

// Of all tensors: names, types, shapes and bytes, in the file's order. What else is in the file (a
// chat template, say) packs nothing. Reads every byte, on all threads, and drops it from memory.
[[nodiscard]] base::Hash128 digest_tensors(const formats::Checkpoint& checkpoint,
                                           base::ThreadTeam& team);

class PackedCache {
  public:
    // Finds the model's digest. All that is given outlives the cache.
    PackedCache(const PackedCacheOptions& options, const formats::Checkpoint& checkpoint,
                const kernels::DeviceContext& device);

    // The file, when it is there and holds these weights; one line of warning when it is there and
    // does not. `expected` are entries without offset and checksum.
    [[nodiscard]] std::optional<formats::PackedFile> open(
        const std::vector<formats::PackedEntry>& expected) const;
    // Writes the file. One line of what was done, or of warning with the reason: a model is served
    // without it.
    void write(std::vector<formats::PackedEntry> entries,
               std::span<const std::span<const std::byte>> payloads) const;

    // The line that says that every weight came from the file.
    void tell_read(std::uint64_t bytes, double seconds) const;
    // The line that says why a file that is there is not used.
    void tell_unusable(const base::Error& error) const;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    void warn(const std::string& line) const;
    void inform(const std::string& line) const;

    const PackedCacheOptions& options_;
    base::ThreadTeam& team_;
    formats::PackedKey key_;
    double digest_seconds_ = 0;
    std::string path_;
};

}  // namespace pagoda::model
