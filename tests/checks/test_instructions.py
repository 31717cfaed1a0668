"""scripts/check_instructions.py sees instructions outside the kernel variants that not every x86-64 has."""
import platform
import subprocess
import unittest

from planted_tree import PlantedTree

import check_instructions

DOT = "float dot(const float* a, const float* b) { float s = 0; for (int i = 0; i < 64; ++i) s += a[i] * b[i]; return s; }\n"
COUNT = "int count(unsigned long long a) { return __builtin_popcountll(a); }\n"


@unittest.skipUnless(platform.machine() == "x86_64", "objects of another machine")
class Instructions(PlantedTree):
    def build(self, source, flags="", folder="src/text/CMakeFiles/pagoda_text.dir"):
        path = self.write("x.cpp", source)
        out = self.root / "build" / folder / "x.cpp.o"
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-O2", *flags.split(), "-c", path, "-o", out], check=True)
        return check_instructions.check(self.root / "build")

    def test_baseline_code_passes(self):
        self.assertEqual(self.build(DOT + COUNT), [])

    def test_avx_by_a_flag_fails_and_the_function_is_named(self):
        found = self.build(DOT, "-mavx2")
        self.assertTrue(found)
        self.assertRegex(found[0], r"^src/text/.*/x.cpp.o: v\w+ in dot\(")

    def test_avx_512_by_an_attribute_fails(self):
        self.assertTrue(self.build("__attribute__((target(\"avx512f\"), optimize(\"O3\"))) " + DOT))

    def test_newer_sse_and_bit_instructions_fail(self):
        self.assert_one(self.build(COUNT, "-mpopcnt"), "popcnt in count")
        self.assertTrue(self.build("int f(int a, int b) { return ~a & b; }\n", "-mbmi"))
        self.assertTrue(self.build("#include <cmath>\ndouble f(double a) { return std::floor(a); }\n", "-msse4.1"))

    def test_a_variant_and_a_test_may_have_them(self):
        self.build(DOT)
        for folder in ("src/kernels/CMakeFiles/pagoda_kernels_avx2.dir/avx2", "src/kernels/CMakeFiles/kernels_test.dir"):
            self.assertEqual(self.build(DOT, "-mavx2", folder), [])

    def test_a_tree_without_objects_fails(self):
        self.assert_one(check_instructions.check(self.root), "no object of a module")


if __name__ == "__main__":
    unittest.main()
