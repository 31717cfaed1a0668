"""scripts/check_headers.py finds headers that lean on others, and remembers those that do not."""
import unittest
from unittest import mock

from planted_tree import PlantedTree

import check_headers


class Headers(PlantedTree):
    def check(self):
        return check_headers.check(self.root, self.root / "build", 2)

    def test_a_header_that_includes_what_it_uses_passes(self):
        self.write("src/base/good.h", "#pragma once\n#include <string>\nstd::string name();\n")
        self.assertEqual(self.check(), [])

    def test_a_header_that_leans_on_its_includer_fails(self):
        self.write("src/base/bad.h", "#pragma once\nstd::string name();\n")
        self.assert_one(self.check(), "src/base/bad.h")

    def test_a_header_without_guard_fails(self):
        self.write("src/base/bad.h", "struct A {};\n")
        self.assert_one(self.check(), "src/base/bad.h")

    def test_fragments_are_left_out(self):
        self.write("src/kernels/generic/dot_inl.h", "namespace VARIANT { Missing x; }\n")
        self.assertEqual(self.check(), [])

    def test_what_passed_is_not_compiled_again_until_an_include_changes(self):
        self.write("src/base/inner.h", "#pragma once\nstruct A {};\n")
        self.write("src/base/outer.h", '#pragma once\n#include "base/inner.h"\nA make();\n')
        self.assertEqual(self.check(), [])
        with mock.patch.object(check_headers, "compile_alone", side_effect=AssertionError("compiled again")):
            self.assertEqual(self.check(), [])
        self.write("src/base/inner.h", "#pragma once\nstruct B {};\n")
        self.assert_one(self.check(), "src/base/outer.h")


if __name__ == "__main__":
    unittest.main()
