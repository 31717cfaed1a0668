#pragma once
// The parts of a split GGUF model: how they are named and whether they belong together. Part
// numbers count from 1 in names and messages, from 0 in the metadata. Pure; thread-safe.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf_types.h"

namespace pagoda::formats {

constexpr int kGgufMaxParts = 9999;

struct SplitName {
    std::string prefix;  // "dir/model" of "dir/model-00001-of-00003.gguf"
    int part = 0;        // from 1
    int num_parts = 0;
};
// Empty when the name is not of that form.
[[nodiscard]] std::optional<SplitName> parse_split_name(std::string_view path);
[[nodiscard]] std::string split_part_path(const SplitName& name, int part);

// The paths of all parts, in order, of the model whose first or only file this is. Refuses a file
// that is a later part, and a first part whose name does not lead to the others.
[[nodiscard]] base::Result<std::vector<std::string>> parts_of(const std::string& path,
                                                              const GgufFile& first);

// Whether `files`, read from `paths`, are the parts of one model.
[[nodiscard]] base::Status check_parts(const std::vector<std::string>& paths,
                                       const std::vector<GgufFile>& files);

}  // namespace pagoda::formats
