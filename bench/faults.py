#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The faults that frugal's checkpoints and resumes survive: all of tests/fault at full size.

ctest runs a sample of these. This runs all of them, and writes the cases, where the kills fell, and
the results to docs/reliability.md, between its two marks. A single violation ends the run with exit
code 1 and leaves the page unchanged.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from common import Failed, write_between

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- figures: ./dev bench faults -->"
END = "<!-- end of figures -->"
STORE = {
    "kill": "a save killed at each of its file-system calls, and each write torn in half",
    "fail": "each call failing: no space, EIO, quota, read-only, no permission, interrupted, short",
    "persist": "everything failing from each call on",
    "resume": "each call of a start failing",
    "order": "the order of write, fsync, rename and deletion",
}
ACTS = {
    "kill": "SIGKILL instead of the call",
    "tear": "half a write, then SIGKILL",
    "term": "SIGTERM before the call",
    "short": "a short write",
    "EINTR": "an interrupted call",
    "clock": "the wall clock goes back by an hour",
    "clock from then on": "the wall clock goes back by another hour at each call",
    "ENOSPC": "no space left",
    "ENOSPC from then on": "no space left from then on",
    "EIO": "a disk error",
    "EIO from then on": "disk errors from then on",
    "EROFS": "a read-only file system",
    "EROFS from then on": "a read-only file system from then on",
}
PLACES = ["the start", "training", "training, mid-window", "validation", "saving", "the end"]


def call(name: str, command: list[str]) -> str:
    begin = time.monotonic()
    print(f"{name} ...", flush=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{name}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    return done.stdout


def trainers(program: pathlib.Path, test: str, *options: object) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "figures.json"
        call(f"trainers, {test}", [str(program), test, *map(str, options), "--json", str(out)])
        return json.loads(out.read_text())


def sum_of(a: dict, b: dict) -> dict:
    """The sum of both, number by number."""
    return {key: sum_of(a.get(key, {}), b.get(key, {})) if isinstance(a.get(key, b.get(key)), dict)
            else a.get(key, 0) + b.get(key, 0) for key in {**a, **b}}


def stores(tests: pathlib.Path, programs: pathlib.Path, shim: pathlib.Path) -> dict[str, int]:
    counts = {}
    for test in STORE:
        text = call(f"store, {test}", [sys.executable, str(tests / "run.py"), "--program",
                                       str(programs / "fault_save"), "--shim", str(shim), test])
        counts[test] = int(re.search(r"^\w+: (\d+) in all$", text, re.MULTILINE)[1])
    return counts


def table(head: list[str], rows: list[list[object]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(f"{c:,}" if isinstance(c, int) else str(c) for c in row) + " |"
                     for row in cells) + "\n"


def page_of(figures: dict) -> str:
    random, calls, damage, cycles = (figures[k] for k in ("random", "calls", "damage", "cycles"))
    where = random["where"]
    fell = [[place, *(where.get(signal, {}).get(place, 0) for signal in ("SIGKILL", "SIGTERM"))]
            for place in PLACES]
    early, late = cycles["after 100"], cycles["at the end"]
    words = {"1": "once", "2": "twice"}
    killed = ", ".join(f"{count} {words.get(times, times + ' times')}"
                       for times, count in sorted(random["killed"].items()))
    return f"""
Measured on {figures["date"]}; LibTorch {figures["torch"]}; seed {figures["seed"]}. **Violations: none.**

*Random instants.* {random["runs"]} runs, killed {random["kills"]} times ({killed}); of
{random["saved at once"]} starts that ended with exit code 75, each had saved its current step. The
uninterrupted run takes {min(random["steps"])} to {max(random["steps"])} steps and {min(random["seconds"]):.2f} to {max(random["seconds"]):.2f} s. Where the kills fell:

{table(["while the trainer was in", "SIGKILL", "SIGTERM"], fell)}
*Broken calls of a trainer's saves.* {calls["in all"]:,} starts, each with one of the calls of two saves
broken, with and without Async, with `OnFailure::Stop` and `Continue`. {calls["stopped with an error"]:,} ended with the error of that call;
{calls["went on"]:,} went on and logged it; the rest were tolerated, killed or preempted.

{table(["what happened at the call", "tried"], [[text, calls["tried"].get(act, 0)] for act, text in ACTS.items()])}
*Damaged checkpoints of a trainer.* {damage["flipped"]:,} single bits flipped and {damage["cut"]:,} cuts, spread evenly over
the {damage["bytes"]:,} bytes of a checkpoint's files: each was reported, and the previous checkpoint was used. (Every bit and
every byte of a smaller one: tests/checkpoint/checkpoint.cpp.)

*{cycles["cycles"]:,} saves and resumes in one process.*

{table(["", "after 100", "at the end"], [[key, early[key], late[key]] for key in ("threads", "descriptors", "temporaries")] + [["resident memory, KiB", early["KiB"], late["KiB"]]])}
*The store alone*, without LibTorch, in six situations (a first save, a later one, a step saved again, and so on):

{table(["what was tried", "times"], [[text, figures["store"][test]] for test, text in STORE.items()])}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a release build")
    parser.add_argument("--torch", type=pathlib.Path, required=True, help="the LibTorch of that build")
    parser.add_argument("--cxx", help="not needed")
    parser.add_argument("--runs", type=int, default=200, help="runs killed at random instants")
    parser.add_argument("--seed", type=int, default=1, help="what the kills are drawn from")
    parser.add_argument("--stride", type=int, default=1, help="every so many of the broken calls")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    parser.add_argument("--positions", type=int, default=8000, help="bits to flip; half as many cuts")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the figures")
    parser.add_argument("--dry-run", action="store_true", help="leave the page as it is")
    options = parser.parse_args()
    programs = options.build.resolve() / "tests"
    shim, program = programs / "libfrugal_fault.so", programs / "fault_train"
    try:
        version = (options.torch / "version.py").read_text()
        figures = {
            "date": datetime.date.today().isoformat(),
            "torch": re.search(r"__version__ = '([^'+]*)", version)[1],
            "seed": options.seed,
        }
        # Each test is one process with one active thread, so two halves of the longest run in
        # parallel on two cores.
        with ThreadPoolExecutor(options.jobs) as pool:
            halves = [pool.submit(trainers, program, "calls", "--stride", 2 * options.stride,
                                  "--first", half, "--shim", shim) for half in range(2)]
            others = {
                "random": pool.submit(trainers, program, "random", "--runs", options.runs,
                                      "--seed", options.seed),
                "damage": pool.submit(trainers, program, "damage", "--positions", options.positions),
                "cycles": pool.submit(trainers, program, "cycles"),
                "store": pool.submit(stores, ROOT / "tests" / "fault", programs, shim),
            }
            figures["calls"] = sum_of(*(half.result() for half in halves))
            figures |= {name: other.result() for name, other in others.items()}
    except Failed as failure:
        print(f"faults: {failure}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    text = page_of(figures)
    if not options.dry_run:
        write_between(PAGE, BEGIN, END, text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
