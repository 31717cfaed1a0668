// No template, however hostile, takes more than its limits of time, memory and stack.

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "text/jinja/program.h"

namespace pagoda::text::jinja {
namespace {

base::Result<std::string> render(std::string_view source, const Limits& limits = {}) {
    auto program = Program::compile(source);
    if (!program.ok()) return program.error();
    RenderInput input;
    input.limits = limits;
    return program.value()->render(input);
}

void expect_exhausted(std::string_view source, const Limits& limits = {}) {
    const auto text = render(source, limits);
    ASSERT_FALSE(text.ok()) << source;
    EXPECT_EQ(text.error().code, base::ErrorCode::kResourceExhausted)
        << source << ": " << text.error().message;
}

std::string repeated(std::string_view text, int times) {
    std::string out;
    for (int each = 0; each < times; ++each) out += text;
    return out;
}

TEST(JinjaLimits, NestedLoopsRunOutOfSteps) {
    Limits limits;
    limits.max_steps = 100'000;
    expect_exhausted(
        "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        limits);
}

TEST(JinjaLimits, LongWorkRunsOutOfTime) {
    Limits limits;
    limits.max_time = std::chrono::milliseconds(50);
    limits.max_steps = INT64_MAX / 2;
    const auto start = std::chrono::steady_clock::now();
    expect_exhausted(
        "{% set s = 'ab' * 4000000 %}{% for a in range(99999) %}{% set t = s|upper %}{% endfor %}",
        limits);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(JinjaLimits, MultipliedTextIsRefusedBeforeItIsMade) {
    for (const std::string_view source :
         {"{{ 'x' * 9999999999 }}", "{{ 'x' * 9223372036854775807 }}", "{{ [1] * 9999999999 }}",
          "{{ 'x'.center(9999999999) }}", "{{ '%9999999999d' % 1 }}",
          "{{ '{:9999999999}'.format(1) }}", "{{ 'x'.zfill(9999999999) }}",
          "{{ 'a\nb'|indent(9999999999) }}", "{{ [[1], [2]]|tojson(indent=9999999999) }}",
          "{{ [1]|batch(9999999999, 'x')|list }}", "{{ 'a\tb'.expandtabs(9999999999) }}",
          "{{ range(1, 9999999999) }}", "{{ [1]|slice(9999999999)|list }}",
          "{{ ('x' * 30000000).replace('', 'yyy') }}"}) {
        expect_exhausted(source);
    }
}

TEST(JinjaLimits, OutputIsBounded) {
    Limits limits;
    limits.max_bytes = 1 << 20;
    expect_exhausted(
        "{% for a in range(99999) %}0123456789012345678901234567890123456789{% endfor %}", limits);
    expect_exhausted(
        "{% set ns = namespace(s='x') %}{% for a in range(99) %}"
        "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        limits);
    expect_exhausted(
        "{% set ns = namespace(l=[1]) %}{% for a in range(99) %}"
        "{% set ns.l = ns.l + ns.l %}{% endfor %}",
        limits);
}

TEST(JinjaLimits, MemoryThatIsGivenBackMayBeUsedAgain) {
    Limits limits;
    limits.max_bytes = 1 << 20;
    limits.max_time = std::chrono::minutes(2);
    const auto text = render(
        "{% for a in range(5000) %}{% set s = 'x' * 10000 %}{% endfor %}{{ 'done' }}", limits);
    EXPECT_TRUE(text.ok()) << text.error().message;
}

TEST(JinjaLimits, EndlessRecursionEnds) {
    expect_exhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
    expect_exhausted(
        "{% macro m(x) %}{{ [x]|map('string')|list }}{{ m([x]) }}{% endmacro %}{{ m(1) }}");
    expect_exhausted(
        "{% macro m() %}{% call m() %}{% endcall %}{{ caller }}{% endmacro %}{% call m() %}{% "
        "endcall %}");
    expect_exhausted("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}");
}

TEST(JinjaLimits, RecursionOfReasonableDepthWorks) {
    const auto text = render(
        "{% macro m(n) %}{% if n > 0 %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}");
    EXPECT_TRUE(text.ok()) << text.error().message;
}

TEST(JinjaLimits, NestedValuesHaveABoundedDepth) {
    expect_exhausted(
        "{% set ns = namespace(l=[]) %}{% for a in range(9999) %}"
        "{% set ns.l = [ns.l] %}{% endfor %}");
    expect_exhausted(
        "{% set ns = namespace(l={}) %}{% for a in range(9999) %}"
        "{% set ns.l = {'k': ns.l} %}{% endfor %}");
}

TEST(JinjaLimits, LongChainsOfNamespacesAreDestroyedWithoutRecursion) {
    Limits limits;
    limits.max_time = std::chrono::minutes(2);
    const auto text = render(
        "{% set ns = namespace(l=none) %}{% for a in range(90000) %}"
        "{% set ns.l = namespace(l=ns.l) %}{% endfor %}done",
        limits);
    EXPECT_TRUE(text.ok()) << text.error().message;
}

TEST(JinjaLimits, CyclesAreFreed) {
    // The leak checker of the sanitizer build fails this test when they are not.
    const auto text = render(
        "{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.list = [ns] %}"
        "{% macro m() %}{{ m }}{% endmacro %}{% set ns.m = m %}"
        "{% for a in [1, 2] %}{% set ns.loop = loop %}{{ loop.changed(loop) }}{% endfor %}");
    EXPECT_TRUE(text.ok()) << text.error().message;
}

TEST(JinjaLimits, PrintingACycleEnds) {
    expect_exhausted("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}");
}

TEST(JinjaLimits, ValuesThatShareTheirPartsTakeSteps) {
    const std::string shared =
        "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(200) %}"
        "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}";
    Limits limits;
    limits.max_steps = 100'000;
    expect_exhausted(shared + "{{ ns.a == ns.b }}", limits);
    expect_exhausted(shared + "{{ ns.a|string|length }}", limits);
    expect_exhausted(shared + "{{ ns.a|tojson|length }}", limits);
    expect_exhausted(shared + "{{ ns.a|pprint|length }}", limits);
    expect_exhausted(shared + "{{ ns.a < ns.b }}", limits);
}

TEST(JinjaLimits, DeepNestingIsRefusedWhenCompiling) {
    for (const std::string& source :
         {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
          "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
          "{{ " + repeated("-", 5000) + "1 }}", "{{ x" + repeated(".a", 5000) + " }}",
          "{{ x" + repeated("|upper", 5000) + " }}", "{{ x" + repeated("()", 5000) + " }}",
          "{{ x" + repeated("[0]", 5000) + " }}", "{{ " + repeated("1 if x else ", 5000) + "2 }}",
          "{{ x " + repeated("if x ", 5000) + "}}", "{{ x" + repeated(" is defined", 5000) + " }}",
          repeated("{% if x %}", 5000) + repeated("{% endif %}", 5000),
          "{% set " + repeated("(", 5000) + "a" + repeated(")", 5000) + " = 1 %}"}) {
        const auto text = render(source);
        EXPECT_FALSE(text.ok()) << source.substr(0, 40);
    }
}

TEST(JinjaLimits, LongFlatTemplatesCompile) {
    const std::string chain = "{{ 'a'" + repeated(" ~ 'a'", 20000) + " }}";
    const auto text = render(chain);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(text.value().size(), 20001U);
    EXPECT_TRUE(render("{{ 1" + repeated(" + 1", 20000) + " }}").ok());
    EXPECT_TRUE(render("{{ x" + repeated(" or x", 20000) + " }}").ok());
    EXPECT_TRUE(render("{{ " + repeated("not ", 20000) + "x }}").ok());
    EXPECT_TRUE(render("{% if x %}" + repeated("{% elif x %}", 20000) + "{% endif %}").ok());
}

}  // namespace
}  // namespace pagoda::text::jinja
