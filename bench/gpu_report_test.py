#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that gpu_report.py writes what was measured, and only between its markers."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import gpu  # noqa: E402
import gpu_report  # noqa: E402
from gpu_report import BEGIN, END, has_results, text_of  # noqa: E402

PAGE = f"# Title\n\nBefore.\n\n{BEGIN}\n{END}\nBehind.\n"


def case(by: str, how: str, step: float, **more) -> dict:
    figures = {
        name: {"median": value, "min": value, "max": value}
        for name, value in ({"seconds_per_step": step, "loss": 1.0} | more).items()
    }
    return {
        "name": f"mlp {by} {how}",
        "job": "mlp",
        "by": by,
        "how": how,
        "result": "passed",
        "why": "",
        "figures": figures,
        "advice": [],
        "rounds": [{}],
    }


def bench() -> dict:
    cases = [
        case("frugal", "graph", 55e-6),
        case("hand", "hand", 51e-6, replay_seconds_per_step=40e-6),
        case("frugal", "eager", 300e-6),
        case("frugal", "eager+device", 290e-6),
        case("torch", "cudagraph", 52e-6),
    ]
    lost = case("lightning", "lightning", 0) | {"figures": {}, "rounds": [], "result": "not run"}
    cases.append(lost | {"why": "lightning is not installed"})
    return {
        "kind": gpu_report.BENCH,
        "device": "NVIDIA H100",
        "driver": "580",
        "date": "2026-11-22",
        "commit": "abc",
        "cuda": "13.0",
        "torch": "2.11.0",
        "cases": cases,
        "bars": gpu.bars_of(cases),
    }


TESTS = {
    "device": "NVIDIA H100",
    "driver": "580",
    "date": "2026-11-22",
    "cases": [
        {"name": "graph", "title": "equal bits", "result": "passed", "seconds": 3.25, "why": ""},
        {"name": "oom", "title": "a | b", "result": "failed", "seconds": 1, "why": "two\nlines"},
        {"name": "audit", "title": "", "result": "not run", "seconds": None, "why": "no time"},
    ],
}


class Report(unittest.TestCase):
    def written(self, bench_: dict | None, tests: dict | None, page: str = PAGE) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for name, found in (("results.json", bench_), ("tests.json", tests)):
                files.append(Path(folder) / name)
                if found is not None:
                    files[-1].write_text(json.dumps(found))
            path = Path(folder) / "gpu.md"
            path.write_text(page)
            quiet = contextlib.redirect_stdout(io.StringIO())
            with quiet, contextlib.redirect_stderr(io.StringIO()):
                code = gpu_report.main([*map(str, files), "--write", str(path)])
            return code, path.read_text()

    def test_tables_stand_between_the_markers_and_the_rest_stays(self):
        code, page = self.written(bench(), TESTS)
        self.assertEqual(code, 0)
        self.assertTrue(page.startswith(f"# Title\n\nBefore.\n\n{BEGIN}\n## Results\n"))
        self.assertTrue(page.endswith(f"\n{END}\nBehind.\n"))
        self.assertIn("| frugal, `CudaGraph` | 55.0 | 55.0 to 55.0 | 1 |", page)
        self.assertIn("not run: lightning is not installed", page)
        self.assertIn("1 passed, 1 failed, 1 not run", page)
        self.assertIn(r"| oom | a \| b | failed | 1.0 | two lines |", page)

    def test_a_second_report_takes_the_place_of_the_first(self):
        _, page = self.written(bench(), TESTS)
        self.assertEqual(self.written(bench(), TESTS, page)[1], page)

    def test_without_results_the_page_stays(self):
        self.assertEqual(self.written(None, None), (0, PAGE))
        self.assertEqual(self.written({"cases": []}, None), (0, PAGE))
        self.assertEqual(self.written(bench() | {"device": "cpu"}, None), (0, PAGE))

    def test_a_page_without_markers_stays(self):
        self.assertEqual(self.written(bench(), None, "# Title\n"), (2, "# Title\n"))

    def test_each_file_is_enough_alone(self):
        self.assertNotIn("### Tests", text_of([bench()]))
        self.assertNotIn("### Speed", text_of([TESTS]))

    def test_what_did_not_run_is_no_result(self):
        self.assertFalse(has_results(TESTS | {"cases": TESTS["cases"][2:]}))

    def test_a_trial_of_an_unoptimised_program_is_no_result(self):
        self.assertTrue(has_results(bench() | {"optimised": True}))
        self.assertFalse(has_results(bench() | {"optimised": False}))

    def test_a_commit_with_changes_is_shown_as_such(self):
        name = "0123456789abcdef"
        self.assertIn(", commit 0123456789ab,", text_of([bench() | {"commit": name}]))
        changed = text_of([bench() | {"commit": name + " with changes"}])
        self.assertIn(", commit 0123456789ab with changes,", changed)

    def test_every_case_has_a_name_in_the_tables(self):
        ways = {way for cases in gpu.CASES.values() for way in cases}
        self.assertEqual(ways, set(gpu_report.NAMES))

    def test_the_page_of_the_docs_has_the_markers(self):
        page = (HERE.parent / "docs" / "gpu.md").read_text()
        self.assertEqual((page.count(BEGIN), page.count(END)), (1, 1))


if __name__ == "__main__":
    unittest.main()
