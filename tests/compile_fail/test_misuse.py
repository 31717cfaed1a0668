"""Misuse that must not compile. Each .cpp here compiles as it stands (the control), and fails with the error that stands behind
"// error:" for every value of MISUSE that it names. A control that fails means that the file proves nothing."""
import os
import re
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
MISUSE = re.compile(r"^#(?:if|elif) MISUSE == (\d+)  // error: (.+)$", re.M)


def compile_with(path, *flags):
    command = [os.environ.get("CXX", "g++"), "-std=c++20", f"-I{HERE.parent.parent / 'src'}", "-fsyntax-only", "-Werror=unused-result", *flags, str(path)]
    return subprocess.run(command, capture_output=True, text=True)


class Misuse(unittest.TestCase):
    def test_controls_compile(self):
        for path in sorted(HERE.glob("*.cpp")):
            with self.subTest(path.name):
                done = compile_with(path)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_misuse_is_refused_for_the_reason_named(self):
        for path in sorted(HERE.glob("*.cpp")):
            cases = MISUSE.findall(path.read_text())
            self.assertTrue(cases, f"{path.name} names no misuse")
            for number, reason in cases:
                with self.subTest(f"{path.name} MISUSE={number}"):
                    done = compile_with(path, f"-DMISUSE={number}")
                    self.assertNotEqual(done.returncode, 0, "this must not compile")
                    self.assertRegex(done.stderr, reason)


if __name__ == "__main__":
    unittest.main()
