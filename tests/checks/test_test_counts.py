"""scripts/test_counts.py adds up what the test programs say, and never less than a failure that ctest saw."""
import json
import unittest

from planted_tree import PlantedTree

import test_counts
from test_counts import Counts


class CountsOfTests(PlantedTree):
    def googletest(self, *cases):
        return self.write("results/x.json", json.dumps({"testsuites": [{"testsuite": list(cases)}]}))

    def ctest(self, body):
        return test_counts.ctest(self.write("ctest.xml", f"<testsuite>{body}</testsuite>"), self.root / "results")

    def test_googletest_reports(self):
        path = self.googletest({"status": "RUN", "result": "COMPLETED"}, {"status": "RUN", "result": "SKIPPED"},
                               {"status": "RUN", "result": "COMPLETED", "failures": [{"failure": "x"}]}, {"status": "NOTRUN"})
        self.assertEqual(test_counts.googletest(path), Counts(1, 1, 2))

    def test_unittest_output(self):
        self.assertEqual(test_counts.unittest("..\nRan 2 tests in 0.1s\n\nOK\n"), Counts(2, 0, 0))
        self.assertEqual(test_counts.unittest("Ran 7 tests in 1s\n\nFAILED (failures=1, errors=2, skipped=1)\n"), Counts(3, 3, 1))
        self.assertIsNone(test_counts.unittest("Segmentation fault\n"))

    def test_a_program_that_dies_without_report_is_one_failure(self):
        self.assertEqual(self.ctest('<testcase name="y" status="fail"/>'), (Counts(0, 1, 0), ["y"]))

    def test_a_program_that_fails_after_its_cases_passed_is_a_failure(self):
        self.googletest({"status": "RUN", "result": "COMPLETED"})
        self.assertEqual(self.ctest('<testcase name="x" status="fail"/>'), (Counts(1, 1, 0), ["x"]))

    def test_programs_are_added_up(self):
        self.googletest({"status": "RUN", "result": "COMPLETED"}, {"status": "RUN", "result": "COMPLETED"})
        body = ('<testcase name="x" status="run"/><testcase name="z" status="notrun"/>'
                '<testcase name="u" status="run"><system-out>Ran 3 tests in 1s\n\nOK</system-out></testcase>')
        self.assertEqual(self.ctest(body), (Counts(5, 0, 1), []))


if __name__ == "__main__":
    unittest.main()
