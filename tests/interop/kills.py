#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills and stops ranks at random instants, goes on with another number or grid of them, and compares the bits: kills.py PROGRAM [KILLS]

Beside PROGRAM there must be interop_slurm, built from slurm.cpp in this folder. By itself it kills 5 times with Replicate
and 3 times with Pipeline, otherwise as often as it is given with each; then 4 runs get signals, SIGKILL, SIGTERM or a
pause (SIGSTOP and SIGCONT), otherwise as many as it is given: kills.py PROGRAM 300 Signals. docs/reliability.md has the
results of more. The seed is printed, and FRUGAL_KILLS_SEED sets it; FRUGAL_KILLS_JOBS runs get signals at a time (1), and a
pause takes FRUGAL_KILLS_PAUSE seconds at most (3 of 4 runs, 30 of more).
"""

import contextlib
import json
import os
import queue
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STEPS = 40
SIZES = {"replicate": (1, 2, 4, 8), "pipeline": (1, 2, 3, 4)}
COPIES = (1, 2, 4)  # of a pipeline, that divide the number of processes
# Seconds in which all ranks end after one was killed, or the run does. The program waits 40 s for a rank that has not come,
# 80 s for a store that vanishes while it connects, and 60 s until it ends one that does not notice the end of another.
PATIENCE = 240
WORLDS = {1: 8, 2: 8, 3: 12, 4: 8, 5: 10, 6: 12, 8: 8}  # micro-batches of a step that so many ranks can share
STEPS_OF = {8: 40, 10: 32, 12: 28}
BEARABLE = 20  # seconds that a rank may be stopped without an end of the run

program = ""
kills = {"replicate": 5, "pipeline": 3, "signals": 4}


def port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def threads(process: int) -> str:
    """Where the threads of a process are, as far as the machine tells."""
    if shutil.which("gdb"):
        command = ["gdb", "-p", str(process), "-batch", "-ex", "thread apply all backtrace 12"]
        return subprocess.run(command, text=True, capture_output=True).stdout
    return "\n".join(f"{each.parent.name}: {each.read_text()}" for each in Path(f"/proc/{process}/task").glob("*/wchan"))


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, run: Path, size: int, copies: int, window: int = 8) -> list:
        kept = {k: v for k, v in os.environ.items() if not re.match("SLURM|TORCHELASTIC|RANK|WORLD|MASTER|LOCAL_|OMPI", k)}
        place = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port()), "OMP_NUM_THREADS": "1"}
        ranks = [subprocess.Popen([program, str(run), "5", str(copies), str(window)], env=kept | place | {"RANK": str(rank)}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(size)]  # fmt: skip
        self.addCleanup(lambda: [each.kill() for each in ranks if each.poll() is None])
        return ranks

    def end(self, ranks: list, patience: float = PATIENCE) -> list:
        """Exit code and output of each."""
        until = time.monotonic() + patience
        with ThreadPoolExecutor(len(ranks)) as pool:
            # All are read at once: one that waits to write would never end.
            said = list(pool.map(lambda each: self.outcome(each, until), ranks))
        hung = [rank for rank, (code, _) in enumerate(said) if code is None]
        self.assertEqual(hung, [], "these ranks have not ended:\n" + "\n".join(f"{code}: {text}" for code, text in said))
        return said

    def outcome(self, rank: subprocess.Popen, until: float) -> tuple:
        """Exit code, None if it has not ended by then, and output."""
        try:
            said = rank.communicate(timeout=max(1, until - time.monotonic()))[0]
            return rank.returncode, said
        except subprocess.TimeoutExpired:
            stacks = threads(rank.pid)
            rank.kill()
            return None, rank.communicate()[0] + stacks

    def events(self, run: Path) -> list:
        log = run / "metrics.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def steps(self, run: Path) -> list:
        return [each["step"] for each in self.events(run) if each["event"] == "step"]


class Kills(Ranks):
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


class Forks:
    """Starts ranks that have loaded LibTorch already: most of the time of a start."""

    def __init__(self):
        kept = {k: v for k, v in os.environ.items() if not re.match("SLURM|TORCHELASTIC|RANK|WORLD|MASTER|LOCAL_|OMPI", k)}
        self.process = subprocess.Popen([program, "--forks"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=kept | {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"})  # fmt: skip
        self.ended = {}
        self.starts = False  # an answer comes next
        self.answers = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            numbers = [int(each) for each in line.split()]
            # All of the start before have ended by then. The system gives numbers of processes again.
            if self.starts:
                self.starts = False
                self.ended = {}
                self.answers.put(numbers)
            else:
                self.ended[numbers[0]] = numbers[1]

    def start(self, size: int, outputs: Path, arguments: list) -> list:
        outputs.mkdir()
        self.starts = True
        print(size, port(), outputs, *arguments, file=self.process.stdin, flush=True)
        return self.answers.get(timeout=60)

    def end(self, ranks: list, outputs: Path, patience: float) -> list:
        """Exit code and output of each."""
        until = time.monotonic() + patience
        while not all(each in self.ended for each in ranks):
            if time.monotonic() > until:
                said = "\n".join(each.read_text(errors="replace") for each in sorted(outputs.iterdir()))
                raise AssertionError(f"not all ranks have ended: {[self.ended.get(each) for each in ranks]}\n{said}")
            time.sleep(0.02)
        return [(self.ended[each], (outputs / str(rank)).read_text(errors="replace")) for rank, each in enumerate(ranks)]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Signals(Ranks):
    """Runs whose ranks are killed, told to stop, or stopped for a while, and which go on with any number of ranks."""

    def test_signals_at_random_instants(self):
        runs = kills["signals"]
        seed = int(os.environ.get("FRUGAL_KILLS_SEED", random.randrange(10**9)))
        self.longest = float(os.environ.get("FRUGAL_KILLS_PAUSE", 3 if runs <= 10 else 30))
        print(f"signals, seed {seed}", file=sys.stderr)
        self.lock, self.counts, self.took, self.free = threading.Lock(), Counter(), [], []
        self.addCleanup(lambda: [each.close() for each in self.free])
        self.lasts = {}  # seconds that an undisturbed start of so many ranks took, the last one
        expected = {}
        for window, steps in STEPS_OF.items():
            whole = self.folder / f"whole-{window}"
            self.assertEqual([code for code, _ in self.end(self.start(whole, 1, 0, window))], [0])
            self.assertEqual(self.steps(whole), list(range(1, steps + 1)))
            expected[window] = (whole / "weights").read_text()
        sizes = [size for _ in range(runs // len(WORLDS) + 1) for size in WORLDS]
        random.Random(seed).shuffle(sizes)
        with ThreadPoolExecutor(int(os.environ.get("FRUGAL_KILLS_JOBS", 1))) as pool:
            for _ in pool.map(lambda i: self.run_of(i, sizes[i], random.Random(f"{seed} {i}"), expected), range(runs)):
                pass
        self.took.sort()
        print(f"{runs} runs, {dict(sorted(self.counts.items()))}; from SIGKILL to the end of the others: "
              f"median {self.took[len(self.took) // 2]:.1f} s, most {self.took[-1]:.1f} s" if self.took else "no kills",
              file=sys.stderr)

    def run_of(self, index: int, size: int, draw: random.Random, expected: dict):
        window = WORLDS[size]
        run = self.folder / f"run-{index}"
        signals = draw.choice((1, 1, 2))
        with self.lock:
            forks = self.free.pop() if self.free else Forks()
        for start in range(100):
            outputs = self.folder / f"said-{index}-{start}"
            ranks = forks.start(size, outputs, [run, 5, 0, window])
            begun = time.monotonic()
            number = draw.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)) if signals else None
            victim, pause = draw.randrange(size), draw.uniform(1, self.longest)
            if number:
                time.sleep(draw.uniform(0.2, self.lasts.get(size, 4)))
            hit = number is not None and ranks[victim] not in forks.ended
            if hit:
                signals -= 1
                struck = time.monotonic()
                with contextlib.suppress(ProcessLookupError):  # it may just have ended; its code is looked at below
                    os.kill(ranks[victim], number)
                    if number == signal.SIGSTOP:
                        time.sleep(pause)
                        os.kill(ranks[victim], signal.SIGCONT)
            found = forks.end(ranks, outputs, 180)
            codes = [code for code, _ in found]
            text = f"run {index}, start {start}, {size} ranks"
            if hit:
                text += f", {number.name} to rank {victim} after {struck - begun:.1f} s"
                text += f" for {pause:.1f} s" if number == signal.SIGSTOP else ""
            text += f": {codes}"
            with self.lock:
                self.counts["starts"] += 1
                if hit:
                    self.counts[number.name] += 1
                else:
                    self.lasts[size] = time.monotonic() - begun
                if hit and number == signal.SIGKILL and size > 1:
                    self.took.append(time.monotonic() - struck)
                    text += f", all ended {self.took[-1]:.1f} s later"
                    # Rank 0 serves the store, in which they look for a name.
                    names = (f"rank {victim} (",) if victim else ("rank 0 (", "(rank 0, or", "rank 0, or the launcher", "finds no store")
                    told = [any(each in said for each in names) for rank, (code, said) in enumerate(found)
                            if rank != victim and code == 1]  # fmt: skip
                    self.counts["named by all"] += bool(told) and all(told)
                    self.counts["named by none"] += bool(told) and not any(told)
                print(text, file=sys.stderr, flush=True)
            text += "\n" + "\n".join(said for _, said in found)
            others = [(code, said) for rank, (code, said) in enumerate(found) if not hit or rank != victim]
            self.assertTrue(all("frugal: " in said for code, said in others if code == 1), text)
            if codes == [0] * size:
                break
            self.assertTrue(hit, text)
            if number == signal.SIGSTOP:
                self.assertGreater(pause, BEARABLE, text)
                with self.lock:
                    self.counts["ended by a pause"] += 1
            if number == signal.SIGTERM and codes[victim] != -signal.SIGTERM:
                self.assertEqual(codes, [75] * size, text)
            self.assertTrue(all(code in (0, 1, 75) for code, _ in others), text)
            size = draw.choice([each for each in WORLDS if WORLDS[each] == window or each == 1])
        self.assertEqual((run / "weights").read_text(), expected[window], text)
        self.assertEqual(self.steps(run), list(range(1, STEPS_OF[window] + 1)), text)
        shutil.rmtree(run)
        with self.lock:
            self.free.append(forks)


if __name__ == "__main__":
    program = str(Path(sys.argv.pop(1)).with_name("interop_slurm"))
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        kills = dict.fromkeys(kills, int(sys.argv.pop(1)))
    unittest.main()
