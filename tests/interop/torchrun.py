#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts a program of Replicate by torchrun, and by hand: torchrun.py PROGRAM

PROGRAM is interop_torchrun, built from torchrun.cpp in this folder. Needs torch of requirements/model.txt.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples/cluster/torchrun.sh"

program = ""


def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def environment(**more: str) -> dict:
    """This process's without what a launcher may have set around it."""
    kept = {k: v for k, v in os.environ.items() if not re.match("SLURM|TORCHELASTIC|RANK|WORLD|MASTER|LOCAL_|OMPI", k)}
    return kept | {"OMP_NUM_THREADS": "1"} | more


def cmdline_of(process: str) -> str:
    """Empty for one that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


def results(folder: str) -> list:
    return [each.read_text().splitlines() for each in sorted(Path(folder).iterdir())]


class Torchrun(unittest.TestCase):
    def alone(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, folder], check=True, env=environment())
            return results(folder)[0][2]

    def test_torchrun_starts_four_and_they_come_to_the_bits_of_one(self):
        alone = self.alone()
        with tempfile.TemporaryDirectory() as folder:
            here = port()
            subprocess.run(
                [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "4",
                 "--master-port", str(here), program, folder],
                check=True, capture_output=True, env=environment())
            found = results(folder)
        self.assertEqual(len(found), 4)
        for rank, (text, local, weights) in enumerate(found):
            self.assertRegex(text, rf"^rank {rank} of 4 \(torchrun\), store at \S+:{here}(, run by the launcher)?$")
            self.assertEqual(local, str(rank))
            self.assertEqual(weights, alone)

    def test_the_script_around_torchrun_exits_with_75_if_the_ranks_do(self):
        bin_of_torchrun = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        with tempfile.TemporaryDirectory() as folder:
            command = [SCRIPT, "--nproc-per-node", "2", "--master-port", str(port()), "--", program, folder]
            stopped = subprocess.run([*command, "75"], capture_output=True, text=True,
                                     env=environment(**bin_of_torchrun))  # fmt: skip
            self.assertEqual(stopped.returncode, 75, stopped.stderr)
            ended = subprocess.run(command, capture_output=True, env=environment(**bin_of_torchrun))
            self.assertEqual(ended.returncode, 0)

    def test_ranks_end_with_an_agent_that_was_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            agent = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2",
                 "--master-port", str(port()), program, folder, "wait"], env=environment())  # fmt: skip
            until = time.monotonic() + 120
            while len(results(folder)) < 2 or not all(len(each) == 3 for each in results(folder)):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.2)
            children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
            ranks = [each for each in children if program in Path(f"/proc/{each}/cmdline").read_text()]
            self.assertEqual(len(ranks), 2)
            agent.kill()
            agent.wait()
            while any(program in cmdline_of(each) for each in ranks):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.2)

    def test_a_machine_that_joins_has_all_begin_anew_with_another_world(self):
        alone, agents = self.alone(), []
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nnodes", "1:2",
                       "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "joins",
                       "--rdzv-endpoint", f"127.0.0.1:{port()}", "--rdzv-conf", "last_call_timeout=2",
                       program, folder, "wait"]  # fmt: skip
            until = time.monotonic() + 180
            try:
                for world in (1, 2):
                    agents.append(subprocess.Popen(
                        command, stderr=subprocess.DEVNULL, env=environment(TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")))
                    while [each[0].partition(" (")[0] for each in results(folder) if len(each) == 3] != [
                        f"rank {rank} of {world}" for rank in range(world)
                    ]:
                        self.assertLess(time.monotonic(), until)
                        time.sleep(0.2)
                self.assertEqual([weights for _, _, weights in results(folder)], [alone, alone])
            finally:
                for each in agents:
                    each.terminate()
                for each in agents:
                    each.wait(timeout=60)

    def test_variables_by_hand(self):
        alone = self.alone()
        with tempfile.TemporaryDirectory() as folder:
            place = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port())}
            started = [subprocess.Popen([program, folder], env=environment(RANK=str(rank), **place)) for rank in (0, 1)]
            self.assertEqual([each.wait(timeout=120) for each in started], [0, 0])
            self.assertEqual([weights for _, _, weights in results(folder)], [alone, alone])

    def test_a_number_of_processes_that_cannot_share_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "3",
                 "--master-port", str(port()), program, folder],
                capture_output=True, text=True, env=environment())
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("frugal: 3 processes cannot share windows of 8 micro-batches (Replicate<Exact>)", done.stderr)


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
