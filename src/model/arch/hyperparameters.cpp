#include "model/arch/hyperparameters.h"

#include <array>
#include <cmath>
#include <variant>

#include <fmt/core.h>

#include "formats/gguf_types.h"

namespace pagoda::model::arch {
namespace {

using formats::MetaValue;

// Keys that files of the architectures here carry and that change nothing: whatever they say
// (monostate), or as long as they say this.
struct HarmlessKey {
    std::string_view key;
    std::variant<std::monostate, bool, double, std::string_view> value;
};
constexpr std::array kHarmless = {
    HarmlessKey{"vocab_size", {}},  // token_embd.weight has the rows
    HarmlessKey{"rope.scaling.finetuned", {}},
    HarmlessKey{"attention.layer_norm_epsilon", {}},  // of LayerNorm, which none of these has
    HarmlessKey{"attention.causal", true},
    HarmlessKey{"use_parallel_residual", false},
    HarmlessKey{"tensor_data_layout", "Meta AI original pth"},  // the permuted q and k of llama
    HarmlessKey{"expert_count", 0.0},
    HarmlessKey{"expert_used_count", 0.0},
    HarmlessKey{"expert_shared_count", 0.0},
    HarmlessKey{"leading_dense_block_count", 0.0},
    HarmlessKey{"nextn_predict_layers", 0.0},
    HarmlessKey{"pooling_type", 0.0},
    HarmlessKey{"attn_logit_softcapping", 0.0},
    HarmlessKey{"final_logit_softcapping", 0.0},
    HarmlessKey{"logit_scale", 1.0},
    HarmlessKey{"residual_scale", 1.0},
    HarmlessKey{"embedding_scale", 1.0},
    HarmlessKey{"attention.max_alibi_bias", 0.0},
    HarmlessKey{"attention.clamp_kqv", 0.0},
    HarmlessKey{"rope.scaling.yarn_attn_factor", 1.0},
    HarmlessKey{"rope.scaling.yarn_ext_factor", 1.0},
};

bool says(const MetaValue& value, const HarmlessKey& harmless) {
    if (std::holds_alternative<std::monostate>(harmless.value)) return true;
    if (const auto* flag = std::get_if<bool>(&harmless.value)) return value == MetaValue(*flag);
    if (const auto* text = std::get_if<std::string_view>(&harmless.value))
        return value == MetaValue(std::string(*text));
    const double number = std::get<double>(harmless.value);
    if (const auto* whole = std::get_if<std::int64_t>(&value))
        return static_cast<double>(*whole) == number;
    return value == MetaValue(number);
}

bool is_harmless(std::string_view key, const MetaValue& value) {
    for (const HarmlessKey& harmless : kHarmless)
        if (harmless.key == key) return says(value, harmless);
    return false;
}

// For a message: scalars as they are, the rest by kind.
std::string value_text(const MetaValue& value) {
    struct Text {
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
        std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
        std::string operator()(double number) const { return fmt::format("{}", number); }
        std::string operator()(const std::string& text) const {
            return fmt::format("\"{}\"", formats::printable(text));
        }
        std::string operator()(const formats::MetaArray& array) const {
            return fmt::format("an array of {} items", array.size());
        }
    };
    return std::visit(Text{}, value);
}

}  // namespace

std::string Hyperparameters::whole(std::string_view key) const {
    return fmt::format("{}.{}", checkpoint_.architecture, key);
}

void Hyperparameters::refuse(base::Error error) {
    if (!fault_) fault_ = std::move(error);
}

void Hyperparameters::refuse(std::string_view key, const std::string& reason,
                             base::ErrorCode code) {
    const std::string name = whole(key);
    refuse(base::Error{code, fmt::format("{}: {} {}", checkpoint_.path, name, reason), name});
}

template <class T>
std::optional<T> Hyperparameters::taken(base::Result<std::optional<T>> read) {
    if (read) return *std::move(read);
    refuse(std::move(read).error());
    return std::nullopt;
}

std::optional<std::int64_t> Hyperparameters::find_int(std::string_view key, IntRange range) {
    read_.insert(whole(key));
    const auto value = taken(checkpoint_.arch_int(key));
    if (!value || (*value >= range.least && *value <= range.most)) return value;
    refuse(key, fmt::format("is {}, must be between {} and {}", *value, range.least, range.most));
    return range.least;
}

std::int64_t Hyperparameters::required_int(std::string_view key, IntRange range) {
    const auto value = find_int(key, range);
    if (!value) refuse(key, "is missing");
    return value.value_or(range.least);
}

std::int64_t Hyperparameters::int_or(std::string_view key, std::int64_t fallback, IntRange range) {
    return find_int(key, range).value_or(fallback);
}

std::vector<std::int64_t> Hyperparameters::ints(std::string_view key) {
    read_.insert(whole(key));
    auto values = checkpoint_.arch_ints(key);
    if (values) return *std::move(values);
    refuse(std::move(values).error());
    return {};
}

std::int64_t Hyperparameters::uniform_int(std::string_view key,
                                          std::optional<std::int64_t> fallback, IntRange range) {
    const std::vector<std::int64_t> values = ints(key);
    if (values.empty()) {
        if (!fallback) refuse(key, "is missing");
        return fallback.value_or(range.least);
    }
    for (const std::int64_t value : values) {
        if (value == values.front()) continue;
        refuse(key,
               fmt::format("differs between layers ({} and {}), which is not supported",
                           values.front(), value),
               base::ErrorCode::kUnsupported);
        return range.least;
    }
    if (values.front() >= range.least && values.front() <= range.most) return values.front();
    refuse(key, fmt::format("is {}, must be between {} and {}", values.front(), range.least,
                            range.most));
    return range.least;
}

std::optional<double> Hyperparameters::find_float(std::string_view key, FloatRange range) {
    read_.insert(whole(key));
    const auto value = taken(checkpoint_.arch_float(key));
    if (!value || (*value >= range.least && *value <= range.most)) return value;  // never a NaN
    refuse(key, fmt::format("is {}, must be between {} and {}", *value, range.least, range.most));
    return range.least;
}

double Hyperparameters::required_float(std::string_view key, FloatRange range) {
    const auto value = find_float(key, range);
    if (!value) refuse(key, "is missing");
    return value.value_or(range.least);
}

double Hyperparameters::float_of_either(std::string_view key, std::string_view other,
                                        double fallback, FloatRange range) {
    const auto value = find_float(key, range);
    if (other.empty()) return value.value_or(fallback);
    const auto same = find_float(other, range);
    if (value && same && *value != *same)
        refuse(other, fmt::format("is {}, but {} is {}", *same, whole(key), *value));
    return value ? *value : same.value_or(fallback);
}

std::string Hyperparameters::string_or_empty(std::string_view key) {
    read_.insert(whole(key));
    return taken(checkpoint_.arch_string(key)).value_or("");
}

void Hyperparameters::refuse_unread_keys() {
    const std::string prefix = checkpoint_.architecture + ".";
    for (const auto& [key, value] : checkpoint_.metadata) {
        if (!key.starts_with(prefix) || read_.contains(key)) continue;
        const std::string_view rest = std::string_view(key).substr(prefix.size());
        if (is_harmless(rest, value)) continue;
        refuse(base::Error{
            base::ErrorCode::kUnsupported,
            fmt::format("{}: {} is {}, which a {} model as it is known here does not have",
                        checkpoint_.path, formats::printable(key), value_text(value),
                        checkpoint_.architecture),
            formats::printable(key)});
    }
}

base::Status Hyperparameters::finish() {
    refuse_unread_keys();
    if (fault_) return *fault_;
    return {};
}

}  // namespace pagoda::model::arch
