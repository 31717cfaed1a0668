#pragma once
// The table of configuration keys: everything about a key but its effect. Flags, environment
// variables, the file, --print-config and the help all come from it. Constant; thread-safe.

#include <span>
#include <string_view>

namespace pagoda::apps {

enum class KeyKind { kText, kList, kBool, kInt, kNumber, kBytes, kDuration, kChoice };

// Which commands have the key as a flag.
inline constexpr unsigned kUsesServer = 1U << 0;
inline constexpr unsigned kUsesModel = 1U << 1;    // commands that run a model
inline constexpr unsigned kUsesAnswers = 1U << 2;  // commands that sample answers to users

struct ConfigKey {
    std::string_view name;  // with underscores
    KeyKind kind = KeyKind::kText;
    // A word that is not of the kind ("auto", "none") is a value of its own.
    std::string_view fallback;
    unsigned uses = 0;
    std::string_view help;
    double least = 0, most = 0;  // kInt, kNumber and, in bytes, kBytes
    std::string_view choices;    // kChoice: known values, separated by '|'
    // The values that this version offers, separated by '|', where they are fewer than those known;
    // the others are refused with the reason.
    std::string_view offered;
    std::string_view reason;
    bool is_secret = false;
    std::string_view alias;
};

[[nodiscard]] std::span<const ConfigKey> config_keys();
// By name or alias, '-' and '_' alike; null when there is none.
[[nodiscard]] const ConfigKey* find_config_key(std::string_view name);
// The nearest known name; may be empty.
[[nodiscard]] std::string_view nearest_config_key(std::string_view name);
// What stands for its value in the help.
[[nodiscard]] std::string_view kind_name(const ConfigKey& key);
// This version offers more than one value of it.
[[nodiscard]] bool has_choice(const ConfigKey& key);
// A set of words "a|b|c".
[[nodiscard]] bool contains_word(std::string_view set, std::string_view word);

}  // namespace pagoda::apps
