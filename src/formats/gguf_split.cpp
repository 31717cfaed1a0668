#include "formats/gguf_split.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "formats/gguf_layout.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kOf = "-of-";
constexpr std::size_t kDigits = 5;
constexpr std::size_t kNumberedBytes = 1 + kDigits + kOf.size() + kDigits;  // "-00001-of-00003"

std::optional<int> parse_digits(std::string_view digits) {
    int number = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') return std::nullopt;
        number = number * 10 + (digit - '0');
    }
    return number;
}

std::string_view file_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Error split_error(const std::string& path, const std::string& reason) {
    return Error{ErrorCode::kDataLoss, fmt::format("{}: {}", path, reason), path};
}

// The integer under a key of the split; an error when it is missing or negative.
Result<std::int64_t> split_number(const std::string& path, const GgufFile& file,
                                  std::string_view key) {
    const std::optional<std::int64_t> number = file.find_int(key);
    if (!number)
        return split_error(
            path, fmt::format("key '{}' is missing or no integer, though the file is a part "
                              "of a split model",
                              key));
    if (*number < 0) return split_error(path, fmt::format("key '{}' is {}", key, *number));
    return *number;
}

std::string text_of(const GgufFile& file, std::string_view key) {
    const MetaValue* value = file.find(key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return text == nullptr ? std::string() : *text;
}

Status check_part(const std::vector<std::string>& paths, const std::vector<GgufFile>& files,
                  std::size_t index) {
    const std::string& path = paths[index];
    const GgufFile& file = files[index];
    const GgufFile& first = files.front();
    Result<std::int64_t> number = split_number(path, file, kGgufSplitIndexKey);
    if (!number) return number.error();
    if (*number != static_cast<std::int64_t>(index))
        return split_error(path, fmt::format("is named part {} of {}, but says that it is part {}",
                                             index + 1, paths.size(), *number + 1));
    Result<std::int64_t> count = split_number(path, file, kGgufSplitCountKey);
    if (!count) return count.error();
    if (*count != static_cast<std::int64_t>(paths.size()))
        return split_error(path, fmt::format("belongs to a model of {} parts, {} to one of {}",
                                             *count, file_name(paths.front()), paths.size()));
    Result<std::int64_t> tensors = split_number(path, file, kGgufSplitTensorsKey);
    if (!tensors) return tensors.error();
    Result<std::int64_t> expected = split_number(paths.front(), first, kGgufSplitTensorsKey);
    if (!expected) return expected.error();
    if (*tensors != *expected)
        return split_error(path, fmt::format("is of another model than {}: they announce {} and {} "
                                             "tensors in all",
                                             file_name(paths.front()), *tensors, *expected));
    // Later parts seldom repeat these; where they do, they must agree.
    for (const std::string_view key : {"general.architecture", "general.name"}) {
        const std::string here = text_of(file, key);
        const std::string there = text_of(first, key);
        if (!here.empty() && here != there)
            return split_error(
                path,
                fmt::format("is of another model than {}: '{}' is '{}' here and '{}' there",
                            file_name(paths.front()), key, printable(here), printable(there)));
    }
    return {};
}

// Over all parts: no tensor twice, and as many as announced.
Status check_tensors(const std::vector<std::string>& paths, const std::vector<GgufFile>& files) {
    std::vector<std::pair<std::string_view, std::size_t>> names;
    for (std::size_t index = 0; index < files.size(); ++index)
        for (const GgufTensor& tensor : files[index].tensors)
            names.emplace_back(tensor.name, index);
    std::sort(names.begin(), names.end());
    for (std::size_t next = 1; next < names.size(); ++next) {
        if (names[next].first != names[next - 1].first) continue;
        return split_error(
            paths[names[next].second],
            fmt::format("tensor '{}' is also in {}: the parts are of different models",
                        printable(names[next].first), file_name(paths[names[next - 1].second])));
    }
    Result<std::int64_t> announced =
        split_number(paths.front(), files.front(), kGgufSplitTensorsKey);
    if (!announced) return announced.error();
    if (*announced != static_cast<std::int64_t>(names.size()))
        return split_error(
            paths.front(),
            fmt::format("announces {} tensors in {} parts, but the parts hold {}: they are of "
                        "different models",
                        *announced, files.size(), names.size()));
    return {};
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view path) {
    if (path.size() <= kNumberedBytes + kExtension.size() ||
        path.substr(path.size() - kExtension.size()) != kExtension)
        return std::nullopt;
    const std::size_t numbers_at = path.size() - kExtension.size() - kNumberedBytes;
    const std::string_view numbers = path.substr(numbers_at, kNumberedBytes);
    if (numbers.front() != '-' || numbers.substr(1 + kDigits, kOf.size()) != kOf)
        return std::nullopt;
    const auto part = parse_digits(numbers.substr(1, kDigits));
    const auto num_parts = parse_digits(numbers.substr(1 + kDigits + kOf.size()));
    if (!part || !num_parts || *part < 1 || *part > *num_parts) return std::nullopt;
    return SplitName{std::string(path.substr(0, numbers_at)), *part, *num_parts};
}

std::string split_part_path(const SplitName& name, int part) {
    return fmt::format("{}-{:05}{}{:05}{}", name.prefix, part, kOf, name.num_parts, kExtension);
}

Result<std::vector<std::string>> parts_of(const std::string& path, const GgufFile& first) {
    const bool is_split =
        first.find(kGgufSplitCountKey) != nullptr || first.find(kGgufSplitIndexKey) != nullptr;
    if (!is_split) return std::vector<std::string>{path};
    Result<std::int64_t> count = split_number(path, first, kGgufSplitCountKey);
    if (!count) return count.error();
    // A split of one part, and the mark that merging tools leave behind.
    if (*count <= 1) return std::vector<std::string>{path};
    if (*count > kGgufMaxParts)
        return split_error(path, fmt::format("key '{}' is {}; at most {} parts are allowed",
                                             kGgufSplitCountKey, *count, kGgufMaxParts));
    Result<std::int64_t> number = split_number(path, first, kGgufSplitIndexKey);
    if (!number) return number.error();
    std::optional<SplitName> name = parse_split_name(path);
    if (*number != 0) {
        std::string advice = "give the first part";
        if (name) advice += fmt::format(", {}", file_name(split_part_path(*name, 1)));
        return base::invalid(fmt::format("{}: is part {} of {} of a split model; {}", path,
                                         *number + 1, *count, advice),
                             path);
    }
    if (!name || name->part != 1 || name->num_parts != *count)
        return split_error(
            path, fmt::format("is part 1 of {} of a split model, but is not named "
                              "NAME-00001-of-{:05}.gguf, so the other parts cannot be found",
                              *count, *count));
    std::vector<std::string> paths{path};
    for (int part = 2; part <= name->num_parts; ++part)
        paths.push_back(split_part_path(*name, part));
    return paths;
}

Status check_parts(const std::vector<std::string>& paths, const std::vector<GgufFile>& files) {
    if (files.size() <= 1) return {};
    for (std::size_t index = 0; index < files.size(); ++index)
        if (Status fits = check_part(paths, files, index); !fits) return fits;
    return check_tensors(paths, files);
}

}  // namespace pagoda::formats
