#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which programs pack.py packs, and how it names their commit."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import pack  # noqa: E402


class Packed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def holding(self, folder: str, *names: str) -> Path:
        (self.folder / folder).mkdir()
        for name in names:
            (self.folder / folder / name).write_text(folder)
        return self.folder / folder

    def test_the_program_that_is_timed_is_the_optimised_one(self):
        tests = self.holding("tests", "gpu_graph", "bench_gpu")
        bench = self.holding("release", "bench_gpu")
        found = pack.programs_of(tests, bench)
        self.assertEqual({name: path.parent.name for name, path in found.items()},
                         {"bench_gpu": "release", "gpu_graph": "tests"})

    def test_a_name_in_two_folders_is_an_error(self):
        tests = self.holding("tests", "gpu_graph")
        bench = self.holding("release", "bench_gpu", "gpu_graph")
        with self.assertRaisesRegex(pack.Failed, "gpu_graph is in"):
            pack.programs_of(tests, bench)

    def test_without_the_program_that_is_timed_nothing_is_packed(self):
        tests = self.holding("tests", "gpu_graph", "bench_gpu")
        with self.assertRaisesRegex(pack.Failed, "missing"):
            pack.programs_of(tests, self.holding("release"))

    def says(self, line: str) -> Path:
        program = self.folder / "bench_gpu"
        program.write_text(f"#!/bin/sh\necho '{line}'\n")
        program.chmod(0o755)
        return program

    def test_an_unoptimised_program_is_refused(self):
        pack.require_optimised(self.says('{"optimised": true}'))
        with self.assertRaisesRegex(pack.Failed, "without optimisation"):
            pack.require_optimised(self.says('{"optimised": false}'))

    def test_files_that_are_not_packed_are_no_changes(self):
        def git(*words: str) -> None:
            by = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
            subprocess.run(["git", "-C", self.folder, *by, *words], check=True, capture_output=True)

        git("init")
        (self.folder / "known").write_text("1")
        git("add", "known")
        git("commit", "-m", "x")
        (self.folder / "unknown").write_text("1")
        self.assertNotIn("changes", pack.version(self.folder))
        (self.folder / "known").write_text("2")
        self.assertIn("with changes", pack.version(self.folder))


if __name__ == "__main__":
    unittest.main()
