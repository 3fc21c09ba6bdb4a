#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports of tests/main.cpp about files that pass, fail and crash: each_file_test.py PROGRAM"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop(1)


class EachFile(unittest.TestCase):
    def run_files(self, *names: str) -> dict[str, str]:
        """The last line of each file's verdict."""
        with tempfile.TemporaryDirectory() as folder:
            files = [word for name in names for word in (name, f"*each_file/{name}.cpp")]
            subprocess.run([PROGRAM, f"--each-file={folder}", *files], check=True)
            texts = {name: (Path(folder) / f"{name}.txt").read_text() for name in names}
        self.said = texts
        return {name: text.splitlines()[-1] for name, text in texts.items()}

    def test_a_verdict_for_each(self):
        found = self.run_files("crashes", "leaves", "passes", "fails", "is_not_there")
        self.assertEqual(found["passes"], "verdict: passed")
        self.assertEqual(found["fails"], "verdict: exit code 1")
        self.assertEqual(found["leaves"], "verdict: it ended before its tests did")
        self.assertTrue(found["crashes"].startswith("verdict: signal 6"), found["crashes"])
        self.assertIn("CHECK( 1 + 1 == 3 )", self.said["fails"])
        # ctest fails this one for these words: FAIL_REGULAR_EXPRESSION in tests/CMakeLists.txt.
        self.assertRegex(self.said["is_not_there"], "test cases: +0 ")

    def test_an_earlier_verdict_is_not_taken_for_this_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            earlier = Path(folder) / "passes.txt"
            earlier.write_text("\nverdict: passed\n")
            # It stops at the first file, and does not reach the second one.
            run = subprocess.run(
                [PROGRAM, f"--each-file={folder}", "no/folder", "*passes.cpp", "passes", "*passes.cpp"],
                capture_output=True,
                env=os.environ | {"FRUGAL_JOBS": "1"},
            )
            self.assertNotEqual(run.returncode, 0)
            self.assertFalse(earlier.exists())


if __name__ == "__main__":
    unittest.main()
