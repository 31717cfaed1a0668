"""Counts of test cases, read from what GoogleTest, unittest and ctest leave behind."""
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


def googletest(path):
    """Counts of a GoogleTest JSON report. Tests that are disabled count as skipped."""
    counts = Counts()
    for suite in json.loads(path.read_text(encoding="utf-8"))["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                counts.failed += 1
            elif case.get("status") != "RUN" or case.get("result") == "SKIPPED":
                counts.skipped += 1
            else:
                counts.passed += 1
    return counts


RAN = re.compile(r"^Ran (\d+) tests? in", re.M)
OUTCOMES = re.compile(r"\b(failures|errors|skipped|unexpected successes)=(\d+)")


def unittest(output):
    """Counts of what `python -m unittest` printed, or None where it printed no end."""
    ran = RAN.search(output)
    if not ran:
        return None
    outcome = {name: int(number) for name, number in OUTCOMES.findall(output[ran.end():])}
    failed = outcome.get("failures", 0) + outcome.get("errors", 0) + outcome.get("unexpected successes", 0)
    skipped = outcome.get("skipped", 0)
    # Several subtests of one test may fail, so more can have failed than were run.
    return Counts(max(0, int(ran.group(1)) - failed - skipped), failed, skipped)


def ctest_case(case, results):
    """Counts of one program that ctest ran. A program that failed has at least one failure, whatever it reported before it
    died; one that was skipped as a whole has one skipped case."""
    status = case.get("status")
    if status != "run" and status != "fail":
        return Counts(skipped=1)
    report = results / f"{case.get('name')}.json"
    if report.is_file():
        counts = googletest(report)
    else:
        counts = unittest(case.findtext("system-out") or "") or Counts(passed=1 if status == "run" else 0)
    if status == "fail" and counts.failed == 0:
        counts.failed = 1
    return counts


def ctest(junit, results):
    """Counts of a whole ctest run, and the names of the programs that failed."""
    total, failed = Counts(), []
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        counts = ctest_case(case, results)
        if counts.failed:
            failed.append(case.get("name"))
        total += counts
    return total, failed
