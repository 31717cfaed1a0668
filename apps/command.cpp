#include "command.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include <fmt/core.h>

#include "base/terminal_text.h"

namespace pagoda::apps {
namespace {

using Named = std::map<std::string, std::vector<std::string>, std::less<>>;

std::vector<std::string> all(const Named& from, std::string_view name) {
    const auto found = from.find(name);
    return found == from.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> last(const Named& from, std::string_view name) {
    const auto found = from.find(name);
    if (found == from.end() || found->second.empty()) return std::nullopt;
    return found->second.back();
}

// A message may quote what a file or a user wrote.
void print_error(const base::Error& error) {
    fmt::print(stderr, "pagoda: {}\n", base::terminal_line(error.message));
}

// Another command line would help, with the system as it is.
bool is_of_user(base::ErrorCode code) {
    return code == base::ErrorCode::kInvalidArgument || code == base::ErrorCode::kNotFound ||
           code == base::ErrorCode::kUnsupported;
}

}  // namespace

bool Arguments::has(std::string_view option) const {
    return options.find(option) != options.end();
}

std::optional<std::string> Arguments::value(std::string_view option) const {
    return last(options, option);
}

std::vector<std::string> Arguments::values(std::string_view option) const {
    return all(options, option);
}

std::optional<std::string> Arguments::positional(std::string_view name) const {
    return last(positionals, name);
}

std::vector<std::string> Arguments::rest(std::string_view name) const {
    return all(positionals, name);
}

base::Result<std::int64_t> Arguments::integer(std::string_view option, std::int64_t fallback,
                                              std::int64_t least, std::int64_t most) const {
    const auto text = value(option);
    if (!text) return fallback;
    return parse_integer(fmt::format("--{}", option), *text, least, most);
}

base::Result<double> Arguments::number(std::string_view option, double fallback, double least,
                                       double most) const {
    const auto text = value(option);
    if (!text) return fallback;
    return parse_number(fmt::format("--{}", option), *text, least, most);
}

ExitCode fail(const base::Error& error) {
    print_error(error);
    return ExitCode::kFailure;
}

ExitCode bad_usage(const base::Error& error) {
    print_error(error);
    return is_of_user(error.code) ? ExitCode::kUsage : ExitCode::kFailure;
}

std::vector<std::string> split_list(std::string_view list) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t comma = list.find(',');
        parts.emplace_back(list.substr(0, comma));
        if (comma == std::string_view::npos) return parts;
        list.remove_prefix(comma + 1);
    }
}

base::Result<std::int64_t> parse_integer(std::string_view name, std::string_view text,
                                         std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || value < least || value > most)
        return base::invalid(
            fmt::format("{} must be an integer from {} to {}, got \"{}\"", name, least, most, text),
            std::string(name));
    return value;
}

base::Result<double> parse_number(std::string_view name, std::string_view text, double least,
                                  double most) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || !std::isfinite(value) || value < least || value > most)
        return base::invalid(
            fmt::format("{} must be a number from {} to {}, got \"{}\"", name, least, most, text),
            std::string(name));
    return value;
}

}  // namespace pagoda::apps
