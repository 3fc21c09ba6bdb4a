#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON of compare() with Google Benchmark's own compare.py: google_benchmark.py PROGRAM

PROGRAM is interop_google_benchmark, built from google_benchmark.cpp in this folder. Needs Debian's
libbenchmark-tools and python3-scipy, and runs under Debian's Python.
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPARE = Path("/usr/share/benchmark/compare.py")
PYTHON = "/usr/bin/python3"
program = ""


class GoogleBenchmark(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, factor: float) -> Path:
        path = self.folder / name
        subprocess.run([program, path, str(factor)], check=True)
        return path

    def compare(self, *flags) -> str:
        done = subprocess.run([PYTHON, "-BE", COMPARE, "--no-color", *map(str, flags)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_two_comparisons_are_compared_by_name(self):
        before, after = self.write("before.json", 1), self.write("after.json", 0.5)
        shown = self.compare("benchmarks", before, after)
        # Half of the time is -0.5 in the column Time and in the column CPU.
        for name in ("AdamW", "AdamW + BF16"):
            self.assertRegex(shown, rf"(?m)^{re.escape(name)} +-0\.5000 +-0\.5000 ")
        # Ten repeats are enough for its U test, which finds the difference.
        self.assertRegex(shown, r"(?m)^AdamW_pvalue +0\.000")

    def test_two_recipes_of_one_comparison_are_compared(self):
        shown = self.compare("filters", self.write("one.json", 1), "^AdamW$", r"^AdamW \+ BF16$")
        self.assertRegex(shown, r"\+?0\.0000 +\+?0\.0000")

    def test_the_aggregates_are_those_of_the_times(self):
        rows = json.loads(self.write("one.json", 1).read_text())["benchmarks"]
        by_name = {row["name"]: row for row in rows}
        times = [row["real_time"] for row in rows if row["name"] == "AdamW"]
        import statistics

        self.assertEqual(len(times), 10)
        self.assertAlmostEqual(by_name["AdamW_mean"]["real_time"], statistics.mean(times))
        self.assertAlmostEqual(by_name["AdamW_median"]["real_time"], statistics.median(times))
        self.assertAlmostEqual(by_name["AdamW_stddev"]["real_time"], statistics.stdev(times))


if __name__ == "__main__":
    program = str(Path(sys.argv.pop(1)).resolve())
    sys.exit(unittest.main())
