#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits take effect, and a failing compiler still fails."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "cmake"))
from compile_meter import report, run  # noqa: E402


class CompileMeter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = Path(folder.name) / "log"
        self.object = Path(folder.name) / "a.o"

    def compile(self, program: str, *flags: str) -> int:
        return run(self.log, [sys.executable, "-c", program, *flags, "-o", str(self.object)])

    def report(self, *limits: float | None) -> tuple[int, str]:
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = report(self.log, *limits)
        return code, out.getvalue() + errors.getvalue()

    def test_a_unit_over_a_limit_is_named(self):
        self.compile("x = bytearray(80 << 20)")
        self.assertEqual(self.report(None, None)[0], 0)
        self.assertEqual(self.report(100.0, 1000)[0], 0)
        code, text = self.report(100.0, 60)
        self.assertEqual(code, 1)
        self.assertIn("MiB, and the limit is 60", text)
        code, text = self.report(0.0, 1000)
        self.assertEqual(code, 1)
        self.assertIn("s of a processor, and the limit is 0", text)

    def test_only_the_slowest_are_shown_and_all_are_judged(self):
        units = [{"unit": f"u{i}.o", "seconds": 10 - i, "mib": 100 + i, "syntax": False} for i in range(8)]
        self.log.write_text("".join(json.dumps(unit) + "\n" for unit in units))
        code, text = self.report(None, 106)
        self.assertEqual(code, 1)
        self.assertIn("u0", text)
        self.assertNotIn("u6 ", text)
        self.assertIn("u7 takes 107 MiB", text)

    def test_the_compiler_and_nothing_else_has_the_allocator_that_is_named(self):
        said = self.log.with_name("said")
        with mock.patch.dict(os.environ, {"FRUGAL_COMPILER_MALLOC": "libm.so.6"}):
            os.environ.pop("LD_PRELOAD", None)
            self.compile(f"import os; open({str(said)!r}, 'w').write(os.environ['LD_PRELOAD'])")
            self.assertNotIn("LD_PRELOAD", os.environ)
        self.assertEqual(said.read_text(), "libm.so.6")

    def test_a_failing_or_killed_compiler_stays_so(self):
        self.assertEqual(self.compile("raise SystemExit(3)"), 3)
        self.assertEqual(self.compile("import os; os.kill(os.getpid(), 9)"), 128 + 9)

    def test_a_syntax_check_that_passes_leaves_a_trace_and_one_that_fails_does_not(self):
        self.compile("raise SystemExit(1)", "-fsyntax-only")
        self.assertFalse(self.object.exists())
        self.compile("")
        self.assertFalse(self.object.exists(), "a compiler that wrote nothing is not covered for")
        self.compile("", "-fsyntax-only")
        self.assertTrue(self.object.exists())


if __name__ == "__main__":
    unittest.main()
