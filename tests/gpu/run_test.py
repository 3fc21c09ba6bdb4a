#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of run.py's reports about programs that pass, fail, crash, hang, stop early, or find no GPU,
and of what is left when it is killed itself."""

import json
import os
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

    def command(self, programs: dict[str, str], *flags: str) -> list[str]:
        for folder in ("bin", "sources"):
            (self.folder / folder).mkdir()
        for name, body in programs.items():
            source = self.folder / "sources" / f"{name}.cpp"
            source.write_text(f"// SPDX\n// Case 1: {name} says\n// what it proves.\n\nint x;\n")
            if body:
                self.program(f"gpu_{name}", f"#!/bin/sh\n{body}\n")
        return [sys.executable, HERE / "run.py", "--bin", self.folder / "bin", "--sources",
                self.folder / "sources", "--out", self.folder / "out", *flags]

    def program(self, name: str, text: str) -> None:
        program = self.folder / "bin" / name
        program.write_text(text)
        program.chmod(0o755)

    def told(self, folder: str = "out") -> dict[str, dict]:
        told = json.loads((self.folder / folder / "tests.json").read_text())["cases"]
        return {each["name"]: each for each in told}

    def run_all(self, programs: dict[str, str], *flags: str) -> tuple[int, dict[str, dict]]:
        command = self.command(programs, "--only", "1", *flags)
        code = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode
        return code, self.told()

    def test_each_end_is_told_from_the_others(self):
        code, told = self.run_all({
            "passes": PASSES,
            "fails": "echo 'x.cpp:3: ERROR: CHECK( a == b )'; exit 1",
            "crashes": "echo begun; kill -SEGV $$",
            "hangs": "echo begun; sleep 60",
            "stops": "echo half of it; exit 0",
            "empty": "echo '[doctest] test cases:  0 |  0 passed'; echo all cases ran",
            "absent": "",
        }, "--limit", "1")
        self.assertEqual(code, 1)
        self.assertEqual({name: each["result"] for name, each in told.items()},
                         {"passes": "passed", "fails": "failed", "crashes": "failed",
                          "hangs": "failed", "stops": "failed", "empty": "failed", "absent": "not run"})
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

    def test_a_program_that_cannot_be_started_takes_no_other_along(self):
        command = self.command({"one": PASSES, "two": PASSES}, "--only", "1")
        self.program("gpu_one", "#!/no/such/shell\n")
        code = subprocess.run(command, capture_output=True).returncode
        self.assertEqual(code, 1)
        self.assertIn("does not start", self.told()["one"]["why"])
        self.assertEqual(self.told()["two"]["result"], "passed")

    def test_the_results_are_also_in_the_folder_that_OUT_names(self):
        command = self.command({"one": PASSES}, "--only", "1")
        (self.folder / "brought back").mkdir()
        out = {"OUT": str(self.folder / "brought back")}
        subprocess.run(command, capture_output=True, env=os.environ | out, check=True)
        self.assertEqual(self.told("brought back"), self.told())

    def test_a_folder_OUT_that_is_not_there_costs_no_results(self):
        command = self.command({"one": PASSES}, "--only", "1")
        out = {"OUT": str(self.folder / "absent")}
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | out)
        self.assertEqual(done.returncode, 0)
        self.assertIn("is not written", done.stderr)
        self.assertEqual(self.told()["one"]["result"], "passed")

    def test_a_runner_that_is_killed_leaves_results_and_no_case(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        # The holder of the pipe lives: its end is read once the case is dead.
        waits = f"exec 3>'{pipe}'; echo begun >&3; sleep 20 3>&-; echo outlived >&3"
        runner = subprocess.Popen(
            self.command({"a": PASSES, "b": waits, "c": PASSES}, "--only", "1"),
            stdout=subprocess.DEVNULL)
        with pipe.open() as lines:
            self.assertEqual(lines.readline(), "begun\n")
            runner.kill()
            runner.wait()
            self.assertEqual(lines.read(), "")
        self.assertEqual({name: each["result"] for name, each in self.told().items()},
                         {"a": "passed", "b": "not run", "c": "not run"})
        self.assertIn("cut off", self.told()["c"]["why"])

    def test_memcheck_has_more_time_and_reports_memory_alone(self):
        command = self.command({"graph": PASSES, "device_depth": PASSES}, "--only", "13",
                               "--limit", "0.2")
        said = 'echo "$@" slowed=$FRUGAL_SLOWED; sleep 0.5; echo all cases ran'
        self.program("compute-sanitizer", f"#!/bin/sh\n{said}\n")
        path = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        done = subprocess.run(command, capture_output=True, env=os.environ | path)
        self.assertEqual(done.returncode, 0)
        log = (self.folder / "out" / "memcheck_graph.log").read_text()
        self.assertIn("--report-api-errors no", log)
        self.assertIn("gpu_graph --last=1 slowed=1", log)


if __name__ == "__main__":
    unittest.main()
