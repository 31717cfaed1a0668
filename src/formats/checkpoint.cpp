#include "formats/checkpoint.h"

#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

std::string_view type_name(const MetaValue& value) {
    struct Name {
        std::string_view operator()(bool) const { return "a boolean"; }
        std::string_view operator()(std::int64_t) const { return "an integer"; }
        std::string_view operator()(double) const { return "a number with a fraction"; }
        std::string_view operator()(const std::string&) const { return "a string"; }
        std::string_view operator()(const MetaArray&) const { return "an array"; }
    };
    return std::visit(Name{}, value);
}

Error wrong_type(const Checkpoint& checkpoint, const std::string& key, std::string_view wanted,
                 const MetaValue& value) {
    return Error{ErrorCode::kDataLoss,
                 fmt::format("{}: key '{}' must be {}, but is {}", checkpoint.path, key, wanted,
                             type_name(value)),
                 key};
}

std::string arch_key(const Checkpoint& checkpoint, std::string_view key) {
    return fmt::format("{}.{}", checkpoint.architecture, key);
}

// The value under the architecture's key, when it holds exactly that type.
template <class T>
Result<std::optional<T>> arch_value(const Checkpoint& checkpoint, std::string_view key,
                                    std::string_view wanted) {
    const std::string whole_key = arch_key(checkpoint, key);
    const MetaValue* value = checkpoint.find_meta(whole_key);
    if (value == nullptr) return std::optional<T>();
    if (const T* typed = std::get_if<T>(value)) return std::optional<T>(*typed);
    return wrong_type(checkpoint, whole_key, wanted, *value);
}

}  // namespace

const MetaValue* Checkpoint::find_meta(std::string_view key) const {
    for (const auto& [name_of_entry, value] : metadata)
        if (name_of_entry == key) return &value;
    return nullptr;
}

Result<std::optional<std::int64_t>> Checkpoint::arch_int(std::string_view key) const {
    return arch_value<std::int64_t>(*this, key, "an integer");
}

Result<std::optional<double>> Checkpoint::arch_float(std::string_view key) const {
    const std::string whole_key = arch_key(*this, key);
    const MetaValue* value = find_meta(whole_key);
    if (value == nullptr) return std::optional<double>();
    if (const auto* number = std::get_if<double>(value)) return std::optional<double>(*number);
    // Some writers store 10000.0 as 10000.
    if (const auto* whole = std::get_if<std::int64_t>(value))
        return std::optional<double>(static_cast<double>(*whole));
    return wrong_type(*this, whole_key, "a number", *value);
}

Result<std::optional<bool>> Checkpoint::arch_bool(std::string_view key) const {
    return arch_value<bool>(*this, key, "a boolean");
}

Result<std::optional<std::string>> Checkpoint::arch_string(std::string_view key) const {
    return arch_value<std::string>(*this, key, "a string");
}

Result<std::vector<std::int64_t>> Checkpoint::arch_ints(std::string_view key) const {
    const std::string whole_key = arch_key(*this, key);
    const MetaValue* value = find_meta(whole_key);
    if (value == nullptr) return std::vector<std::int64_t>();
    if (const auto* number = std::get_if<std::int64_t>(value))
        return std::vector<std::int64_t>{*number};
    if (const auto* flag = std::get_if<bool>(value))
        return std::vector<std::int64_t>{*flag ? 1 : 0};
    if (const auto* array = std::get_if<MetaArray>(value)) {
        if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&array->items))
            return *numbers;
        if (const auto* flags = std::get_if<std::vector<bool>>(&array->items))
            return std::vector<std::int64_t>(flags->begin(), flags->end());
        return Error{
            ErrorCode::kDataLoss,
            fmt::format("{}: key '{}' must be an array of integers or booleans", path, whole_key),
            whole_key};
    }
    return wrong_type(*this, whole_key, "an integer or an array of them", *value);
}

const CheckpointTensor* Checkpoint::find_tensor(std::string_view tensor_name) const {
    const auto found = tensor_index_.find(std::string(tensor_name));
    return found == tensor_index_.end() ? nullptr : &tensors[found->second];
}

std::uint64_t Checkpoint::tensor_bytes() const {
    std::uint64_t bytes = 0;
    for (const CheckpointTensor& tensor : tensors) bytes += tensor.view.bytes;
    return bytes;
}

void Checkpoint::index_tensors() {
    tensor_index_.clear();
    for (std::size_t index = 0; index < tensors.size(); ++index) {
        const bool is_new = tensor_index_.emplace(tensors[index].name, index).second;
        CHECK(is_new, fmt::format("tensor '{}' occurs twice", tensors[index].name));
    }
}

}  // namespace pagoda::formats
