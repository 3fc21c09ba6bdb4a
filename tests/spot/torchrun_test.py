#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/cluster/torchrun.sh with a stand-in for torchrun, which starts two ranks and takes
every code but 0 for a failure. tests/interop/torchrun.py runs it with Python's."""

import os
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from trainers import TRAINER, Trainers  # noqa: E402

SCRIPT = Path(__file__).resolve().parents[2] / "examples/cluster/torchrun.sh"

TORCHRUN = f"""#!{sys.executable}
import os, pathlib, signal, subprocess, sys
at = sys.argv.index("--no-python")
pathlib.Path(os.environ["TALK"], "flags").write_text(" ".join(sys.argv[1:at]))
ranks = [subprocess.Popen(sys.argv[at + 1:]) for _ in range(2)]
told = []
def tell(*_):
    told.append(1)
    for each in ranks: each.send_signal(signal.SIGTERM)
signal.signal(signal.SIGTERM, tell)
codes = [each.wait() for each in ranks]
sys.exit(1 if told or any(codes) else 0)
"""


class Torchrun(Trainers):
    def setUp(self):
        super().setUp()
        self.program("bin/torchrun", TORCHRUN)
        self.trainer = self.program("trainer", TRAINER)
        self.environment["PATH"] = f"{self.folder}/bin:{self.environment['PATH']}"

    def begin(self, **environment):
        return self.start("bash", SCRIPT, "--nproc-per-node", "2", "--", self.trainer, **environment)

    def test_a_finished_run_is_0_and_torchrun_gets_its_flags(self):
        self.assertEqual(self.end(self.begin(EXIT="0"))[0], 0)
        self.assertEqual((self.folder / "flags").read_text(), "--nproc-per-node 2")

    def test_75_of_the_ranks_is_75_of_the_script(self):
        self.assertEqual(self.end(self.begin(EXIT="75"))[0], 75)

    def test_another_code_is_torchruns(self):
        self.assertEqual(self.end(self.begin(EXIT="3"))[0], 1)

    def test_a_signal_reaches_the_trainers_and_75_comes_back(self):
        process = self.begin()
        self.assertEqual([self.hear(), self.hear()], ["ready", "ready"])
        process.send_signal(signal.SIGTERM)
        self.assertEqual([self.hear(), self.hear()], ["SIGTERM", "SIGTERM"])
        self.go_on()
        self.assertEqual(self.hear(), "saved")
        while process.poll() is None:  # unless the first one has reached both
            try:
                os.close(os.open(self.folder / "go_on", os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                time.sleep(0.05)
        self.assertEqual(self.end(process)[0], 75)

    def test_without_a_program_it_says_how_to_use_it(self):
        code, said = self.end(self.start("bash", SCRIPT, "--nproc-per-node", "2"))
        self.assertEqual(code, 2)
        self.assertIn("usage:", said)


if __name__ == "__main__":
    unittest.main()
