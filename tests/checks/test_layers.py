"""scripts/check_layers.py sees every way out of the layers."""
import unittest

from planted_tree import REPOSITORY, PlantedTree

import check_layers

TABLE = """
[base]
path = "src/base"
modules = []
libraries = ["fmt/"]
[kv-index]
path = "src/kv/index"
modules = ["base"]
libraries = []
[kv-store]
path = "src/kv/store"
modules = ["base", "kv-index"]
libraries = []
[apps]
path = "apps"
modules = ["base", "kv-store"]
libraries = ["CLI/"]
"""


class Layers(PlantedTree):
    def setUp(self):
        super().setUp()
        self.write("layers.toml", TABLE)
        self.write("src/base/result.h", "#pragma once\n#include <fmt/core.h>\n#include <string>\n#include <unistd.h>\n")
        self.write("src/kv/index/pool.h", '#pragma once\n#include "base/result.h"\n')
        self.write("src/kv/store/tier.cpp", '#include "kv/index/pool.h"\n#include "base/result.h"\n')
        self.write("apps/main.cpp", '#include "flags.h"\n#include <CLI/CLI.hpp>\n#include "base/result.h"\n')
        self.write("apps/flags.h", "#pragma once\n")

    def test_allowed_includes_pass(self):
        self.assertEqual(check_layers.check(self.root), [])

    def test_an_upward_include_fails(self):
        self.write("src/base/bad.cpp", '#include "base/result.h"\n#include "kv/index/pool.h"\n')
        self.assert_one(check_layers.check(self.root), "src/base/bad.cpp:2", "base may not include kv-index")

    def test_an_include_in_a_comment_is_none(self):
        self.write("src/base/fine.cpp", '// #include "kv/index/pool.h"\n/*\n#include "kv/index/pool.h"\n*/\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_spaces_do_not_hide_an_include(self):
        self.write("src/base/bad.cpp", '  #  include   "kv/index/pool.h"\n')
        self.assert_one(check_layers.check(self.root), "src/base/bad.cpp:1")

    def test_neighbours_on_one_level_do_not_see_each_other(self):
        self.write("src/kv/index/bad.cpp", '#include "kv/store/tier.h"\n')
        self.write("src/kv/store/tier.h", "#pragma once\n")
        self.assert_one(check_layers.check(self.root), "kv-index may not include kv-store")

    def test_tests_obey_too_but_may_use_googletest(self):
        self.write("src/base/good_test.cpp", "#include <gtest/gtest.h>\n")
        self.write("src/base/bad_test.cpp", '#include "kv/index/pool.h"\n')
        self.assert_one(check_layers.check(self.root), "src/base/bad_test.cpp:1")

    def test_googletest_stays_out_of_the_product(self):
        self.write("src/base/bad.cpp", "#include <gtest/gtest.h>\n")
        self.assert_one(check_layers.check(self.root), "<gtest/gtest.h>", "base")

    def test_what_is_for_tests_stays_among_tests(self):
        self.write("src/base/tree_for_test.h", "#pragma once\n#include <gtest/gtest.h>\n")
        self.write("src/base/good_test.cpp", '#include "base/tree_for_test.h"\n')
        self.assertEqual(check_layers.check(self.root), [])
        self.write("src/base/bad.cpp", '#include "base/tree_for_test.h"\n')
        self.assert_one(check_layers.check(self.root), "src/base/bad.cpp:1", "for tests only")

    def test_an_unlisted_library_fails(self):
        self.write("src/kv/index/bad.cpp", "#include <fmt/core.h>\n")
        self.assert_one(check_layers.check(self.root), "<fmt/core.h>", "kv-index")

    def test_includes_are_root_relative(self):
        self.write("src/base/bad.cpp", '#include "result.h"\n#include "../base/result.h"\n')
        self.assertEqual(len(check_layers.check(self.root)), 2)

    def test_a_header_that_a_script_writes_passes(self):
        self.write("apps/stamp.cmake", "\n")
        self.write("apps/version.cpp", '#include "stamp.h"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_a_folder_without_module_fails(self):
        self.write("src/extras/x.cpp", "\n")
        self.assert_one(check_layers.check(self.root), "src/extras/x.cpp", "no module")

    def test_a_file_between_modules_fails(self):
        self.write("src/kv/x.cpp", "\n")
        self.assert_one(check_layers.check(self.root), "src/kv/x.cpp", "no module")

    def test_a_cycle_in_the_table_fails(self):
        self.write("layers.toml", TABLE.replace("modules = []", 'modules = ["kv-store"]'))
        self.assert_one(check_layers.check(self.root), "cycle", "base", "kv-store")

    def test_an_unknown_module_in_the_table_fails(self):
        self.write("layers.toml", TABLE.replace("modules = []", 'modules = ["bse"]'))
        self.assert_one(check_layers.check(self.root), "'bse'")

    def test_empty_names_fail(self):
        for name in ("src/base/string_utils.h", "src/base/helpers_test.cpp", "apps/misc.cpp", "tests/common/x.py"):
            with self.subTest(name):
                path = self.write(name, "\n")
                self.assertTrue(any(name in p for p in check_layers.check(self.root)))
                path.unlink()

    def test_empty_class_names_fail(self):
        self.write("src/base/bad.h", "#pragma once\nclass BlockManager {};\n// class KeyHelper {};\n")
        self.assert_one(check_layers.check(self.root), "src/base/bad.h:2", "BlockManager")


class ThisRepository(unittest.TestCase):
    def test_every_module_of_the_table_has_a_sound_entry(self):
        self.assertEqual(list(check_layers.Layers(REPOSITORY / "layers.toml").problems()), [])


if __name__ == "__main__":
    unittest.main()
