#pragma once
// Files of packed weights on disk (the format: packed_index.h). PackedFile: one that is open for
// reading; its bytes come into memory of the reader's, and count only once their checksum held
// there, so that a file that another program changes or cuts later harms nobody. Move-only; the
// owner of the thread team calls.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "formats/packed_index.h"

namespace pagoda::formats {

class PackedFile {
  public:
    // Reads and checks the index. kNotFound when there is no such file; every other error names the
    // path and what is wrong.
    [[nodiscard]] static base::Result<PackedFile> open(const std::string& path);
    PackedFile(PackedFile&& other) noexcept;
    PackedFile& operator=(PackedFile&&) = delete;
    ~PackedFile();

    [[nodiscard]] const PackedIndex& index() const { return index_; }
    // Error that names what differs when the file holds another model's weights, or other kernels'.
    // `expected` are entries without offset and checksum.
    [[nodiscard]] base::Status expect(const PackedKey& key,
                                      const std::vector<PackedEntry>& expected) const;
    // The bytes of entry `number` into `memory`, each thread a run of them, and their checksum.
    // After an error the memory holds anything. REQUIRES: memory of the entry's size.
    [[nodiscard]] base::Status read(std::size_t number, std::span<std::byte> memory,
                                    base::ThreadTeam& team) const;

  private:
    PackedFile(std::string path, int descriptor)
        : path_(std::move(path)), descriptor_(descriptor) {}
    [[nodiscard]] base::Status read_index();
    [[nodiscard]] base::Error wrong(const std::string& reason) const;

    std::string path_;
    int descriptor_ = -1;
    PackedIndex index_;
};

// Bytes written so far and in all.
using WriteProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Writes the file and brings it to disk; `payloads` are the packed bytes of the entries, whose
// offsets and checksums are found here. The file has its name only once it is whole; an error
// leaves nothing behind, and says what the system refused. Makes the folder where there is none.
// Two processes may write one path at a time: the last to finish gives the file.
[[nodiscard]] base::Status write_packed_file(const std::string& path, PackedIndex index,
                                             std::span<const std::span<const std::byte>> payloads,
                                             base::ThreadTeam& team,
                                             const WriteProgress& progress = nullptr);

// Removes what writers that were killed left in a folder, and nothing that a live one writes.
void remove_unfinished_packed_files(const std::string& folder);

}  // namespace pagoda::formats
