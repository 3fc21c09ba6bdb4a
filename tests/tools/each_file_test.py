#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/main.cpp says of files that pass, fail and crash: each_file_test.py PROGRAM"""

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
            # An earlier verdict is not to be taken for that of this run.
            for name in names:
                (Path(folder) / f"{name}.txt").write_text("verdict: passed\n")
            files = [word for name in names for word in (name, f"*each_file/{name}.cpp")]
            subprocess.run([PROGRAM, "--each-file", folder, *files], check=True)
            texts = {name: (Path(folder) / f"{name}.txt").read_text() for name in names}
        self.said = texts
        return {name: text.splitlines()[-1] for name, text in texts.items()}

    def test_a_verdict_for_each(self):
        found = self.run_files("crashes", "passes", "fails", "is_not_there")
        self.assertEqual(found["passes"], "verdict: passed")
        self.assertEqual(found["fails"], "verdict: exit code 1")
        self.assertTrue(found["crashes"].startswith("verdict: signal 6"), found["crashes"])
        self.assertIn("CHECK( 1 + 1 == 3 )", self.said["fails"])
        # ctest fails this one for these words: FAIL_REGULAR_EXPRESSION in tests/CMakeLists.txt.
        self.assertRegex(self.said["is_not_there"], "test cases: +0 ")

    def test_a_folder_that_is_not_there(self):
        run = subprocess.run(
            [PROGRAM, "--each-file", "/nowhere", "passes", "*passes.cpp"], capture_output=True
        )
        self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
