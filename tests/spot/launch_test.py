#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/cluster/launch.sh with a stand-in trainer, and with one that prints what it was given."""

import os
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from trainers import PATIENCE, TRAINER, Trainers  # noqa: E402

SCRIPT = Path(__file__).resolve().parents[2] / "examples/cluster/launch.sh"
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
PLACE = f"""#!{sys.executable}
import os, sys
print(*(os.environ[name] for name in {NAMES!r}), *sys.argv[1:], flush=True)
sys.exit(int(os.environ.get("CODE_OF_" + os.environ["RANK"], "0")))
"""


class Launch(Trainers):
    def launch(self, *words, **environment):
        return self.start("bash", SCRIPT, *words, **environment)

    def places(self, *words, **environment):
        trainer = self.program("place", PLACE)
        code, printed = self.end(self.launch(*words, "--", trainer, "--run", "a b", **environment))
        return code, sorted(printed.splitlines())

    def test_the_processes_of_one_machine(self):
        code, found = self.places("--per-node", "3")
        self.assertEqual(code, 0)
        self.assertEqual(found, [f"{rank} 3 {rank} 127.0.0.1 29500 --run a b" for rank in range(3)])

    def test_the_second_of_two_machines(self):
        code, found = self.places("--nodes", "2", "--node", "1", "--per-node", "2", "--master", "node0:4000")
        self.assertEqual(found, ["2 4 0 node0 4000 --run a b", "3 4 1 node0 4000 --run a b"])
        self.assertEqual(self.places("--per-node", "1", "--master", "node0")[1], ["0 1 0 node0 29500 --run a b"])

    def test_one_process_for_each_gpu(self):
        self.program("bin/nvidia-smi", "#!/bin/sh\necho 'GPU 0: a (UUID: x)'\necho 'GPU 1: a (UUID: y)'\n")
        found = self.places(PATH=f"{self.folder}/bin:{self.environment['PATH']}")[1]
        self.assertEqual([line.split()[:2] for line in found], [["0", "2"], ["1", "2"]])

    def test_codes(self):
        for codes, expected in (({}, 0), ({"0": 75, "1": 75}, 75), ({"1": 75}, 75), ({"0": 75, "1": 3}, 3), ({"1": 1}, 1)):
            more = {f"CODE_OF_{rank}": str(code) for rank, code in codes.items()}
            self.assertEqual(self.places("--per-node", "2", **more)[0], expected, codes)

    def test_a_signal_reaches_all_and_75_comes_back(self):
        for number in (signal.SIGTERM, signal.SIGUSR1):
            process = self.launch("--per-node", "2", "--", self.program("trainer", TRAINER))
            self.assertEqual([self.hear(), self.hear()], ["ready", "ready"])
            process.send_signal(number)
            self.assertEqual([self.hear(), self.hear()], ["SIGTERM", "SIGTERM"])
            until = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < until:
                try:
                    os.close(os.open(self.folder / "go_on", os.O_WRONLY | os.O_NONBLOCK))
                except OSError:
                    time.sleep(0.05)
            self.assertEqual([self.hear(), self.hear()], ["saved", "saved"])
            self.assertEqual(self.end(process)[0], 75)

    def test_a_signal_before_the_trainer_listens_is_75(self):
        process = self.launch("--per-node", "2", "--", self.program("trainer", TRAINER), DEAF="1")
        self.assertEqual([self.hear(), self.hear()], ["ready", "ready"])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process)[0], 75)

    def test_processes_end_with_a_launcher_that_was_killed(self):
        process = self.launch("--per-node", "2", "--", self.program("trainer", TRAINER))
        self.assertEqual([self.hear(), self.hear()], ["ready", "ready"])
        process.kill()
        self.assertEqual([self.hear(), self.hear()], ["SIGTERM", "SIGTERM"])

    def test_without_a_program_or_with_unknown_words_it_says_how_to_use_it(self):
        for words in ([], ["--per-node", "2"], ["--per-node", "2", "--"], ["--gpus", "2", "--", "x"], ["--node"],
                      ["--per-node", "two", "--", "x"], ["--node", "1", "--", "x"], ["--per-node", "0", "--", "x"]):  # fmt: skip
            code, said = self.end(self.launch(*words))
            self.assertEqual(code, 2, words)
            self.assertIn("--master HOST:PORT", said)


if __name__ == "__main__":
    unittest.main()
