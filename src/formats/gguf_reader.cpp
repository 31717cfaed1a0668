#include "formats/gguf_reader.h"

#include <utility>
#include <vector>

#include <fmt/core.h>

#include "formats/gguf_parser.h"
#include "formats/gguf_split.h"
#include "formats/mapped_file.h"
#include "formats/tokenizer_metadata.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

class MappedStorage final : public CheckpointStorage {
  public:
    explicit MappedStorage(std::vector<MappedFile> files) : files_(std::move(files)) {}

    void release(const std::byte* data, std::size_t bytes) const override {
        // A file ignores what is not its own.
        for (const MappedFile& file : files_) file.release(data, bytes);
    }

  private:
    std::vector<MappedFile> files_;
};

Error in_file(const std::string& path, const Error& error) {
    return Error{error.code, fmt::format("{}: {}", path, error.message), error.param};
}

// The name of the file without folders and ".gguf".
std::string stem(const std::string& path) {
    std::string name = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
    if (name.size() > 5 && name.compare(name.size() - 5, 5, ".gguf") == 0)
        name.resize(name.size() - 5);
    return name;
}

Result<std::string> required_text(const GgufFile& file, const std::string& path,
                                  std::string_view key) {
    const MetaValue* value = file.find(key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    if (text == nullptr || text->empty())
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{}: key '{}' is missing or no string; this is no language model",
                                 path, key),
                     std::string(key)};
    return *text;
}

// A token without a row in the embedding would be read from beyond the tensor.
Status check_vocabulary(const Checkpoint& checkpoint) {
    if (!checkpoint.tokenizer) return {};
    const CheckpointTensor* embedding = checkpoint.find_tensor("token_embd.weight");
    if (embedding == nullptr) return {};
    const std::size_t tokens = checkpoint.tokenizer->tokens.size();
    if (static_cast<std::uint64_t>(embedding->view.rows()) >= tokens) return {};
    return Error{ErrorCode::kDataLoss,
                 fmt::format("{}: tensor '{}' has {} rows, but the tokenizer has {} tokens",
                             checkpoint.path, embedding->name, embedding->view.rows(), tokens),
                 embedding->name};
}

void add_tensors(Checkpoint& checkpoint, std::vector<GgufTensor> tensors, const std::string& path) {
    for (GgufTensor& tensor : tensors) {
        tensor::TensorView view{tensor.dtype, std::move(tensor.shape), tensor.data.data(),
                                tensor.data.size()};
        checkpoint.tensors.push_back({std::move(tensor.name), std::move(view), path});
    }
}

// Joins the parts, which belong together.
Result<Checkpoint> assemble(const std::vector<std::string>& paths, std::vector<GgufFile> parts) {
    GgufFile& first = parts.front();
    Checkpoint checkpoint;
    checkpoint.path = paths.front();
    checkpoint.format = fmt::format("GGUF {}", first.version);
    Result<std::string> architecture =
        required_text(first, checkpoint.path, "general.architecture");
    if (!architecture) return architecture.error();
    checkpoint.architecture = *std::move(architecture);
    checkpoint.name = stem(checkpoint.path);
    if (const MetaValue* value = first.find("general.name"); value != nullptr) {
        const auto* name = std::get_if<std::string>(value);
        if (name != nullptr && !name->empty()) checkpoint.name = *name;
    }
    checkpoint.metadata.reserve(first.entries.size());
    for (GgufEntry& entry : first.entries)
        checkpoint.metadata.emplace_back(std::move(entry.key), std::move(entry.value));
    for (std::size_t index = 0; index < parts.size(); ++index)
        add_tensors(checkpoint, std::move(parts[index].tensors), paths[index]);
    checkpoint.index_tensors();
    Result<std::optional<text::TokenizerSpec>> tokenizer = read_tokenizer_spec(checkpoint.metadata);
    if (!tokenizer) return in_file(checkpoint.path, tokenizer.error());
    checkpoint.tokenizer = *std::move(tokenizer);
    if (Status fits = check_vocabulary(checkpoint); !fits) return fits.error();
    return checkpoint;
}

struct OpenPart {
    MappedFile mapping;
    GgufFile contents;
};

Result<OpenPart> open_part(const std::string& path) {
    Result<MappedFile> mapping = MappedFile::open(path);
    if (!mapping) return mapping.error();
    Result<GgufFile> contents = parse_gguf(mapping->bytes(), path);
    if (!contents) return contents.error();
    return OpenPart{*std::move(mapping), *std::move(contents)};
}

}  // namespace

Result<Checkpoint> open_gguf(const std::string& path) {
    Result<OpenPart> first = open_part(path);
    if (!first) return first.error();
    Result<std::vector<std::string>> paths = parts_of(path, first->contents);
    if (!paths) return paths.error();
    std::vector<MappedFile> mappings;
    std::vector<GgufFile> contents;
    std::vector<CheckpointFile> files;
    for (const std::string& part_path : *paths) {
        const std::size_t index = contents.size();
        // The first one is moved from once: by the first round.
        // NOLINTNEXTLINE(bugprone-use-after-move)
        Result<OpenPart> part = index == 0 ? std::move(first) : open_part(part_path);
        if (!part && part.error().code == ErrorCode::kNotFound)
            return Error{ErrorCode::kNotFound,
                         fmt::format("{}: part {} of {} of this model is missing: {}", path,
                                     index + 1, paths->size(), part_path),
                         part_path};
        if (!part) return part.error();
        files.push_back({part_path, part->mapping.bytes().size()});
        mappings.push_back(std::move(part->mapping));
        contents.push_back(std::move(part->contents));
    }
    if (Status fits = check_parts(*paths, contents); !fits) return fits.error();
    Result<Checkpoint> checkpoint = assemble(*paths, std::move(contents));
    if (!checkpoint) return checkpoint.error();
    checkpoint->files = std::move(files);
    checkpoint->storage = std::make_shared<const MappedStorage>(std::move(mappings));
    return checkpoint;
}

Result<Checkpoint> checkpoint_from_gguf(std::span<const std::byte> bytes, const std::string& path) {
    Result<GgufFile> contents = parse_gguf(bytes, path);
    if (!contents) return contents.error();
    std::vector<GgufFile> parts;
    parts.push_back(*std::move(contents));
    Result<Checkpoint> checkpoint = assemble({path}, std::move(parts));
    if (checkpoint.ok()) checkpoint->files.push_back({path, bytes.size()});
    return checkpoint;
}

}  // namespace pagoda::formats
