#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which programs pack.py packs, and how it names their commit."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

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
        # A stand-in for git, which the machine may lack: it lists a file that git does not know, unless
        # told not to, and those that it is given as changed.
        changed = self.folder / "changed"
        changed.write_text("")
        git = self.folder / "git"
        git.write_text(f"""#!/bin/sh
[ "$1 $2" = "-C {self.folder}" ] || exit 1
case "$3" in
rev-parse) echo 0123abc ;;
status) cat {changed}; case "$*" in *--untracked-files=no*) ;; *) echo "?? unknown" ;; esac ;;
*) exit 1 ;;
esac
""")
        git.chmod(0o755)
        with mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            self.assertEqual(pack.version(self.folder), "0123abc\n")
            changed.write_text(" M known\n")
            self.assertEqual(pack.version(self.folder), "0123abc with changes\n")


if __name__ == "__main__":
    unittest.main()
