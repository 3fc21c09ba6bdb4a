#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of gpu.py with programs that only pretend to train: its bars and verdicts distinguish a replayed
graph from one that was not; the order of its cases; what a run leaves behind."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import gpu  # noqa: E402


def case(by: str, how: str, step: float, loss: float = 1.0, job: str = "mlp") -> dict:
    figures = {
        name: {"median": value, "min": value, "max": value}
        for name, value in {"seconds_per_step": step, "loss": loss}.items()
    }
    said = {"name": f"{job} {by} {how}", "job": job, "by": by, "how": how, "result": "passed"}
    return said | {"figures": figures}


class Bars(unittest.TestCase):
    def results(self, **steps: float) -> list[str]:
        """Of CudaGraph compared with eager steps, and with a hand-made graph."""
        ways = {"graph": "frugal", "eager": "frugal", "eager+device": "frugal", "hand": "hand"}
        ways |= {"cudagraph": "torch"}
        steps = {"eager+device" if how == "device" else how: step for how, step in steps.items()}
        cases = [case(ways[how], how, step) for how, step in steps.items()]
        return [bar["result"] for bar in gpu.bars_of(cases)[:2]]

    def test_the_bars_hold_at_their_edges(self):
        others = {"eager": 3.31, "device": 3.31, "hand": 1.0, "cudagraph": 1.0}
        self.assertEqual(self.results(graph=1.1, **others), ["passed", "passed"])
        self.assertEqual(self.results(graph=1.2, **others), ["failed", "failed"])

    def test_graph_stands_beside_the_faster_of_each_two(self):
        steps = {"graph": 1.1, "eager": 3.31, "device": 3.31, "hand": 1.0, "cudagraph": 1.0}
        self.assertEqual(self.results(**steps | {"eager": 3.2}), ["failed", "passed"])
        self.assertEqual(self.results(**steps | {"device": 3.2}), ["failed", "passed"])
        self.assertEqual(self.results(**steps | {"hand": 0.9}), ["passed", "failed"])
        self.assertEqual(self.results(**steps | {"cudagraph": 0.9}), ["passed", "failed"])

    def test_a_bar_without_one_of_its_cases_did_not_run(self):
        self.assertEqual(self.results(graph=1.0, eager=9.0, hand=1.0), ["not run", "not run"])
        self.assertEqual(gpu.bars_of([])[0]["result"], "not run")

    def test_losses_that_differ_fail(self):
        cases = [case("frugal", "graph", 1, loss=1.0), case("hand", "hand", 1, loss=1.3)]
        self.assertEqual(gpu.bars_of(cases)[2]["result"], "failed")

    def test_a_transformer_that_has_not_learnt_fails(self):
        def result(loss: float) -> str:
            cases = [case("frugal", "graph", 1, loss=loss, job="transformer")]
            bars = gpu.bars_of(cases)
            return next(bar["result"] for bar in bars if "has learnt" in bar["name"])

        self.assertEqual((result(1.8), result(6.2)), ("passed", "failed"))


class Verdicts(unittest.TestCase):
    def judged(self, code: int, line: dict | None, how: str = "graph") -> str:
        text = "" if line is None else json.dumps(line)
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            log.write_text("command\nerror\n")
            return gpu.judge(code, text, log, 60, how)[0]

    def test_a_graph_that_gave_up_has_failed(self):
        line = {"seconds_per_step": 1.0, "loss": 1.0, "steps": 10, "captures": 1, "replays": 10}
        line["advice"] = []
        self.assertEqual(self.judged(0, line), "passed")
        self.assertEqual(self.judged(0, line | {"captures": 0, "replays": 0}), "failed")
        self.assertEqual(self.judged(0, line | {"captures": 0, "replays": 0}, "eager"), "passed")

    def test_hangs_crashes_and_silence_have_failed(self):
        self.assertEqual(self.judged(124, None), "failed")
        self.assertEqual(self.judged(-11, None), "failed")
        self.assertEqual(self.judged(0, None), "failed")

    def test_figures_that_are_no_numbers_have_failed(self):
        good = {"seconds_per_step": 1.0, "loss": 1.0}
        self.assertEqual(self.judged(0, good, "eager"), "passed")
        for name in good:
            for value in (None, float("nan"), float("inf"), True, "1"):
                self.assertEqual(self.judged(0, good | {name: value}, "eager"), "failed")

    def test_what_is_not_installed_did_not_run(self):
        self.assertEqual(self.judged(77, {"not_run": "it is not installed"}), "not run")

    def test_a_case_that_hangs_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "a.log"
            command = [sys.executable, "-c", "import time; time.sleep(60)"]
            self.assertEqual(gpu.run(command, log, 0.5, gpu.environment(folder))[0], 124)


class Order(unittest.TestCase):
    def test_what_the_bars_need_comes_first_and_the_slow_cases_have_one_round(self):
        found = gpu.order(["mlp", "convnet", "transformer"], 2)
        self.assertEqual(
            found,
            [("mlp", True, 0), ("mlp", True, 1), ("convnet", True, 0), ("transformer", True, 0)]
            + [(job, False, 0) for job in ("transformer", "convnet", "mlp")]
            + [("convnet", True, 1), ("transformer", True, 1)],
        )

    def test_a_case_is_over_after_its_rounds_or_a_failure(self):
        quick, slow = gpu.Case("mlp", "frugal", "graph"), gpu.Case("mlp", "torch", "compile")
        self.assertFalse(quick.over(2))
        for each in (quick, slow):
            each.result, each.why = "passed", ""
            each.lines.append({})
        self.assertFalse(quick.over(2))
        self.assertTrue(slow.over(2))
        quick.result, quick.why = "failed", "it crashed"
        self.assertTrue(quick.over(2))


class Run(unittest.TestCase):
    """A complete run of gpu.py; one shell script stands in for bench_gpu and for Python."""

    LINE = {"seconds_per_step": 1e-3, "loss": 1.0, "steps": 1, "captures": 1, "replays": 1}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def results(self, info: dict, *flags: str) -> tuple[str, dict | None]:
        program = self.folder / "bench_gpu"
        line = json.dumps(self.LINE | {"advice": []})
        text = f"case $* in *--info*) echo '{json.dumps(info)}' ;; *) echo '{line}' ;; esac"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        out = self.folder / "here" / "bench.json"
        command = [sys.executable, HERE / "gpu.py", "--bin", self.folder, "--python", program]
        command += ["--out", out, "--device", "cpu", "--rounds", "2", *flags]
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"OUT": str(self.folder)}
        )
        return done.stdout, json.loads(out.read_text()) if out.exists() else None

    def test_a_whole_run_is_complete_and_is_also_in_the_folder_that_OUT_names(self):
        _, report = self.results({"device": "cpu", "optimised": True})
        self.assertTrue(report["complete"])
        rounds = {each["how"]: len(each["rounds"]) for each in report["cases"]}
        self.assertEqual((rounds["graph"], rounds["compile"], rounds["lightning"]), (2, 1, 1))
        self.assertEqual((rounds["package+graph"], rounds["package+bf16+graph"]), (1, 1))
        self.assertEqual(json.loads((self.folder / "bench.json").read_text()), report)

    def test_a_run_without_time_is_not_complete(self):
        _, report = self.results({"device": "cpu", "optimised": True}, "--seconds", "0.001")
        self.assertFalse(report["complete"])

    def test_a_program_that_is_not_optimised_is_refused(self):
        info = {"device": "cpu", "optimised": False}
        text, report = self.results(info)
        self.assertIn("without optimisation", text)
        self.assertIsNone(report)
        self.assertFalse(self.results(info, "--unoptimised")[1]["optimised"])


if __name__ == "__main__":
    unittest.main()
