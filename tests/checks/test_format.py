"""scripts/check_format.sh sees layout, letters and words."""
import shutil
import subprocess
import unittest

from planted_tree import REPOSITORY, SCRIPTS, PlantedTree


class Format(PlantedTree):
    def setUp(self):
        super().setUp()
        shutil.copy(REPOSITORY / ".clang-format", self.root)
        self.write("src/good.cpp", "int answer();\n")

    def check(self):
        done = subprocess.run(["bash", str(SCRIPTS / "check_format.sh"), str(self.root)], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_clean_sources_pass(self):
        status, output = self.check()
        self.assertEqual((status, output), (0, "format: 0 problems\n"))

    def assert_found(self, name, text, message):
        self.write(name, text)
        status, output = self.check()
        self.assertEqual(status, 1, output)
        self.assertIn(f"{name}:1: {message}", output)

    def test_layout(self):
        self.assert_found("src/bad.cpp", "int  main( ){return 0;}\n", "not as clang-format writes it")

    def test_letters(self):
        self.assert_found("src/bad.cpp", "// caf\u00e9\n", "not ASCII")

    def test_trailing_space(self):
        self.assert_found("scripts/bad.sh", "true \n", "white space")

    def test_reminders(self):
        self.assert_found("src/bad.cpp", "// TO" "DO later\n", "a reminder")

    def test_a_reminder_with_an_issue_passes(self):
        self.write("src/good.h", "#pragma once\n// TO" "DO(#12): widen\n")
        self.assertEqual(self.check()[0], 0)

    def test_machine_paths(self):
        self.assert_found("docs/bad.md", "see /ro" "ot/x.txt\n", "a path of one machine")


if __name__ == "__main__":
    unittest.main()
