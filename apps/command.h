#pragma once
// What a command is: its name, what it takes and the function that does it. Pure declarations; the
// parser (command_line.h) fills Arguments from them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::apps {

enum class ExitCode : int { kSuccess = 0, kFailure = 1, kUsage = 2 };

struct OptionSpec {
    std::string_view name;   // "max-tokens", without dashes
    std::string_view value;  // what stands for the value in the help; empty: a switch
    std::string_view help;
    bool repeats = false;
};

struct PositionalSpec {
    std::string_view name;  // "MODEL"
    std::string_view help;
    bool is_required = true;
    bool repeats = false;
};

// What was given. Immutable after parsing.
struct Arguments {
    std::map<std::string, std::vector<std::string>, std::less<>> options;
    std::map<std::string, std::vector<std::string>, std::less<>> positionals;
    // Configuration keys that were given as flags, with underscores.
    std::map<std::string, std::vector<std::string>, std::less<>> config;

    [[nodiscard]] bool has(std::string_view option) const;
    // The last one given.
    [[nodiscard]] std::optional<std::string> value(std::string_view option) const;
    [[nodiscard]] std::vector<std::string> values(std::string_view option) const;
    [[nodiscard]] std::optional<std::string> positional(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> rest(std::string_view name) const;
    // Errors name option, value and limits.
    [[nodiscard]] base::Result<std::int64_t> integer(std::string_view option, std::int64_t fallback,
                                                     std::int64_t least, std::int64_t most) const;
    [[nodiscard]] base::Result<double> number(std::string_view option, double fallback,
                                              double least, double most) const;
};

struct CommandSpec {
    std::string_view name;  // "serve", "bench roof"
    std::string_view summary;
    std::vector<PositionalSpec> positionals;
    std::vector<OptionSpec> options;
    unsigned config_uses = 0;  // which configuration keys are its flags (config_keys.h)
    std::string_view examples;
    ExitCode (*run)(const Arguments& arguments) = nullptr;
};

// "pagoda: MESSAGE" on standard error, and the status: of an operation that failed 1; of what a
// user gave 2, but that 1 stands for what the system refused, a file that can't be read above all.
ExitCode fail(const base::Error& error);
ExitCode bad_usage(const base::Error& error);

// The parts of "a,b,c", empty ones too.
[[nodiscard]] std::vector<std::string> split_list(std::string_view list);

// Decimal integers and numbers of users, whole text; an error says what was expected.
[[nodiscard]] base::Result<std::int64_t> parse_integer(std::string_view name, std::string_view text,
                                                       std::int64_t least, std::int64_t most);
[[nodiscard]] base::Result<double> parse_number(std::string_view name, std::string_view text,
                                                double least, double most);

}  // namespace pagoda::apps
