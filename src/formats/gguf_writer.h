#pragma once
// Writes GGUF files, version 2 or 3: in one piece, tensor by tensor, or split into parts. What is
// read by parse_gguf() and written again has the same entries, tensors and bytes of data.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {

// The whole file in memory. Refuses what a reader would: empty or double names, values that do not
// have their entry's type, data that do not have their tensor's size.
[[nodiscard]] base::Result<std::vector<std::byte>> encode_gguf(const GgufFile& file);

// Writes PREFIX-00001-of-0000N.gguf and so on, none with more than `max_part_bytes` of tensor data
// unless a single tensor has more. The first part has all metadata. Returns the paths.
[[nodiscard]] base::Result<std::vector<std::string>> write_split_gguf(const std::string& prefix,
                                                                      const GgufFile& file,
                                                                      std::uint64_t max_part_bytes);

// GgufFileWriter: one file on disk, for tensors that are not all in memory at once. The file has
// its name only once finish() succeeded; before, and when the writer is dropped, there is
// "PATH.part" or nothing. Move-only; not thread-safe.
class GgufFileWriter {
  public:
    // Writes the header. `file` gives entries and the tensors' names, types and shapes; its data
    // are not looked at.
    [[nodiscard]] static base::Result<GgufFileWriter> create(const std::string& path,
                                                             const GgufFile& file);
    // The data of the next tensor, in the order of the header.
    [[nodiscard]] base::Status append(std::span<const std::byte> data);
    // Brings everything to disk and gives the file its name. An error when tensors are missing.
    [[nodiscard]] base::Status finish();

    GgufFileWriter(GgufFileWriter&&) noexcept = default;
    GgufFileWriter& operator=(GgufFileWriter&&) = delete;
    ~GgufFileWriter();

  private:
    struct CloseFile {
        void operator()(std::FILE* stream) const { std::fclose(stream); }
    };
    struct Pending {
        std::string name;
        std::uint64_t bytes = 0;
    };
    GgufFileWriter(std::string path, std::FILE* stream) : path_(std::move(path)), stream_(stream) {}
    base::Status write(std::span<const std::byte> bytes);

    std::string path_;
    std::unique_ptr<std::FILE, CloseFile> stream_;
    std::vector<Pending> tensors_;
    std::size_t next_tensor_ = 0;
    std::uint64_t alignment_ = kGgufDefaultAlignment;
};

// encode_gguf() to a file.
[[nodiscard]] base::Status write_gguf(const std::string& path, const GgufFile& file);

}  // namespace pagoda::formats
