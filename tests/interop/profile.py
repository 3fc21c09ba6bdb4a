#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the traces of Profile with TensorBoard's PyTorch plugin: profile.py PROGRAM

PROGRAM is interop_profile, built from profile.cpp in this folder. The plugin (torch-tb-profiler of
requirements/data.txt) reads a trace and adds up its operators; hot_spots.json must have the same sums. The
traces are also held against the Trace Event Format. Perfetto's own reader is a download, and is not run.
"""

import collections
import json
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

# The plugin makes tables of GPU kernels with pandas, which is ten times its size. A trace of a CPU has none,
# and any use of this module is an error.
sys.modules["pandas"] = types.ModuleType("pandas")

from torch_tb_profiler.profiler.data import RunProfileData  # noqa: E402

program = ""


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        run = Path(cls.folder.name)
        done = subprocess.run([program, run], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"the run failed with {done.returncode}: {done.stderr}")
        cls.windows = json.loads((run / "profile/hot_spots.json").read_text())["windows"]
        cls.paths = [run / each["trace"] for each in cls.windows]
        cls.traces = [json.loads(path.read_text()) for path in cls.paths]

    def test_there_are_two_windows_of_five_steps(self):
        self.assertEqual([(each["step"], each["steps"]) for each in self.windows], [(7, 5), (17, 5)])

    def test_the_plugin_adds_up_the_same_operators(self):
        for window, path in zip(self.windows, self.paths):
            read = RunProfileData.parse("worker", "span", str(path), self.folder.name)
            operators = {each.name: each for each in read.op_list_groupby_name}
            hot = [each for each in window["hot_spots"] if not each["name"].startswith("frugal::")]
            self.assertGreater(len(hot), 4)
            for each in hot:
                found = operators[each["name"]]
                self.assertEqual(found.calls, each["calls"], each["name"])
                # Kineto writes three decimals of a microsecond.
                self.assertAlmostEqual(found.self_host_duration, each["microseconds"], delta=0.001 * each["calls"])
            # No operator of the plugin that takes longer is missing.
            least = min(each["microseconds"] for each in hot)
            longer = {name for name, each in operators.items() if each.self_host_duration > least + 1}
            self.assertLessEqual(longer, {each["name"] for each in hot})
            linear = operators["aten::addmm"]
            self.assertEqual(linear.calls, 2 * 2 * 5)  # two layers, two micro-batches, five steps

    def test_the_plugin_reads_the_memory(self):
        for path in self.paths:
            read = RunProfileData.parse("worker", "span", str(path), self.folder.name)
            self.assertIsNotNone(read.memory_snapshot)

    def test_events_have_the_members_of_the_format(self):
        for trace in self.traces:
            for event in trace["traceEvents"]:
                self.assertIn(event["ph"], "XCMisftb")
                self.assertIsInstance(event["name"], str)
                self.assertIsInstance(event["ts"], (int, float))
                if event["ph"] == "X":
                    self.assertGreaterEqual(event["dur"], 0)
                # Kineto's own marks of the recording have texts there.
                ours = event["ph"] == "C" or event["name"] == "[memory]"
                if ours or event.get("cat") in ("cpu_op", "user_annotation"):
                    self.assertIsInstance(event["pid"], int)
                    self.assertIsInstance(event["tid"], int)
                if event["ph"] == "C":
                    self.assertTrue(all(type(value) is int for value in event["args"].values()))

    def test_the_spans_of_a_thread_are_nested(self):
        for trace in self.traces:
            threads = collections.defaultdict(list)
            for event in trace["traceEvents"]:
                if event["ph"] == "X" and event.get("cat") in ("cpu_op", "user_annotation"):
                    # In nanoseconds, which are whole.
                    begin = round(1000 * event["ts"])
                    threads[event["pid"], event["tid"]].append((begin, begin + round(1000 * event["dur"])))
            self.assertGreater(sum(map(len, threads.values())), 100)
            for spans in threads.values():
                open_ends = []
                for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
                    while open_ends and open_ends[-1] <= begin:
                        open_ends.pop()
                    if open_ends:
                        self.assertLessEqual(end, open_ends[-1])
                    open_ends.append(end)

    def test_the_curve_is_that_of_the_windows_memory(self):
        for window, trace in zip(self.windows, self.traces):
            curve = [each["args"]["bytes"] for each in trace["traceEvents"] if each["ph"] == "C"]
            self.assertEqual(max(curve), window["peak_bytes"])


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
