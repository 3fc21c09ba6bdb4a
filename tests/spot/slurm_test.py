#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/spot/slurm.sh as sbatch would, with stand-ins for srun, squeue and scontrol."""

import re
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from trainers import TRAINER, Trainers  # noqa: E402

SCRIPT = Path(__file__).resolve().parents[2] / "examples/spot/slurm.sh"

# Like SLURM's own: forwards SIGUSR1 to the task, and SIGTERM kills it.
SRUN = f"""#!{sys.executable}
import signal, subprocess, sys
task = []
signal.signal(signal.SIGUSR1, lambda *_: task[0].send_signal(signal.SIGUSR1))
signal.signal(signal.SIGTERM, lambda *_: task[0].kill())
task.append(subprocess.Popen(sys.argv[1:], start_new_session=False))
code = task[0].wait()
sys.exit(code if code >= 0 else 128 - code)
"""

SQUEUE = '#!/bin/sh\n[ -n "$STATE" ] || exit 1\necho "$STATE"\n'
SCONTROL = '#!/bin/sh\necho "$*" >>"$TALK/requeued"\nexit "${REFUSE:-0}"\n'


class Slurm(Trainers):
    def setUp(self):
        super().setUp()
        for name, text in (("srun", SRUN), ("squeue", SQUEUE), ("scontrol", SCONTROL)):
            self.program(f"bin/{name}", text)
        self.trainer = self.program("trainer", TRAINER)
        self.environment["PATH"] = f"{self.folder}/bin:{self.environment['PATH']}"
        self.environment.update(SLURM_JOB_ID="42", STATE="RUNNING")

    def run_with(self, **environment):
        return self.end(self.start("bash", SCRIPT, self.trainer, **environment))

    def requeued(self):
        calls = self.folder / "requeued"
        return calls.read_text().splitlines() if calls.exists() else []

    def test_a_finished_run_ends_the_job(self):
        self.assertEqual(self.run_with(EXIT="0")[0], 0)
        self.assertEqual(self.requeued(), [])

    def test_75_is_queued_again_once(self):
        self.assertEqual(self.run_with(EXIT="75")[0], 75)
        self.assertEqual(self.requeued(), ["requeue 42"])

    def test_other_codes_are_passed_on_and_not_queued_again(self):
        for code in (1, 2, 74, 76, 137, 138, 143):
            self.assertEqual(self.run_with(EXIT=str(code))[0], code)
        self.assertEqual(self.requeued(), [])

    def test_either_signal_to_the_script_lets_the_trainer_save_and_queues_again(self):
        for number in (signal.SIGUSR1, signal.SIGTERM):
            script = self.start("bash", SCRIPT, self.trainer)
            self.assertEqual(self.hear(), "ready")
            script.send_signal(number)
            self.assertEqual(self.hear(), "SIGUSR1")
            self.assertEqual(self.requeued(), [])
            self.go_on()
            self.assertEqual(self.hear(), "saved")
            self.assertEqual(self.end(script)[0], 75)
            self.assertEqual(self.requeued(), ["requeue 42"])
            (self.folder / "requeued").unlink()

    def test_more_signals_do_not_end_a_save(self):
        script = self.start("bash", SCRIPT, self.trainer)
        self.assertEqual(self.hear(), "ready")
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM):
            script.send_signal(number)
            self.assertEqual(self.hear(), "SIGUSR1")
        self.go_on()
        self.assertEqual(self.hear(), "saved")
        self.assertEqual(self.end(script)[0], 75)
        self.assertEqual(self.requeued(), ["requeue 42"])

    def test_a_trainer_that_does_not_listen_yet_is_queued_again(self):
        script = self.start("bash", SCRIPT, self.trainer, DEAF="yes")
        self.assertEqual(self.hear(), "ready")
        script.send_signal(signal.SIGUSR1)
        self.assertEqual(self.end(script)[0], 75)
        self.assertEqual(self.requeued(), ["requeue 42"])

    def test_a_cancelled_job_is_not_queued_again(self):
        code, printed = self.run_with(EXIT="75", STATE="COMPLETING")
        self.assertEqual(code, 75)
        self.assertIn("the job is COMPLETING", printed)
        self.assertEqual(self.requeued(), [])

    def test_a_job_of_unknown_state_is_queued_again(self):
        self.assertEqual(self.run_with(EXIT="75", STATE="")[0], 75)
        self.assertEqual(self.requeued(), ["requeue 42"])

    def test_restarts_have_a_limit(self):
        self.run_with(EXIT="75", SLURM_RESTART_COUNT="99")
        self.assertEqual(self.requeued(), ["requeue 42"])
        code, printed = self.run_with(EXIT="75", SLURM_RESTART_COUNT="100")
        self.assertEqual(code, 75)
        self.assertIn("restarted 100 times", printed)
        self.run_with(EXIT="75", SLURM_RESTART_COUNT="3", MAX_RESTARTS="3")
        self.assertEqual(self.requeued(), ["requeue 42"])

    def test_a_refusal_to_queue_again_is_said(self):
        code, printed = self.run_with(EXIT="75", REFUSE="1")
        self.assertEqual(code, 75)
        self.assertIn("scontrol could not queue it again", printed)

    def test_alone_it_trains_the_example(self):
        self.program("build/release/examples/production", TRAINER)
        script = self.start("bash", SCRIPT)
        self.assertEqual(self.hear(), "ready --run runs/demo")
        script.send_signal(signal.SIGUSR1)
        self.assertEqual(self.hear(), "SIGUSR1")
        self.go_on()
        self.assertEqual(self.end(script)[0], 75)

    def test_outside_of_a_job_it_says_how_it_is_run(self):
        del self.environment["SLURM_JOB_ID"]
        code, printed = self.run_with(EXIT="0")
        self.assertNotEqual(code, 0)
        self.assertIn("run this with sbatch", printed)

    def test_the_wishes_stand_where_sbatch_reads_them(self):
        text = SCRIPT.read_text(encoding="utf-8")
        head = re.match(r"(?:#.*\n)+", text)[0]  # sbatch stops at the first line that is not a
                                                 # comment
        self.assertEqual(text.count("#SBATCH "), head.count("#SBATCH "))
        for wish in ("--requeue", "--open-mode=append", "--signal=B:USR1@120"):
            self.assertIn(f"#SBATCH {wish}\n", head)


if __name__ == "__main__":
    unittest.main()
