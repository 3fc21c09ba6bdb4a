#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What run.py says of programs that pass, fail, crash, hang, stop early, or find no GPU."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

PASSES = "echo all cases ran"


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_all(self, programs: dict[str, str], *flags: str) -> tuple[int, dict[str, dict]]:
        for folder in ("bin", "sources"):
            (self.folder / folder).mkdir()
        for name, body in programs.items():
            source = self.folder / "sources" / f"{name}.cpp"
            source.write_text(f"// SPDX\n// Case 1: {name} says\n// what it proves.\n\nint x;\n")
            if body:
                program = self.folder / "bin" / f"gpu_{name}"
                program.write_text(f"#!/bin/sh\n{body}\n")
                program.chmod(0o755)
        command = [sys.executable, HERE / "run.py", "--bin", self.folder / "bin", "--sources",
                   self.folder / "sources", "--out", self.folder / "out", "--only", "1", *flags]
        code = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode
        told = json.loads((self.folder / "out" / "tests.json").read_text())["cases"]
        return code, {each["name"]: each for each in told}

    def test_each_end_is_told_from_the_others(self):
        code, told = self.run_all({
            "passes": PASSES,
            "fails": "echo 'x.cpp:3: ERROR: CHECK( a == b )'; exit 1",
            "crashes": "echo begun; kill -SEGV $$",
            "hangs": "echo begun; sleep 60",
            "stops": "echo half of it; exit 0",
            "absent": "",
        }, "--limit", "1")
        self.assertEqual(code, 1)
        self.assertEqual({name: each["result"] for name, each in told.items()},
                         {"passes": "passed", "fails": "failed", "crashes": "failed",
                          "hangs": "failed", "stops": "failed", "absent": "not run"})
        self.assertIn("ERROR: CHECK( a == b )", told["fails"]["why"])
        self.assertIn("SIGSEGV", told["crashes"]["why"])
        self.assertIn("had not ended after 1 s", told["hangs"]["why"])
        self.assertIn("was not built", told["absent"]["why"])
        self.assertEqual(told["passes"]["title"], "passes says what it proves.")

    def test_all_passed(self):
        self.assertEqual(self.run_all({"one": PASSES, "two": PASSES})[0], 0)

    def test_without_a_gpu_nothing_has_passed(self):
        code, told = self.run_all({"one": "echo no GPU found; exit 77"})
        self.assertEqual(code, 77)
        self.assertEqual(told["one"]["result"], "not run")

    def test_a_program_that_does_not_start_is_no_missing_gpu(self):
        code, _ = self.run_all({"one": "exit 77", "two": "echo error while loading x; exit 127"})
        self.assertEqual(code, 1)

    def test_what_the_time_does_not_suffice_for_is_not_run(self):
        code, told = self.run_all({"one": PASSES}, "--seconds", "0")
        self.assertEqual(code, 1)
        self.assertEqual(told["one"]["result"], "not run")


if __name__ == "__main__":
    unittest.main()
