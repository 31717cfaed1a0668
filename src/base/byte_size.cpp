#include "base/byte_size.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "base/cpu_topology.h"

namespace pagoda::base {
namespace {

constexpr std::uint64_t kKi = 1024;

struct Unit {
    std::string_view suffix;
    std::uint64_t bytes;
};
constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKi},
    Unit{"m", kKi* kKi},
    Unit{"g", kKi* kKi* kKi},
    Unit{"t", kKi* kKi* kKi* kKi},
    Unit{"kib", kKi},
    Unit{"mib", kKi* kKi},
    Unit{"gib", kKi* kKi* kKi},
    Unit{"tib", kKi* kKi* kKi* kKi},
    Unit{"kb", 1'000},
    Unit{"mb", 1'000'000},
    Unit{"gb", 1'000'000'000},
    Unit{"tb", 1'000'000'000'000},
};

bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

std::optional<std::uint64_t> unit_bytes(std::string_view suffix) {
    std::string lower(suffix);
    for (char& character : lower) {
        if (character >= 'A' && character <= 'Z') character = static_cast<char>(character + 32);
    }
    for (const Unit& unit : kUnits) {
        if (unit.suffix == lower) return unit.bytes;
    }
    return std::nullopt;
}

Error malformed(std::string_view text) {
    return invalid(
        fmt::format("a size must be a number with an optional unit (512MiB, 1.5GB, 64k),"
                    " got \"{}\"",
                    text));
}

// The bytes of a fraction of a unit, "25" of ".25", rounded to the nearest.
std::uint64_t fraction_bytes(std::string_view digits, std::uint64_t unit) {
    double share = 0;
    double place = 0.1;
    for (const char digit : digits) {
        share += place * (digit - '0');
        place /= 10;
    }
    return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(unit)));
}

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text) {
    std::size_t whole_end = 0;
    while (whole_end < text.size() && is_digit(text[whole_end])) ++whole_end;
    if (whole_end == 0) return malformed(text);
    std::size_t number_end = whole_end;
    if (number_end < text.size() && text[number_end] == '.') {
        ++number_end;
        while (number_end < text.size() && is_digit(text[number_end])) ++number_end;
        if (number_end == whole_end + 1) return malformed(text);
    }
    std::size_t unit_start = number_end;
    if (unit_start + 1 < text.size() && text[unit_start] == ' ') ++unit_start;
    const std::optional<std::uint64_t> unit = unit_bytes(text.substr(unit_start));
    if (!unit) return malformed(text);

    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    std::uint64_t whole = 0;
    const auto read = std::from_chars(text.data(), text.data() + whole_end, whole);
    if (read.ec != std::errc() || whole > kMax / *unit) {
        return invalid(fmt::format("a size must be below 8 EiB, got \"{}\"", text));
    }
    const std::string_view fraction =
        number_end > whole_end ? text.substr(whole_end + 1, number_end - whole_end - 1) : "";
    return whole * *unit + fraction_bytes(fraction, *unit);
}

std::string format_byte_size(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 7> kNames = {"B",   "KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
    if (bytes < 1000) return fmt::format("{} B", bytes);
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < kNames.size()) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.3g} {}", value, kNames[unit]);
}

std::uint64_t memory_limit_bytes() {
    return usable_memory_bytes("");
}

std::uint64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t size_pages = 0;
    std::uint64_t resident_pages = 0;
    if (!(file >> size_pages >> resident_pages)) return 0;
    return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace pagoda::base
