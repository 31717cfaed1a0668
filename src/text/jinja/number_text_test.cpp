#include "text/jinja/number_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace pagoda::text::jinja {
namespace {

TEST(NumberText, FloatsReadAsInPython) {
    EXPECT_EQ(float_repr(0.0), "0.0");
    EXPECT_EQ(float_repr(-0.0), "-0.0");
    EXPECT_EQ(float_repr(0.1 + 0.2), "0.30000000000000004");
    EXPECT_EQ(float_repr(1e15), "1000000000000000.0");
    EXPECT_EQ(float_repr(1e16), "1e+16");
    EXPECT_EQ(float_repr(1.5e-5), "1.5e-05");
    EXPECT_EQ(float_repr(0.0001), "0.0001");
    EXPECT_EQ(float_repr(5e-324), "5e-324");
    EXPECT_EQ(float_repr(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
    EXPECT_EQ(float_repr(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(NumberText, MalformedSpecificationsAreRefused) {
    for (const std::string_view spec : {"5q7", ".", "99999999999999999999", ".f"}) {
        EXPECT_FALSE(parse_format(spec).has_value()) << spec;
    }
}

TEST(NumberText, ExtremesOfIntegersFormat) {
    constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(format_integer(kLowest, *parse_format("")), "-9223372036854775808");
    EXPECT_EQ(format_integer(kLowest, *parse_format("x")), "-8000000000000000");
    EXPECT_EQ(format_integer(-5, *parse_format("=+8,d")), "-      5");
}

TEST(NumberText, LongFixedFormsAreWhole) {
    EXPECT_EQ(format_float(1e308, *parse_format(".2f")).size(), 312U);
    EXPECT_EQ(format_float(5e-324, *parse_format(".400f")).size(), 402U);
}

}  // namespace
}  // namespace pagoda::text::jinja
