#include "config.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>
#include <unistd.h>

#include "base/byte_size.h"
#include "base/check.h"
#include "base/json.h"
#include "base/nearest_name.h"
#include "command.h"

namespace pagoda::apps {
namespace {

// The one variable that is no key: the choice of kernels.
constexpr std::string_view kIsaVariable = "PAGODA_ISA";
constexpr std::string_view kPrefix = "PAGODA_";

std::string join(const std::vector<std::string>& values) {
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
    return text;
}

std::string words(std::string_view set) {
    std::string text;
    for (const char c : set) text += c == '|' ? std::string(", ") : std::string(1, c);
    return text;
}

std::optional<bool> parse_bool(std::string_view text) {
    if (contains_word("true|yes|on|1", text)) return true;
    if (contains_word("false|no|off|0", text)) return false;
    return std::nullopt;
}

base::Status check_bytes(const ConfigKey& key, std::string_view value) {
    const auto parsed = base::parse_byte_size(value);
    if (!parsed) return base::invalid(fmt::format("{}: {}", key.name, parsed.error().message));
    const auto least = static_cast<std::uint64_t>(key.least);
    const auto most = static_cast<std::uint64_t>(key.most);
    if (*parsed >= least && *parsed <= most) return {};
    return base::invalid(fmt::format("{} must be a size from {} to {}, got \"{}\"", key.name,
                                     base::format_byte_size(least), base::format_byte_size(most),
                                     value));
}

base::Status check_kind(const ConfigKey& key, std::string_view value) {
    if (value == key.fallback) return {};
    switch (key.kind) {
        case KeyKind::kText:
        case KeyKind::kList:
            return {};
        case KeyKind::kBool:
            if (parse_bool(value)) return {};
            return base::invalid(
                fmt::format("{} must be true or false, got \"{}\"", key.name, value));
        case KeyKind::kInt: {
            const auto parsed = parse_integer(key.name, value, static_cast<std::int64_t>(key.least),
                                              static_cast<std::int64_t>(key.most));
            return parsed ? base::Status() : base::Status(parsed.error());
        }
        case KeyKind::kNumber: {
            const auto parsed = parse_number(key.name, value, key.least, key.most);
            return parsed ? base::Status() : base::Status(parsed.error());
        }
        case KeyKind::kBytes:
            return check_bytes(key, value);
        case KeyKind::kDuration: {
            const auto parsed = parse_duration(value);
            if (parsed) return {};
            return base::invalid(fmt::format("{}: {}", key.name, parsed.error().message));
        }
        case KeyKind::kChoice:
            if (contains_word(key.choices, value)) return {};
            return base::invalid(fmt::format("{} must be one of {}, got \"{}\"", key.name,
                                             words(key.choices), value));
    }
    return {};
}

base::Status check_offered(const ConfigKey& key, std::string_view value) {
    if (key.offered.empty() || value == key.fallback || contains_word(key.offered, value))
        return {};
    if (key.kind == KeyKind::kBool && parse_bool(value) == parse_bool(key.offered)) return {};
    std::string message = fmt::format("{} {} is not offered in this version", key.name,
                                      key.is_secret ? "***" : value);
    if (key.offered != "|") message += fmt::format("; it can be {}", words(key.offered));
    if (!key.reason.empty()) message += fmt::format(" ({})", key.reason);
    return base::Error{base::ErrorCode::kUnsupported, message, std::string(key.name)};
}

base::Error unknown_key(std::string_view name, const std::string& place) {
    const std::string_view nearest = nearest_config_key(name);
    return base::invalid(
        fmt::format("{}: unknown key \"{}\"{}", place, name,
                    nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    }
    return result;
}

std::string upper(std::string_view text) {
    std::string result(text);
    for (char& c : result) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    }
    return result;
}

base::Error unknown_variable(std::string_view name) {
    std::vector<std::string_view> known = {kIsaVariable.substr(kPrefix.size())};
    for (const ConfigKey& key : config_keys()) known.push_back(key.name);
    const std::string_view nearest = base::nearest_name(name.substr(kPrefix.size()), known);
    return base::invalid(fmt::format(
        "environment: unknown variable {}{}", name,
        nearest.empty() ? "" : fmt::format(" (did you mean {}{}?)", kPrefix, upper(nearest))));
}

// Kubernetes describes a service that is called "pagoda" by variables like these to every
// container; they are no settings.
bool is_service_link(std::string_view name, std::string_view value) {
    if (name == "PAGODA_PORT") return value.find("://") != std::string_view::npos;
    return name.starts_with("PAGODA_SERVICE_HOST") || name.starts_with("PAGODA_SERVICE_PORT") ||
           (name.starts_with("PAGODA_PORT_") && (name.find("_TCP") != std::string_view::npos ||
                                                 name.find("_UDP") != std::string_view::npos));
}

std::string yaml_value(const ConfigKey& key, const std::vector<std::string>& values) {
    if (key.kind == KeyKind::kList) {
        base::Json::Array items;
        for (const std::string& value : values) items.emplace_back(key.is_secret ? "***" : value);
        return base::Json(std::move(items)).dump();
    }
    const std::string text = join(values);
    if (key.is_secret && !text.empty()) return "\"***\"";
    return key.kind == KeyKind::kText ? base::Json(text).dump() : text;
}

// Of a key that this version gives no choice of.
std::string_view limit_note(const ConfigKey& key) {
    if (has_choice(key)) return "";
    return key.offered == "|" ? "; not in this version" : "; the only value in this version";
}

std::string_view source_name(ConfigSource source) {
    constexpr std::array<std::string_view, 4> kNames = {"default", "file", "environment", "flag"};
    return kNames[static_cast<std::size_t>(source)];
}

}  // namespace

base::Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
    struct Unit {
        std::string_view suffix;
        double ms;
    };
    constexpr std::array<Unit, 5> kUnits = {
        {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}}};
    constexpr double kMost = 365.0 * 24 * 3600e3;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
    for (const Unit& unit : kUnits) {
        if (error != std::errc() || suffix != unit.suffix || !(value >= 0)) continue;
        if (value * unit.ms > kMost)
            return base::invalid(fmt::format("a time must be at most a year, got \"{}\"", text));
        return std::chrono::milliseconds(std::llround(value * unit.ms));
    }
    return base::invalid(
        fmt::format("a time must be a number with ms, s, m or h, as 20s, got \"{}\"", text));
}

std::vector<std::pair<std::string, std::string>> pagoda_environment() {
    std::vector<std::pair<std::string, std::string>> found;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::size_t equals = text.find('=');
        if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
        found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return found;
}

base::Status Config::apply(std::string_view name, std::vector<std::string> values,
                           ConfigSource source, const std::string& place) {
    const ConfigKey* key = find_config_key(name);
    if (key == nullptr) return unknown_key(name, place);
    if (key->kind == KeyKind::kList) {
        std::vector<std::string> parts;
        for (const std::string& value : values) {
            for (std::string& part : split_list(value)) {
                if (!part.empty()) parts.push_back(std::move(part));
            }
        }
        values = std::move(parts);
    } else if (key->kind == KeyKind::kBool && values.empty()) {
        values = {"true"};
    }
    if (key->kind != KeyKind::kList && values.size() != 1)
        return base::invalid(
            fmt::format("{}: {} takes one value, got {}", place, key->name, values.size()));
    for (std::string& value : values) {
        for (const base::Status& status : {check_kind(*key, value), check_offered(*key, value)}) {
            if (!status)
                return base::Error{status.error().code,
                                   fmt::format("{}: {}", place, status.error().message),
                                   std::string(key->name)};
        }
        if (key->kind == KeyKind::kBool) value = *parse_bool(value) ? "true" : "false";
    }
    Setting& setting = settings_[std::string(key->name)];
    if (setting.source == source)
        return base::invalid(fmt::format("{}: {} and {} are one key; leave one of them out", place,
                                         setting.given_as, name),
                             std::string(key->name));
    setting = {std::move(values), source, std::string(name)};
    return {};
}

base::Result<Config> Config::load(const Inputs& inputs) {
    Config config;
    for (const ConfigKey& key : config_keys()) {
        Setting& setting = config.settings_[std::string(key.name)];
        if (key.kind != KeyKind::kList) setting.values = {std::string(key.fallback)};
    }
    if (inputs.file) {
        auto entries = read_config_file(*inputs.file);
        if (!entries) return std::move(entries).error();
        for (auto& [name, values] : *entries) {
            const auto status =
                config.apply(name, std::move(values), ConfigSource::kFile, *inputs.file);
            if (!status) return status.error();
        }
    }
    for (const auto& [name, value] : inputs.environment) {
        if (name == kIsaVariable || is_service_link(name, value)) continue;
        const std::string key = lower(std::string_view(name).substr(kPrefix.size()));
        if (find_config_key(key) == nullptr) return unknown_variable(name);
        const auto status = config.apply(key, {value}, ConfigSource::kEnvironment, name);
        if (!status) return status.error();
    }
    for (const auto& [name, values] : inputs.flags) {
        const auto status = config.apply(name, values, ConfigSource::kFlag, "command line");
        if (!status) return status.error();
    }
    return config;
}

const Config::Setting& Config::setting(std::string_view key, KeyKind kind) const {
    const ConfigKey* known = find_config_key(key);
    CHECK(known != nullptr && (known->kind == kind || kind == KeyKind::kText),
          "a configuration key that is not in the table, or of another kind");
    return settings_.find(known->name)->second;
}

std::string Config::text(std::string_view key) const {
    return join(setting(key, KeyKind::kText).values);
}

std::vector<std::string> Config::list(std::string_view key) const {
    return setting(key, KeyKind::kList).values;
}

bool Config::boolean(std::string_view key) const {
    return setting(key, KeyKind::kBool).values.front() == "true";
}

std::int64_t Config::integer(std::string_view key) const {
    const std::string& value = setting(key, KeyKind::kInt).values.front();
    std::int64_t result = 0;
    std::from_chars(value.data(), value.data() + value.size(), result);
    return result;
}

double Config::number(std::string_view key) const {
    const std::string& value = setting(key, KeyKind::kNumber).values.front();
    double result = 0;
    std::from_chars(value.data(), value.data() + value.size(), result);
    return result;
}

std::uint64_t Config::bytes(std::string_view key) const {
    return base::parse_byte_size(setting(key, KeyKind::kBytes).values.front()).value();
}

std::chrono::milliseconds Config::duration(std::string_view key) const {
    return parse_duration(setting(key, KeyKind::kDuration).values.front()).value();
}

bool Config::is_word(std::string_view key) const {
    return contains_word("auto|none|", text(key));
}

ConfigSource Config::source(std::string_view key) const {
    return setting(key, KeyKind::kText).source;
}

std::string Config::to_yaml() const {
    std::string yaml;
    for (const ConfigKey& key : config_keys()) {
        const Setting& setting = settings_.find(key.name)->second;
        yaml += fmt::format("{}: {}  # {}{}\n", key.name, yaml_value(key, setting.values),
                            source_name(setting.source), limit_note(key));
    }
    return yaml;
}

}  // namespace pagoda::apps
