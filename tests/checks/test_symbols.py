"""scripts/check_symbols.py sees what a kernel variant leaks, also what only shows without optimisation."""
import json
import subprocess
import unittest

from planted_tree import PlantedTree

import check_symbols

TABLE = "namespace pagoda::kernels { struct K { int a; }; extern const K table_avx2; const K table_avx2{1}; }\n"


class Symbols(PlantedTree):
    def build(self, source, variant="avx2"):
        path = self.write(f"src/{variant}/x.cpp", source)
        build = self.root / "build"
        out = f"CMakeFiles/pagoda_kernels_{variant}.dir/{variant}/x.cpp.o"
        (build / out).parent.mkdir(parents=True, exist_ok=True)
        command = f"g++ -std=c++20 -O2 -o {out} -c {path}"
        subprocess.run(command.split(), cwd=build, check=True)
        (build / "compile_commands.json").write_text(json.dumps([dict(directory=str(build), command=command, file=str(path))]))
        return check_symbols.check(build)

    def test_a_table_alone_passes(self):
        self.assertEqual(self.build("namespace { int f() { return 3; } }\n" + TABLE), [])

    def test_entry_points_in_the_namespace_of_the_variant_pass(self):
        self.assertEqual(self.build(TABLE + "namespace pagoda::kernels::avx2 { int dot(int a) { return a; } }\n"), [])

    def test_an_entry_point_of_another_variant_fails(self):
        self.assertTrue(self.build(TABLE + "namespace pagoda::kernels::avx512 { int dot(int a) { return a; } }\n"))

    def test_an_exported_function_fails(self):
        problems = self.build(TABLE + "int leaked() { return 1; }\n")
        self.assertEqual(len(problems), 2)  # as built, and at -O0
        self.assertIn("leaked", problems[0])

    def test_the_table_of_another_variant_fails(self):
        self.assertTrue(self.build(TABLE, variant="avx512"))

    def test_a_weak_symbol_fails_though_optimisation_hides_it(self):
        source = "#include <algorithm>\nnamespace pagoda::kernels { extern const int table_avx2;\n" \
                 "const int table_avx2 = 4; namespace avx2 { int g(int a) { return std::max(a, 2); } } }\n"
        self.assert_one(self.build(source), "-O0", "weak symbol", "std::max")

    def test_a_tree_without_variants_fails(self):
        self.assert_one(check_symbols.check(self.root), "no object of a kernel variant")


if __name__ == "__main__":
    unittest.main()
