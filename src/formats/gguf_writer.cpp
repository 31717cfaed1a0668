#include "formats/gguf_writer.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "formats/gguf_encoder.h"
#include "formats/gguf_split.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

std::string unfinished_path(const std::string& path) {
    return path + ".part";
}

Error write_error(const std::string& path, const char* action) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: cannot {}: {}", path, action, std::strerror(errno)), path};
}

Error wrong_size(const std::string& name, std::size_t got, std::uint64_t wanted) {
    return base::invalid(fmt::format("tensor '{}' has {} bytes of data, its type and shape take {}",
                                     printable(name), got, wanted),
                         name);
}

GgufEntry split_entry(std::string_view key, GgufType type, std::size_t value) {
    return {std::string(key), type, static_cast<std::int64_t>(value)};
}

// Which tensors go into which part, in their order.
std::vector<std::vector<GgufTensor>> divide(const std::vector<GgufTensor>& tensors,
                                            std::uint64_t max_part_bytes) {
    std::vector<std::vector<GgufTensor>> parts(1);
    std::uint64_t bytes = 0;
    for (const GgufTensor& tensor : tensors) {
        if (!parts.back().empty() && bytes + tensor.data.size() > max_part_bytes) {
            parts.emplace_back();
            bytes = 0;
        }
        parts.back().push_back(tensor);
        bytes += tensor.data.size();
    }
    return parts;
}

}  // namespace

Result<std::vector<std::byte>> encode_gguf(const GgufFile& file) {
    Result<GgufHeader> header = encode_gguf_header(file);
    if (!header) return header.error();
    std::vector<std::byte> bytes = std::move(header->bytes);
    for (std::size_t index = 0; index < file.tensors.size(); ++index) {
        const GgufTensor& tensor = file.tensors[index];
        if (tensor.data.size() != header->tensor_bytes[index])
            return wrong_size(tensor.name, tensor.data.size(), header->tensor_bytes[index]);
        bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
        bytes.resize(static_cast<std::size_t>(align_up(bytes.size(), file.alignment)));
    }
    return bytes;
}

Result<GgufFileWriter> GgufFileWriter::create(const std::string& path, const GgufFile& file) {
    Result<GgufHeader> header = encode_gguf_header(file);
    if (!header) return header.error();
    std::FILE* stream = std::fopen(unfinished_path(path).c_str(), "wb");
    if (stream == nullptr) return write_error(unfinished_path(path), "create");
    GgufFileWriter writer(path, stream);
    writer.alignment_ = file.alignment;
    for (std::size_t index = 0; index < file.tensors.size(); ++index)
        writer.tensors_.push_back({file.tensors[index].name, header->tensor_bytes[index]});
    if (Status done = writer.write(header->bytes); !done) return done.error();
    return writer;
}

GgufFileWriter::~GgufFileWriter() {
    if (stream_ != nullptr) ::unlink(unfinished_path(path_).c_str());
}

Status GgufFileWriter::write(std::span<const std::byte> bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stream_.get()) == bytes.size()) return {};
    return write_error(path_, "write");
}

Status GgufFileWriter::append(std::span<const std::byte> data) {
    if (next_tensor_ == tensors_.size())
        return base::invalid(fmt::format("{}: all {} tensors are written", path_, tensors_.size()));
    const Pending& tensor = tensors_[next_tensor_];
    if (data.size() != tensor.bytes) return wrong_size(tensor.name, data.size(), tensor.bytes);
    if (Status done = write(data); !done) return done;
    const std::vector<std::byte> padding(
        static_cast<std::size_t>(align_up(tensor.bytes, alignment_) - tensor.bytes));
    if (Status done = write(padding); !done) return done;
    ++next_tensor_;
    return {};
}

Status GgufFileWriter::finish() {
    if (next_tensor_ != tensors_.size())
        return base::invalid(fmt::format("{}: tensor '{}' and {} more have no data yet", path_,
                                         printable(tensors_[next_tensor_].name),
                                         tensors_.size() - next_tensor_ - 1));
    if (std::fflush(stream_.get()) != 0 || ::fsync(::fileno(stream_.get())) != 0)
        return write_error(path_, "write");
    if (std::rename(unfinished_path(path_).c_str(), path_.c_str()) != 0)
        return write_error(path_, "rename");
    stream_.reset();
    return {};
}

Status write_gguf(const std::string& path, const GgufFile& file) {
    Result<GgufFileWriter> writer = GgufFileWriter::create(path, file);
    if (!writer) return writer.error();
    for (const GgufTensor& tensor : file.tensors)
        if (Status done = writer->append(tensor.data); !done) return done;
    return writer->finish();
}

Result<std::vector<std::string>> write_split_gguf(const std::string& prefix, const GgufFile& file,
                                                  std::uint64_t max_part_bytes) {
    std::vector<std::vector<GgufTensor>> parts = divide(file.tensors, max_part_bytes);
    if (parts.size() > static_cast<std::size_t>(kGgufMaxParts))
        return base::invalid(
            fmt::format("{}: {} parts of at most {} bytes; at most {} parts are allowed", prefix,
                        parts.size(), max_part_bytes, kGgufMaxParts));
    const SplitName name{prefix, 1, static_cast<int>(parts.size())};
    std::vector<std::string> paths;
    for (std::size_t index = 0; index < parts.size(); ++index) {
        GgufFile part{file.version, file.alignment, {}, std::move(parts[index])};
        if (index == 0) part.entries = file.entries;
        part.entries.push_back(split_entry(kGgufSplitIndexKey, GgufType::kUint16, index));
        part.entries.push_back(split_entry(kGgufSplitCountKey, GgufType::kUint16, parts.size()));
        part.entries.push_back(
            split_entry(kGgufSplitTensorsKey, GgufType::kInt32, file.tensors.size()));
        paths.push_back(split_part_path(name, static_cast<int>(index) + 1));
        if (Status done = write_gguf(paths.back(), part); !done) return done.error();
    }
    return paths;
}

}  // namespace pagoda::formats
