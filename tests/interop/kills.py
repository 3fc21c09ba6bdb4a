#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills ranks at random instants, goes on with another number or grid of them, and compares the bits: kills.py PROGRAM [KILLS]

Beside PROGRAM there must be interop_slurm, built from slurm.cpp in this folder. By itself it kills 5 times with Replicate
and 3 times with Pipeline, otherwise as often as it is given with each; docs/reliability.md has the results of more. The seed
is printed, and FRUGAL_KILLS_SEED sets it.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

STEPS = 40
SIZES = {"replicate": (1, 2, 4, 8), "pipeline": (1, 2, 3, 4)}
COPIES = (1, 2, 4)  # of a pipeline, that divide the number of processes
PATIENCE = 90  # seconds in which all ranks end after one was killed, or the run does

program = ""
kills = {"replicate": 5, "pipeline": 3}


def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Kills(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, run: Path, size: int, copies: int) -> list:
        kept = {k: v for k, v in os.environ.items() if not re.match("SLURM|TORCHELASTIC|RANK|WORLD|MASTER|LOCAL_|OMPI", k)}
        place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port()), "OMP_NUM_THREADS": "1"}
        copies = [str(copies)] if copies else []
        ranks = [subprocess.Popen([program, str(run), "5", *copies], env=kept | place | {"RANK": str(rank)}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(size)]  # fmt: skip
        self.addCleanup(lambda: [each.kill() for each in ranks if each.poll() is None])
        return ranks

    def end(self, ranks: list) -> list:
        """Exit code and output of each."""
        until = time.monotonic() + PATIENCE
        found = []
        for each in ranks:
            said = each.communicate(timeout=max(1, until - time.monotonic()))[0]
            found.append((each.returncode, said))
        return found

    def events(self, run: Path) -> list:
        log = run / "metrics.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def steps(self, run: Path) -> list:
        return [each["step"] for each in self.events(run) if each["event"] == "step"]

    def test_killed_at_random_and_resumed_with_another_number(self):
        self.kill("replicate")

    def test_stages_killed_at_random_and_resumed_with_another_number(self):
        self.kill("pipeline")

    def kill(self, job: str):
        seed = int(os.environ.get("FRUGAL_KILLS_SEED", random.randrange(10**9)))
        print(f"{job}, seed {seed}", file=sys.stderr)
        draw = random.Random(seed)
        whole = self.folder / "whole"
        self.assertEqual([code for code, _ in self.end(self.start(whole, 1, int(job == "pipeline")))], [0])
        expected = (whole / "weights").read_text()
        done, runs, named = 0, 0, 0
        while done < kills[job]:
            runs += 1
            run = self.folder / f"run-{runs}"
            size = 0
            for start in range(1000):
                size = draw.choice([each for each in SIZES[job] if each != size])
                divides = [each for each in COPIES if size % each == 0] if job == "pipeline" else [0]
                copies = draw.choice(divides)
                ranks = self.start(run, size, copies)
                victim, number = draw.randrange(size), draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
                # A start takes about a second, and what is left of the run one to eight.
                time.sleep(draw.uniform(0.6, 1.8 + 8 / size) if done < kills[job] else 0)
                hit = done < kills[job] and ranks[victim].poll() is None
                if hit:
                    ranks[victim].send_signal(number)
                    done += 1
                found = self.end(ranks)
                codes = [code for code, _ in found]
                text = f"run {runs}, start {start}, {size} ranks, {copies} copies, {number.name} to rank {victim}: {codes}\n"
                text += "\n".join(said for _, said in found)
                if codes == [0] * size:
                    break
                self.assertTrue(hit, text)
                if number == signal.SIGTERM:
                    # Saved by all, or killed before the program listened; then the others name it.
                    before = codes[victim] == -signal.SIGTERM
                    self.assertTrue(before or codes == [75] * size, text)
                    if not before:
                        continue
                others = [(code, said) for rank, (code, said) in enumerate(found) if rank != victim]
                self.assertTrue(all(code in (0, 1) for code, _ in others), text)
                # The one that died, unless it had the store, or nobody had met it yet.
                named += any(f"rank {victim} (" in said for _, said in others)
                self.assertTrue(all("frugal: " in said for code, said in others if code == 1), text)
            self.assertEqual((run / "weights").read_text(), expected)
            self.assertEqual(self.steps(run), list(range(1, STEPS + 1)))
            self.assertEqual(len([each for each in self.events(run) if each["event"] == "cost"]), 1)
            self.assertTrue((run / "bill").is_file())
        print(f"{done} kills in {runs} runs; the others named the killed rank {named} times", file=sys.stderr)


if __name__ == "__main__":
    program = str(Path(sys.argv.pop(1)).with_name("interop_slurm"))
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        kills = dict.fromkeys(kills, int(sys.argv.pop(1)))
    unittest.main()
