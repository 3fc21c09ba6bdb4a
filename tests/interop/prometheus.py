#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks frugal's metrics with Prometheus's own promtool: prometheus.py PROGRAM

PROGRAM is interop_prometheus, built from prometheus.cpp in this folder. `promtool check metrics` parses
the text and lints names, units and types; both must have no complaint. promtool is in Debian's package
prometheus, and must be on the PATH.
"""

import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

program = ""


def checked(text: bytes) -> str:
    """promtool's complaints; empty if there are none."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode()
    return said if done.returncode == 0 or said else f"promtool exited with {done.returncode}"


def series(text: bytes) -> dict[str, str]:
    """Name and labels, to the value."""
    lines = text.decode().splitlines()
    # prometheus-cpp adds series of its own, exposer_....
    return dict(line.rsplit(" ", 1) for line in lines if line.startswith("frugal_"))


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "metrics.prom"
            with subprocess.Popen([program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
                port = int(run.stdout.readline())
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                    cls.type = answer.headers["Content-Type"]
                    cls.scraped = answer.read()
                cls.during = path.read_bytes()
                run.communicate(b"\n", timeout=60)
            cls.code = run.returncode
            cls.written = path.read_bytes()

    def test_the_run_ends(self):
        self.assertEqual(self.code, 0)

    def test_promtool_has_no_complaint_about_the_file(self):
        self.assertEqual(checked(self.during), "")
        self.assertEqual(checked(self.written), "")

    def test_promtool_has_no_complaint_about_the_endpoint(self):
        self.assertEqual(checked(self.scraped), "")
        self.assertTrue(self.type.startswith("text/plain"), self.type)

    def test_promtool_does_complain(self):
        self.assertNotEqual(checked(self.written + b"a b c d\n"), "")
        self.assertNotEqual(checked(b"# TYPE x_total gauge\nx_total 1\n"), "")

    def test_file_and_endpoint_have_the_same_series(self):
        def names(text: bytes) -> set[str]:
            # The order of labels differs.
            return {(re.match("[a-z0-9_]+", each)[0], tuple(sorted(re.findall(r'(\w+)="', each))))
                    for each in series(text)}
        self.assertEqual(names(self.scraped), names(self.during))
        self.assertGreater(len(names(self.written)), 20)

    def test_the_values_are_those_of_the_run(self):
        values = {re.match("[a-z0-9_]+", each)[0]: value for each, value in series(self.written).items()}
        self.assertEqual(values["frugal_steps_total"], "16")
        self.assertEqual(values["frugal_samples_total"], "128")
        self.assertEqual(values["frugal_running"], "0")
        self.assertEqual(values["frugal_billed_seconds"], "1800")
        self.assertEqual(values["frugal_energy_joules"], "360000")
        self.assertEqual(values["frugal_not_a_number"], "NaN")
        self.assertEqual(values["frugal_infinite"], "-Inf")
        self.assertEqual(values["frugal_events_total"], "16")
        self.assertIn("frugal_validation_accuracy", values)


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
