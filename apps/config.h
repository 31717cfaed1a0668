#pragma once
// Config: the effective configuration, from defaults, a YAML file, the environment and flags, each
// layer over the one before. Every value was checked when it came in, so reading one cannot fail.
// Immutable after load(); thread-safe to read.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config_keys.h"

namespace pagoda::apps {

enum class ConfigSource { kDefault, kFile, kEnvironment, kFlag };

class Config {
  public:
    using Values = std::map<std::string, std::vector<std::string>, std::less<>>;
    struct Inputs {
        std::optional<std::string> file;
        std::vector<std::pair<std::string, std::string>> environment;  // PAGODA_ variables
        Values flags;
    };
    // Errors name the key, the value, where it came from and what is allowed; unknown names come
    // with the nearest known one, and a key that one layer gives under two names is refused.
    [[nodiscard]] static base::Result<Config> load(const Inputs& inputs);

    // REQUIRES: the key exists and is of that kind.
    [[nodiscard]] std::string text(std::string_view key) const;
    [[nodiscard]] std::vector<std::string> list(std::string_view key) const;
    [[nodiscard]] bool boolean(std::string_view key) const;
    [[nodiscard]] std::int64_t integer(std::string_view key) const;
    [[nodiscard]] double number(std::string_view key) const;
    [[nodiscard]] std::uint64_t bytes(std::string_view key) const;
    [[nodiscard]] std::chrono::milliseconds duration(std::string_view key) const;
    // The value is a word in place of one of its kind: "auto", "none", or empty.
    [[nodiscard]] bool is_word(std::string_view key) const;
    [[nodiscard]] ConfigSource source(std::string_view key) const;
    [[nodiscard]] bool is_default(std::string_view key) const {
        return source(key) == ConfigSource::kDefault;
    }

    // The whole as YAML that load() reads back, but for secrets, which are masked.
    [[nodiscard]] std::string to_yaml() const;

  private:
    struct Setting {
        std::vector<std::string> values;
        ConfigSource source = ConfigSource::kDefault;
        std::string given_as = {};  // the name as it was written there
    };
    [[nodiscard]] const Setting& setting(std::string_view key, KeyKind kind) const;
    [[nodiscard]] base::Status apply(std::string_view name, std::vector<std::string> values,
                                     ConfigSource source, const std::string& place);

    std::map<std::string, Setting, std::less<>> settings_;
};

// The PAGODA_ variables of this process.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> pagoda_environment();

// "20s", "500ms", "2m", "1h"; a bare number counts seconds.
[[nodiscard]] base::Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// The scalars and lists of scalars of a YAML mapping, in its order.
[[nodiscard]] base::Result<std::vector<std::pair<std::string, std::vector<std::string>>>>
read_config_file(const std::string& path);

}  // namespace pagoda::apps
