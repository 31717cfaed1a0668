"""scripts/check_sizes.py finds what is too long, and only that."""
import unittest

from planted_tree import PlantedTree

import check_sizes
import cpp_functions


def lines(count, text="    work();\n"):
    return text * count


class Sizes(PlantedTree):
    def check(self):
        return check_sizes.check(self.root, {})

    def test_a_file_at_the_limit_passes_and_one_line_more_fails(self):
        self.write("src/fits.cpp", lines(800, "// line\n"))
        self.assertEqual(self.check(), [])
        self.write("src/long.cpp", lines(801, "// line\n"))
        self.assert_one(self.check(), "src/long.cpp", "801", "800")

    def test_scripts_and_tests_count_too(self):
        self.write("tests/long_test.cpp", lines(801, "// line\n"))
        self.write("scripts/long.sh", lines(801, "# line\n"))
        self.assertEqual(len(self.check()), 2)

    def test_a_function_at_the_limit_passes_and_one_line_more_fails(self):
        self.write("src/fits.cpp", "void f() {\n" + lines(78) + "}\n")
        self.assertEqual(self.check(), [])
        self.write("src/long.cpp", "namespace a::b {\nint Thing::run(int x) const {\n" + lines(79) + "}\n}\n")
        self.assert_one(self.check(), "src/long.cpp:2", "run", "81")

    def test_a_test_body_is_a_function(self):
        self.write("src/x_test.cpp", "TEST(Thing, Works) {\n" + lines(80) + "}\n")
        self.assert_one(self.check(), "src/x_test.cpp:1", "TEST")

    def test_a_method_inside_a_class_is_found(self):
        self.write("src/x.h", "struct A {\npublic:\n    int f() noexcept {\n" + lines(80) + "    }\n};\n")
        self.assert_one(self.check(), "src/x.h:3", "f has 82")

    def test_braces_in_literals_do_not_count(self):
        self.write("src/x.cpp", 'void f() {\n  g("}}}", R"x(}")")x", \'}\', 1\'000);\n' + lines(80) + "}\n")
        self.assert_one(self.check(), "src/x.cpp:1", "f has 83")

    def test_long_tables_are_no_functions(self):
        self.write("src/x.cpp", "const std::array<int, 2> kTable = {\n" + lines(200, "    1,\n") + "};\n"
                   "constexpr Kernels table_x{\n" + lines(100, "    .f = &f,\n") + "};\n")
        self.assertEqual(self.check(), [])

    def test_too_many_parameters_fail_in_definitions_and_declarations(self):
        self.write("src/x.h", "int f(int a, int b, int c, int d, int e, std::pair<int, int> g = {1, 2});\n")
        self.assert_one(self.check(), "src/x.h:1", "6 parameters")
        self.write("src/x.h", "int f(std::map<int, int> a, std::function<int(int, int)> b, int c, int d, int e);\n")
        self.assertEqual(self.check(), [])

    def test_python_is_held_to_the_same(self):
        self.write("scripts/x.py", "def f(a, b, c, d, e, g):\n    pass\n\n\ndef h():\n" + lines(80, "    pass\n"))
        self.assertEqual(len(self.check()), 2)

    def test_an_exemption_needs_its_file(self):
        self.assert_one(check_sizes.check(self.root, {"src/gone.cpp": "a reason"}), "src/gone.cpp")


class Functions(unittest.TestCase):
    def names(self, text):
        return [(f.name, f.num_parameters) for f in cpp_functions.functions(text) if f.has_body]

    def test_constructor_lists_are_no_bodies(self):
        text = "struct A {\n  A(int a, int b) noexcept : x{a}, y_(b), z_{f(a)} {\n    go();\n  }\n  int x{3};\n};\n"
        self.assertEqual(self.names(text), [("A", 2)])

    def test_operators_templates_and_trailing_types(self):
        text = ("template <typename T> requires (sizeof(T) > 1)\nauto f(T a, T b) -> std::vector<T> { return {a, b}; }\n"
                "struct C { bool operator()(int a, int b) const { return a < b; } };\n"
                "[[nodiscard]] Result<int> X::g(std::span<const int> a) const& { return 1; }\n")
        self.assertEqual(self.names(text), [("f", 2), ("operator()", 2), ("g", 1)])

    def test_anonymous_namespaces_and_linkage_are_scopes(self):
        text = 'namespace {\nextern "C" {\nint f() { return 1; }\n}\n}  // namespace\nenum class E { kA };\nint g() { return 2; }\n'
        self.assertEqual(self.names(text), [("f", 0), ("g", 0)])


if __name__ == "__main__":
    unittest.main()
