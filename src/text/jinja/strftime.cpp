#include "text/jinja/strftime.h"

#include <array>
#include <charconv>
#include <ctime>

#include <fmt/core.h>

#include "text/jinja/failure.h"

namespace pagoda::text::jinja {

namespace {

int parse_digits(std::string_view date, std::size_t at, std::size_t count) {
    int number = -1;
    if (at + count <= date.size()) {
        const char* const begin = date.data() + at;
        const auto parsed = std::from_chars(begin, begin + count, number);
        if (parsed.ec != std::errc() || parsed.ptr != begin + count) number = -1;
    }
    return number;
}

std::tm parse_date(std::string_view date) {
    std::tm time{};
    const bool has_time = date.size() == 19;
    const int year = parse_digits(date, 0, 4);
    const int month = parse_digits(date, 5, 2);
    time.tm_mday = parse_digits(date, 8, 2);
    time.tm_hour = has_time ? parse_digits(date, 11, 2) : 0;
    time.tm_min = has_time ? parse_digits(date, 14, 2) : 0;
    time.tm_sec = has_time ? parse_digits(date, 17, 2) : 0;
    const bool is_valid = (has_time || date.size() == 10) && year >= 1 && month >= 1 &&
                          month <= 12 && time.tm_mday >= 1 && time.tm_mday <= 31 &&
                          time.tm_hour >= 0 && time.tm_hour <= 23 && time.tm_min >= 0 &&
                          time.tm_min <= 59 && time.tm_sec >= 0 && time.tm_sec <= 60;
    if (!is_valid) {
        fail(fmt::format("the date must read YYYY-MM-DDTHH:MM:SS, got '{}'", date));
    }
    time.tm_year = year - 1900;
    time.tm_mon = month - 1;
    time.tm_isdst = -1;
    // The day of the week and of the year, without any time zone.
    std::tm normalized = time;
    normalized.tm_isdst = 0;
    timegm(&normalized);
    time.tm_wday = normalized.tm_wday;
    time.tm_yday = normalized.tm_yday;
    return time;
}

}  // namespace

std::string format_time(Heap& heap, std::string_view date, std::string_view format) {
    static constexpr std::string_view kDirectives = "aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyY";
    const std::tm time = parse_date(date);
    TextBuilder out(heap);
    for (std::size_t at = 0; at < format.size();) {
        if (format[at] != '%' || at + 1 >= format.size()) {
            out.append(format[at++]);
            continue;
        }
        std::string directive = "%";
        ++at;
        static constexpr std::string_view kFlags = "-_0^#";
        while (at < format.size() && kFlags.find(format[at]) != std::string_view::npos &&
               directive.size() < 4) {
            directive += format[at++];
        }
        const char kind = at < format.size() ? format[at++] : '%';
        directive += kind;
        if (kind == '%') {
            out.append('%');
        } else if (kind == 'f') {
            out.append("000000");
        } else if (kDirectives.find(kind) != std::string_view::npos) {
            std::array<char, 128> buffer{};
            const std::size_t size =
                std::strftime(buffer.data(), buffer.size(), directive.c_str(), &time);
            out.append(std::string_view(buffer.data(), size));
        } else if (kind != 'z' && kind != 'Z') {  // a date without a zone prints none
            out.append(directive);
        }
    }
    return out.take();
}

std::string local_time(std::int64_t unix_seconds) {
    const auto moment = static_cast<std::time_t>(unix_seconds);
    std::tm local{};
    localtime_r(&moment, &local);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", local.tm_year + 1900,
                       local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace pagoda::text::jinja
