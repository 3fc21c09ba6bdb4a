#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs examples/spot/slurm.sh under SLURM itself: slurm.py PROGRAM

PROGRAM is interop_slurm, built from slurm.cpp in this folder. Starts munged, slurmctld and four slurmd on this machine,
as root: Debian's slurm-wlm and munge.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples/spot/slurm.sh"
PATIENCE = 120

program = ""

CONFIGURATION = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=30
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 RealMemory=64000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8 RealMemory=64000
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs=8 RealMemory=64000
NodeName=n4 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[4]} CPUs=8 RealMemory=64000
PartitionName=main Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list:
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        (cls.folder / "state").mkdir()
        key = cls.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        cls.folder.chmod(0o755)
        configuration = cls.folder / "slurm.conf"
        configuration.write_text(
            CONFIGURATION.format(folder=cls.folder, host=socket.gethostname(), ports=free_ports(5)))  # fmt: skip
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", "SRUN"))}
        cls.environment = kept | {"SLURM_CONF": str(configuration), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
        cls.daemons = []
        cls.addClassCleanup(cls.end)
        cls.daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={cls.folder}/munge.socket",
                   f"--pid-file={cls.folder}/munged.pid", f"--log-file={cls.folder}/munged.log",
                   f"--seed-file={cls.folder}/munged.seed")  # fmt: skip
        cls.daemon("slurmctld", "-D")
        for node in range(1, 5):
            cls.daemon("slurmd", "-D", "-N", f"n{node}")
        until = time.monotonic() + PATIENCE
        while cls.said("sinfo", "--noheader", "--states=idle", "--format=%D", check=False).strip() != "4":
            if time.monotonic() > until:
                raise AssertionError(cls.logs())
            time.sleep(0.5)

    @classmethod
    def daemon(cls, *command):
        cls.daemons.append(subprocess.Popen(command, env=cls.environment, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))  # fmt: skip

    @classmethod
    def end(cls):
        for each in reversed(cls.daemons):
            each.terminate()
        for each in reversed(cls.daemons):
            try:
                each.wait(timeout=20)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    @classmethod
    def logs(cls) -> str:
        return "\n".join(each.read_text(errors="replace")[-2000:] for each in sorted(cls.folder.glob("*.log")))

    @classmethod
    def said(cls, *command, check=True, **environment) -> str:
        return subprocess.run(command, check=check, capture_output=True, text=True,
                              env=cls.environment | environment).stdout  # fmt: skip

    def submit(self, run: Path, tasks: int, **environment) -> str:
        output = self.folder / f"job-%j-{run.name}.txt"
        text = self.said("sbatch", "--parsable", f"--nodes={tasks}", f"--ntasks={tasks}", "--cpus-per-task=1",
                         "--mem=100", f"--output={output}", str(SCRIPT), program, str(run), **environment)  # fmt: skip
        return text.strip()

    def output(self, job: str) -> str:
        return "".join(each.read_text(errors="replace") for each in self.folder.glob(f"job-{job}-*.txt"))

    def state(self, job: str) -> str:
        return self.said("squeue", "--noheader", f"--jobs={job}", "--states=all", "--format=%T", check=False).strip()

    def wait_for(self, reached, job: str):
        until = time.monotonic() + PATIENCE
        while not reached():
            self.assertLess(time.monotonic(), until, self.state(job) + "\n" + self.output(job) + self.logs())
            time.sleep(0.1)

    @staticmethod
    def steps(run: Path) -> list:
        log = run / "metrics.jsonl"
        if not log.exists():
            return []
        return [int(each) for each in re.findall(r'"event":"step".*?"step":(\d+)', log.read_text())]

    def test_stopped_with_four_tasks_queued_again_and_finished_with_two(self):
        whole = self.folder / "whole"
        job = self.submit(whole, 1)
        self.wait_for(lambda: self.state(job) == "COMPLETED", job)
        run = self.folder / "run"

        # The signal that SLURM sends before a time limit (--signal=B:USR1@120).
        job = self.submit(run, 4)
        self.wait_for(lambda: self.steps(run)[-1:] >= [8], job)
        self.said("scancel", "--batch", "--signal=USR1", job)
        self.wait_for(lambda: "queued again" in self.output(job), job)
        self.wait_for(lambda: self.state(job) == "PENDING", job)
        stopped = self.steps(run)[-1]
        self.assertLess(stopped, 40)
        self.assertEqual(self.output(job).count(f": {stopped} steps, exit 75"), 4)
        self.assertRegex(self.output(job), r"rank 3 of 4 \(srun\), store at 127\.0\.0\.1:\d+: ")

        # It goes on with as many tasks as before. A node refuses a job that starts in the second in which it ended
        # ("Job credential revoked"); without this update SLURM waits for two minutes.
        self.said("scontrol", "update", f"JobId={job}", "StartTime=now+3")
        self.wait_for(lambda: self.steps(run)[-1] > stopped + 5, job)
        self.said("scancel", job)
        self.wait_for(lambda: self.state(job) == "CANCELLED", job)
        self.assertLess(self.steps(run)[-1], 40)

        job = self.submit(run, 2)
        self.wait_for(lambda: self.state(job) == "COMPLETED", job)
        self.assertEqual(self.output(job).count(": 40 steps, exit 0"), 2)
        self.assertEqual(self.steps(run), list(range(1, 41)))
        self.assertEqual((run / "weights").read_text(), (whole / "weights").read_text())

    def test_a_task_that_is_killed_ends_the_job_and_is_named(self):
        run = self.folder / "killed"
        job = self.submit(run, 4)
        self.wait_for(lambda: self.steps(run)[-1:] >= [4], job)
        for each in Path("/proc").glob("[0-9]*"):
            try:
                mine = (each / "environ").read_bytes().split(b"\0")
                command = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"SLURM_PROCID=2" in mine and command[0] == program.encode() and str(run).encode() in command:
                os.kill(int(each.name), signal.SIGKILL)
        self.wait_for(lambda: self.state(job) == "FAILED", job)
        self.assertIn("rank 2 (", self.output(job))
        self.assertIn(") has ended; last seen at step", self.output(job))


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
