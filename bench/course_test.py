#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the arithmetic of course.py on scripted runs, with values computed by hand."""

import argparse
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from course import Course, bars, candidates, positive, rates, table, waterfall, written  # noqa: E402

# Stands in for the program: it sleeps for as long as its marker file says that work is left, and prints its figures.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys, time
run = pathlib.Path(sys.argv[sys.argv.index("--run") + 1])
left = run / "starts"
starts = int(left.read_text()) + 1 if left.exists() else 1
left.write_text(str(starts))
if starts < {starts}:
    time.sleep(60)
if {code}:
    sys.exit("it broke")
print(json.dumps(dict(recipe="r", seconds=1.0, samples=100, reached=True, validations=[[1, 0.9]])))
"""


def args(**changes) -> argparse.Namespace:
    given = dict(on_demand=0.1, spot=0.04, target=0.87, seeds=3, threads=0, between=20, torch=None, rates=[1e-3], epochs=10,
                 schedule_epochs=2, prices_from="a test", data="", frugal="")  # fmt: skip
    return argparse.Namespace(**given | changes)


def run(seconds: float, **changes) -> dict:
    return dict(seed=1, seconds=seconds, interruptions=1, without_notice=0, lost=0.5, training=seconds, samples=60000, recipe="r",
                reached=True, accuracy=0.88) | changes  # fmt: skip


def scripted(**changes) -> Course:
    course = Course(args(), ["fused"], pathlib.Path())
    course.runs = {"plain": [run(36), run(30), run(60)], "spot": [run(45), run(45), run(90)],
                   "steps": [run(18), run(9), run(36)], "runs": [run(9), run(9), run(9)]} | changes  # fmt: skip
    return course


class Arithmetic(unittest.TestCase):
    def test_a_cost_is_seconds_times_the_price_of_the_stage(self):
        # 36 s are 0.01 h; at 0.1 USD per hour 1,000 runs cost 1 USD. 45 s at 0.04: 0.5 USD.
        for got, wanted in zip(scripted().cost("plain"), (1.0, 30 / 36, 60 / 36)):
            self.assertAlmostEqual(got, wanted)
        self.assertAlmostEqual(scripted().cost("spot")[0], 0.5)

    def test_the_waterfall_has_the_total_after_each_lever(self):
        levers = waterfall(scripted())
        self.assertEqual((levers["version"], levers["currency"], levers["unit"]), (1, "USD", "USD"))
        for step, value in zip(levers["steps"], (1.0, 0.5, 0.2, 0.1), strict=True):
            self.assertAlmostEqual(step["value"], value)
        self.assertAlmostEqual(levers["steps"][0]["hours"], 10.0)
        self.assertIn("3 interruptions", levers["steps"][1]["note"])

    def test_a_stage_that_missed_the_target_has_no_cost(self):
        course = scripted(runs=[run(9), run(9, reached=False), run(9)])
        self.assertEqual(len(waterfall(course)["steps"]), 3)
        self.assertIn("the target was missed in 1 of 3", table(course))

    def test_the_table_has_medians_with_their_range_and_the_ratio(self):
        rows = table(scripted()).splitlines()
        self.assertIn("36.0 (30.0 to 60.0)", rows[2])
        self.assertTrue(rows[3].endswith("| 3, 0, 1.5 s | 0.50 (0.50 to 1.00) | 0.50 |"), rows[3])

    def test_a_lever_that_costs_more_is_drawn_as_such(self):
        lines = bars(waterfall(scripted(spot=[run(180)] * 3))).splitlines()
        self.assertIn("+1.00", lines[2])
        self.assertIn("-1.80", lines[3])
        self.assertEqual(lines[2].count("#"), 40)

    def test_the_text_for_the_page_names_machine_prices_and_verdicts(self):
        text = written(scripted(), [("fused", [0.8, 0.9], "less"), ("bf16", [1.4, 1.5], "more")], ["fused"],
                       {"plain": [(1e-3, 300.0)], "runs": [(1e-3, 100.0)]})  # fmt: skip
        for part in ("a test", "0.04 on spot", "`Optimize<AdamW>` | 0.800 to 0.900 | less | yes", "more | no"):
            self.assertIn(part, text)

    def test_prices_are_numbers_of_0_or_more(self):
        self.assertEqual(positive("0.5"), 0.5)
        for text in ("-1", "nan", "inf"):
            self.assertRaises(argparse.ArgumentTypeError, positive, text)
        self.assertRaises(ValueError, positive, "free")
        self.assertEqual(candidates("1e-3,0.5"), [0.001, 0.5])

    def test_rates_that_miss_the_target_are_named(self):
        rows = rates({"plain": [(1e-3, math.inf), (2e-3, 60000.0)], "runs": [(1e-3, 30000.0), (2e-3, math.inf)]})
        self.assertEqual(rows.splitlines()[2:], ["| 0.001 | missed | 30,000 |", "| 0.002 | 60,000 | missed |"])


class Interruptions(unittest.TestCase):
    def course(self, text: str, **changes) -> Course:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "program"
        program.write_text(text)
        program.chmod(0o755)
        return Course(args(frugal=program, **changes), [], pathlib.Path(folder.name))

    def train(self, stage: str, starts: int, code: int = 0, between: float = 1.5) -> dict:
        return self.course(PROGRAM.format(starts=starts, code=code), between=between).train(stage, 1)

    def test_runs_that_are_interrupted_once_have_their_notice_in_turn(self):
        course = self.course(PROGRAM.format(starts=2, code=0), between=1.5)
        told = [course.train("spot", seed) for seed in (1, 2, 3)]
        notices = sum(run["interruptions"] - run["without_notice"] for run in told)
        kills = sum(run["without_notice"] for run in told)
        self.assertGreaterEqual(kills, 1)
        self.assertIn(notices - kills, (0, 1))

    def test_each_stage_takes_the_rate_that_needs_the_fewest_images(self):
        # 100 images at 0.002, 1000 at any other; the schedule misses the target at 0.002.
        course = self.course("""#!/usr/bin/env python3
import json, sys
rate, stage = (sys.argv[sys.argv.index(name) + 1] for name in ("--lr", "--stage"))
best = rate == "0.002"
print(json.dumps(dict(recipe="r", seconds=1.0, samples=100 if best else 1000, reached=not (best and stage == "runs"))))
""", rates=[1e-3, 2e-3, 4e-3])  # fmt: skip
        found = course.tune()
        self.assertEqual(course.rates, {"plain": 0.002, "runs": 0.001})
        self.assertEqual(found["plain"], [(0.001, 1000), (0.002, 100), (0.004, 1000)])
        self.assertEqual(found["runs"][1], (0.002, math.inf))

    def test_a_run_is_interrupted_and_started_again_until_it_ends(self):
        told = self.train("spot", starts=3)
        self.assertGreaterEqual(told["interruptions"], 2)
        self.assertEqual(told["samples"], 100)

    def test_a_plain_run_is_left_alone(self):
        self.assertEqual(self.train("plain", starts=1, between=1e-6)["interruptions"], 0)

    def test_a_program_that_fails_by_itself_ends_the_benchmark(self):
        from common import Failed

        with self.assertRaisesRegex(Failed, "it broke"):
            self.train("plain", starts=1, code=1)


if __name__ == "__main__":
    sys.exit(unittest.main())
