#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets systemd-analyze parse examples/spot/frugal-train.service; nothing is started."""

import subprocess
import tempfile
import unittest
from pathlib import Path

UNIT = Path(__file__).resolve().parents[2] / "examples/spot/frugal-train.service"
PROGRAM = "/srv/frugal/bin/production"


class Unit(unittest.TestCase):
    def setUp(self):
        self.text = UNIT.read_text(encoding="utf-8")
        # systemd-analyze requires the program, which is not installed here.
        self.assertEqual(self.text.count(PROGRAM), 1)
        self.text = self.text.replace(PROGRAM, "/bin/true")

    def verify(self, text):
        """Output of systemd-analyze; empty for a valid unit."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, UNIT.name)
            file.write_text(text, encoding="utf-8")
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", file],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.assertEqual(done.returncode != 0, done.stdout != "", done.stdout)
        return done.stdout

    def changed(self, old, new):
        self.assertEqual(self.text.count(old), 1, old)
        return self.verify(self.text.replace(old, new))

    def test_systemd_takes_the_unit(self):
        self.assertEqual(self.verify(self.text), "")

    def test_an_unknown_key_is_found(self):
        found = self.changed("\nRestartForceExitStatus=75\n", "\nRestartForceExitCode=75\n")
        self.assertIn("Unknown key", found)

    def test_an_unknown_exit_code_is_found(self):
        for key in ("RestartForceExitStatus", "SuccessExitStatus"):
            self.assertIn("375", self.changed(f"\n{key}=75\n", f"\n{key}=375\n"))

    def test_an_unknown_signal_or_time_is_found(self):
        self.assertIn("SIGTERMS", self.changed("=SIGTERM\n", "=SIGTERMS\n"))
        self.assertIn("soon", self.changed("TimeoutStopSec=100\n", "TimeoutStopSec=soon\n"))

    def test_75_alone_starts_it_again(self):
        lines = self.text.splitlines()
        keys = [line for line in lines if line.startswith(("Restart=", "RestartForce", "RestartPrevent"))]
        self.assertEqual(keys, ["Restart=no", "RestartForceExitStatus=75"])


if __name__ == "__main__":
    unittest.main()
