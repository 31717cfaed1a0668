#!/usr/bin/env python3
"""Runs the stages of the test suite and sums them up:  run_tests.py [STAGE...] [--jobs N] [--fuzz-seconds N]

A stage that fails does not keep the next from running. Needs the packages of scripts/packages.txt; scripts/test.sh sees to that.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import test_counts
from test_counts import Counts

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
TSAN_TESTS = ("base", "sched", "kv_index", "engine")
SANITIZER_OPTIONS = dict(
    ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1",
    UBSAN_OPTIONS="print_stacktrace=1",
    TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1",
)


class StageFailed(Exception):
    """A step without test cases of its own (a build, a check) did not succeed."""


@dataclass
class Outcome:
    counts: Counts = field(default_factory=Counts)
    notes: list = field(default_factory=list)


def run(command, **variables):
    """Runs a command with its output shown; returns (status, output)."""
    words = [str(word) for word in command]
    print("$", " ".join(words), flush=True)
    process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, **variables}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def must(command, **variables):
    status, _ = run(command, **variables)
    if status != 0:
        raise StageFailed(f"{Path(str(command[0])).name} ended with status {status}")


def configure(preset, *settings):
    must(["cmake", "--preset", preset, "--log-level=WARNING", *settings])


def build(options, preset, *targets):
    must(["ninja", "-C", BUILD / preset, "-j", options.jobs, "--quiet", *targets])


def ctest(options, preset, *selection):
    """Runs ctest over a selection of the tree's tests and adds up the cases."""
    tree = BUILD / preset
    shutil.rmtree(tree / "results", ignore_errors=True)
    junit = tree / "ctest.xml"
    junit.unlink(missing_ok=True)
    status, _ = run([*without_address_randomisation(preset), "ctest", "--test-dir", tree, "-j", options.jobs,
                     "--output-on-failure", "--no-tests=error", "--test-output-size-passed", 1_000_000,
                     "--output-junit", junit, *selection], **SANITIZER_OPTIONS)
    if not junit.is_file():
        raise StageFailed(f"ctest ended with status {status} and no report")
    counts, failed = test_counts.ctest(junit, tree / "results")
    if status != 0 and counts.failed == 0:
        counts.failed = 1
    return Outcome(counts, [f"failed: {' '.join(failed)}"] if failed else [])


def without_address_randomisation(preset):
    """ThreadSanitizer of clang 16 cannot place its shadow where the kernel randomises more bits than it expects."""
    prefix = ["setarch", os.uname().machine, "-R"]
    if preset == "tsan" and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
        return prefix
    return []


def stage_release(options):
    configure("release", "-DPAGODA_TESTS=ON")
    build(options, "release")
    return Outcome()


def stage_checks(options):
    stage_release(options)
    must(["bash", "scripts/check.sh", BUILD / "release"])
    return Outcome()


def stage_ctest(options):
    stage_release(options)
    return ctest(options, "release")


def virtual_environment():
    """The Python of build/venv, with the packages of tests/e2e/requirements.txt; made again when that list changes."""
    venv, wanted = BUILD / "venv", (ROOT / "tests/e2e/requirements.txt").read_text()
    mark = venv / "requirements.txt"
    if not mark.is_file() or mark.read_text() != wanted:
        must([sys.executable, "-m", "venv", "--clear", venv])
        must([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", "tests/e2e/requirements.txt"])
        mark.write_text(wanted)
    return venv / "bin/python"


def stage_e2e(options):
    stage_release(options)
    python = virtual_environment()
    status, output = run([python, "-B", "-m", "unittest", "discover", "-v", "-s", "tests/e2e"],
                         PAGODA_BIN=str(BUILD / "release/apps/pagoda"), PAGODA_GOLDEN=str(BUILD / "release/golden"))
    counts = test_counts.unittest(output)
    if counts is None or (status != 0 and counts.failed == 0):
        raise StageFailed(f"unittest ended with status {status} before its summary")
    return Outcome(counts)


def build_asan(options):
    configure("asan")
    build(options, "asan")


def stage_asan(options):
    build_asan(options)
    return ctest(options, "asan", "-L", "unit|property")


def fuzz(options, fuzzer):
    """Runs one fuzzer for a while; returns whether it found nothing."""
    name = fuzzer.name.removesuffix("_fuzz")
    found, artifacts = BUILD / "fuzz" / name, BUILD / "fuzz" / "artifacts"
    for folder in (found, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    corpus = ROOT / "fuzz" / "corpus" / name
    status, output = capture([fuzzer, f"-max_total_time={options.fuzz_seconds}", "-timeout=10", "-rss_limit_mb=2560",
                              f"-artifact_prefix={artifacts}/{name}-", "-print_final_stats=1", found,
                              *([corpus] if corpus.is_dir() else [])])
    units = next((line.split()[-1] for line in output.splitlines() if "number_of_executed_units" in line), "0")
    print(f"{fuzzer.name}: {'ok' if status == 0 else 'FAILED'}, {units} inputs", flush=True)
    if status != 0:
        print(output[-6000:], flush=True)
    return status == 0


def capture(command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, env={**os.environ, **SANITIZER_OPTIONS},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def stage_fuzz(options):
    build_asan(options)
    fuzzers = sorted(path for path in (BUILD / "asan/fuzz").glob("*_fuzz") if path.is_file())
    if len(fuzzers) != len(list((ROOT / "fuzz").glob("*_fuzz.cpp"))) or not fuzzers:
        raise StageFailed("not every fuzzer was built")
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda fuzzer: fuzz(options, fuzzer), fuzzers))
    failed = [fuzzer.name for fuzzer, is_clean in zip(fuzzers, verdicts) if not is_clean]
    return Outcome(Counts(len(fuzzers) - len(failed), len(failed)), [f"failed: {' '.join(failed)}"] if failed else [])


def stage_tsan(options):
    configure("tsan")
    build(options, "tsan", *(f"{name}_test" for name in TSAN_TESTS))
    return ctest(options, "tsan", "-R", f"^({'|'.join(TSAN_TESTS)})$")


STAGES = {
    "release": (stage_release, "build with g++, Release"),
    "checks": (stage_checks, "layers, sizes, format, headers, symbols, tidy"),
    "ctest": (stage_ctest, "unit, property, golden, conformance"),
    "e2e": (stage_e2e, "the real server and its clients"),
    "asan": (stage_asan, "clang, address and undefined behaviour: unit, property"),
    "fuzz": (stage_fuzz, "fuzzers with the same sanitizers"),
    "tsan": (stage_tsan, "clang, threads: " + ", ".join(TSAN_TESTS)),
}


def run_stage(name, options):
    """(outcome, seconds)"""
    function, title = STAGES[name]
    print(f"\n=== {name}: {title}", flush=True)
    begin = time.monotonic()
    try:
        outcome = function(options)
    except StageFailed as failure:
        outcome = Outcome(Counts(failed=1), [str(failure)])
    return outcome, time.monotonic() - begin


def fetch_model():
    """The path of the default model, or an empty text after a message."""
    done = subprocess.run(["bash", "scripts/fetch-model.sh"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def summary(results):
    total = Counts()
    print("\n=== summary")
    for name, (outcome, seconds) in results.items():
        counts = outcome.counts
        total += counts
        verdict = "FAILED" if counts.failed else "passed"
        skipped = f", {counts.skipped} skipped" if counts.skipped else ""
        notes = f"  ({'; '.join(outcome.notes)})" if outcome.notes else ""
        print(f"{name:8} {verdict}  {counts.passed:5} passed, {counts.failed} failed{skipped}  {seconds:6.0f} s{notes}")
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"any of: {' '.join(STAGES)} (default: all)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--fuzz-seconds", type=int, default=15)
    options = parser.parse_args()
    unknown = [name for name in options.stages if name not in STAGES]
    if unknown:
        parser.error(f"unknown stage '{unknown[0]}' (stages: {' '.join(STAGES)})")
    if "PAGODA_MODEL" not in os.environ:
        os.environ["PAGODA_MODEL"] = fetch_model()
    wanted = [name for name in STAGES if not options.stages or name in options.stages]
    return summary({name: run_stage(name, options) for name in wanted})


if __name__ == "__main__":
    sys.exit(main())
