# SPDX-License-Identifier: Apache-2.0
"""The effect of each lever on time, memory and loss of three jobs: alone, and combined.

fashion  the convolutional network of ./dev demo on Fashion-MNIST, batches of 128
gpt      a GPT of 10.9 million parameters on the King James Version, byte by byte, 8 windows of 128
deep     a transformer of 24 narrow layers on the same text and in the same windows

Plain is torch::optim::AdamW in FP32 on samples that are stacked one by one. Every cell is a separate
process that trains on the same samples from the same seed. Rounds are interleaved, and each has plain
twice. Time is the processor time of the process over all steps but the first two, as its ratio to plain
of the same round; verdict() interprets the ratios. --instructions also counts the instructions of a
step of fashion with callgrind. Peak bytes are the most that LibTorch's allocator has given out, minus
what was there when training began (weights and data). The loss is that of held-out samples, in FP32,
after the last step.
"""

import json
import os
import pathlib
import random
import re
import shutil
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from common import (Failed, all_told, bible, machine, parse, parser_of, run, told, version_of,
                    write_between)

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "levers.md"
BEGIN, END = "<!-- figures: ./dev bench levers -->", "<!-- end of figures -->"
# Samples that each job trains on, including the first two steps.
SAMPLES = {"fashion": 3840, "gpt": 64, "deep": 48}
TITLES = {
    "fashion": "Fashion-MNIST, convolutional network, batch 128",
    "gpt": "GPT of 10.9 million parameters, King James Version, 8 windows of 128 bytes",
    "deep": "transformer of 24 layers and 256 channels, the same text and windows",
}
# A lever that takes at most this fraction of plain's memory is combined with others.
MEMORY_PAYS = 0.95
# A cell that takes this many times as long as plain runs in only one round.
SLOW = 5
PEAK, LOSS, INSTRUCTIONS = "peak", "loss", "instructions"
# Plain is in each round twice. The second one serves as a lever without effect.
PLAIN, AGAIN = "", "plain, again"
ALONE, TOGETHER = "alone", "together"
LESS, MORE, NONE_SEEN = "less", "more", "no difference seen"

# Steps of the shorter and the longer run under callgrind: one event of every cadence in between.
SHORT, LONG = 2, 6
COUNTED, BATCH = "fashion", 128
# Valgrind takes ten times as long for AVX2 kernels.
SSE = ["env", "ONEDNN_MAX_CPU_ISA=SSE41", "ATEN_CPU_CAPABILITY=default",
       "MKL_ENABLE_INSTRUCTIONS=SSE4_2"]
# Instructions would mislead, see docs/benchmarks.md: threads, a disk, page faults in the kernel,
# slow instructions in the place of as many fast ones, 16-bit kernels that need another processor.
UNCOUNTED = {"prefetch", "checkpoint", "keep", "denormals", "bf16", "fp16", "int8"}


def noise_floor(again: list[float]) -> float:
    """The largest difference of two plain cells in one round, as a ratio of at least 1."""
    return max(max(ratio, 1 / ratio) for ratio in again)


def verdict(ratios: list[float], floor: float) -> str:
    """A difference is seen if every ratio is outside 1 / floor to floor, on the same side."""
    if max(ratios) < 1 / floor:
        return LESS
    if min(ratios) > floor:
        return MORE
    return NONE_SEEN


class Cells:
    """All measurements: every round's figures for each job and each set of levers."""

    def __init__(self, args, folder: pathlib.Path, text: pathlib.Path):
        self.args, self.folder, self.text = args, folder, text
        # The host waits for a GPU, so its processor time says nothing about the GPU's work.
        self.time = "processor" if args.device == "cpu" else "seconds"
        self.told: dict[str, dict[str, list[dict]]] = {job: {} for job in args.jobs}
        self.instructions: dict[str, dict[str, float]] = {job: {} for job in args.jobs}

    def command(self, job: str, levers: str, *flags: str) -> list[str]:
        args = self.args
        alone = ["--levers", levers] if levers not in (PLAIN, AGAIN) else []
        return [str(args.frugal), "--job", job, "--seed", str(args.seed), "--device", args.device,
                "--text", str(self.text), *flags, *alone]

    def measure(self, job: str, levers: str, stage: str, turn: int) -> None:
        samples = int(self.args.samples * SAMPLES[job])
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            figures = told(self.command(
                job, levers, "--samples", str(samples), "--threads", str(self.args.threads),
                "--data", str(self.args.data), "--run", folder))
        self.told[job].setdefault(levers, []).append(
            {"stage": stage, "round": turn + 1, **figures})

    def rounds(self, wanted: dict[str, list[str]], stage: str) -> None:
        """Each round has every cell once, in its own order, and the plain recipe twice."""
        order = random.Random(self.args.seed)
        for turn in range(self.args.rounds):
            cells = [(job, levers) for job in wanted if wanted[job]
                     for levers in [PLAIN, AGAIN, *wanted[job]]]
            for at, (job, levers) in enumerate(order.sample(cells, len(cells))):
                # One round shows the order of magnitude. The minutes go into the others.
                if turn and min(self.ratios(job, levers, stage)) > SLOW:
                    continue
                print(f"{stage}, round {turn + 1}/{self.args.rounds}, {at + 1}/{len(cells)}: {job} "
                      f"{levers or 'plain'}", file=sys.stderr)
                self.measure(job, levers, stage, turn)

    def count(self, job: str, all_levers: list[str]) -> None:
        """Instructions per step of one thread. Load does not change counts: cells run in parallel."""
        wanted = [levers for levers in all_levers if not {*levers.split(",")} & UNCOUNTED]

        def total(levers: str, steps: int) -> int:
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                said = run([*SSE, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                            *self.command(job, levers, "--samples", str(steps * BATCH), "--threads",
                                          "1", "--warmup", "1", "--no-loss", "--data",
                                          str(self.args.data), "--run", folder)])
            found = re.search(r"Collected : (\d+)", said)
            if not found:
                raise Failed("callgrind printed no count.")
            return int(found[1])

        def per_step(levers: str) -> float:
            print(f"instructions: {job} {levers or 'plain'}", file=sys.stderr)
            return (total(levers, LONG) - total(levers, SHORT)) / (LONG - SHORT)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            self.instructions[job] = dict(zip(wanted, pool.map(per_step, wanted)))

    def of(self, job: str, levers: str, stage: str) -> list[dict]:
        return [cell for cell in self.told[job].get(levers, []) if cell["stage"] == stage]

    def ratios(self, job: str, levers: str, stage: str) -> list[float]:
        """Ratios of time, to plain of the same round."""
        plain = {cell["round"]: cell[self.time] for cell in self.of(job, PLAIN, stage)}
        return [cell[self.time] / plain[cell["round"]] for cell in self.of(job, levers, stage)
                if cell["round"] in plain]

    def verdict(self, job: str, levers: str, stage: str) -> str:
        return verdict(self.ratios(job, levers, stage),
                       noise_floor(self.ratios(job, AGAIN, stage)))

    def figure(self, job: str, levers: str, stage: str, figure: str) -> float:
        return statistics.median(cell[figure] for cell in self.of(job, levers, stage))

    def write(self, to: pathlib.Path | None) -> None:
        if to:
            to.write_text(json.dumps({"cells": self.told, INSTRUCTIONS: self.instructions}, indent=1)
                          + "\n")


def chains(cells: Cells, job: str, rows: list[dict]) -> list[str]:
    """The levers that pay alone, best first, each with all before it: for time, for memory."""
    names = {saves: [row["name"] for row in rows if row["saves"] == saves]
             for saves in ("time", "memory")}
    plain = cells.figure(job, PLAIN, ALONE, PEAK)
    time = {name: statistics.median(cells.ratios(job, name, ALONE)) for name in names["time"]
            if cells.verdict(job, name, ALONE) == LESS}
    memory = {name: cells.figure(job, name, ALONE, PEAK) / plain for name in names["memory"]}
    memory = {name: ratio for name, ratio in memory.items() if ratio <= MEMORY_PAYS}
    return [",".join(paying[:n]) for paying in (sorted(time, key=time.get),
                                                sorted(memory, key=memory.get))
            for n in range(2, len(paying) + 1)]


def head(cells: Cells, job: str) -> list[str]:
    time = "processor time" if cells.time == "processor" else "seconds"
    return ["", f"{time}, of plain", "verdict",
            *(["instructions, of plain"] if cells.instructions[job] else []),
            "MiB", "of plain", "loss"]


def table(cells: Cells, job: str, keys: list[tuple[str, str, str]]) -> list[list[str]]:
    rows = []
    counts = cells.instructions[job]
    for levers, stage, text in keys:
        spread = said = of_plain = ""
        counted = []
        if counts:
            counted = [f"{counts[levers] / counts[PLAIN]:.4f}" if levers in counts else "-"]
        if levers == PLAIN:
            counted = [""] * len(counted)
        else:
            ratios = cells.ratios(job, levers, stage)
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            if len(ratios) == 1:
                spread = f"{ratios[0]:.3f}, one round"
            said = cells.verdict(job, levers, stage)
            if levers == AGAIN:
                floor = noise_floor(ratios)
                said = f"the floor: {1 / floor:.3f} to {floor:.3f}"
            plain = cells.figure(job, PLAIN, stage, PEAK)
            of_plain = f"{cells.figure(job, levers, stage, PEAK) / plain:.3f}"
        rows.append([text, spread, said, *counted,
                     f"{cells.figure(job, levers, stage, PEAK) / 2**20:.1f}", of_plain,
                     f"{cells.figure(job, levers, stage, LOSS):.4f}"])
    return rows


def show(title: str, rows: list[list[str]]) -> None:
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, wide)).rstrip())


def markdown(rows: list[list[str]]) -> str:
    first, *rows = rows
    rows = [[f"`{row[0]}`" if "<" in row[0] else row[0], *row[1:]] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [first, ["---"] * len(first), *rows])


def main() -> int:
    parser = parser_of(__doc__, "levers")
    parser.add_argument("--jobs", default=",".join(SAMPLES), help="some of these")
    parser.add_argument("--levers", help="only these, by name; a+b is a with b")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=float, default=1.0, help="so many times the usual number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--machine", help="its name in the table; found out by default")
    parser.add_argument("--threads", type=int, default=1, help="0: as many as LibTorch takes")
    parser.add_argument("--instructions", action="store_true",
                        help=f"count those of {COUNTED} with callgrind as well")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--text", type=pathlib.Path, help="in place of the King James Version")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/levers.md")
    args = parse(parser)
    args.jobs = args.jobs.split(",")
    if not set(args.jobs) <= set(SAMPLES) or args.rounds < 1:
        parser.error(f"jobs are {', '.join(SAMPLES)}, and there is at least one round.")
    if args.instructions and (args.device != "cpu" or COUNTED not in args.jobs):
        parser.error(f"--instructions is for the job {COUNTED} on the CPU.")
    if args.instructions and not shutil.which("valgrind"):
        parser.error("--instructions needs valgrind. As root: apt-get install valgrind.")
    if args.write and (args.levers or set(args.jobs) != set(SAMPLES) or args.rounds < 3):
        parser.error("--write is for all jobs, all levers and three rounds or more: two rounds see "
                     "differences that are not there.")
    # Threads that wait at a barrier would spin, and their processor time would count.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    name = args.machine or (machine() if args.device == "cpu" else f"{args.device}; {machine()}")
    try:
        with tempfile.TemporaryDirectory(prefix="bench-levers-") as folder:
            folder = pathlib.Path(folder)
            rows = all_told([str(args.frugal), "--list"])
            together = []
            if args.levers:
                chosen = args.levers.split(",")
                together = [name.replace("+", ",") for name in chosen if "+" in name]
                known = {row["name"] for row in rows}
                unknown = {part for name in chosen for part in name.split("+")} - known
                if unknown:
                    raise Failed(f"there is no lever {', '.join(sorted(unknown))}. "
                                 f"There are {', '.join(sorted(known))}.")
            alone = [row for row in rows if not args.levers or row["name"] in chosen]
            cells = Cells(args, folder, args.text or bible(folder))
            cells.rounds({job: [row["name"] for row in alone] for job in args.jobs}, ALONE)
            chained = {job: together if args.levers else chains(cells, job, rows)
                       for job in args.jobs}
            cells.rounds(chained, TOGETHER)
            cells.write(args.json)
            if args.instructions:
                cells.count(COUNTED, [PLAIN, *(row["name"] for row in alone), *chained[COUNTED]])
                cells.write(args.json)
    except (Failed, OSError) as error:
        print(f"levers: {error}", file=sys.stderr)
        return 2
    text = {row["name"]: row["text"] for row in rows}
    tables = {}
    for job in args.jobs:
        keys = [(PLAIN, ALONE, "plain"), (AGAIN, ALONE, AGAIN),
                *((row["name"], ALONE, row["text"]) for row in alone)]
        if chained[job]:
            keys.append((AGAIN, TOGETHER, f"{AGAIN}, in the rounds of the rows below"))
        for key in chained[job]:
            names = key.split(",")
            keys.append((key, TOGETHER, f"{text[names[0]]} and {text[names[1]]}"
                         if len(names) == 2 else f"... and {text[names[-1]]}"))
        tables[job] = [head(cells, job), *table(cells, job, keys)]
        show(TITLES[job], tables[job])
    if args.write:
        threads = "one thread" if args.threads == 1 else f"{args.threads or 'all'} threads"
        written = (f"\nOn {name}; LibTorch {version_of(args.torch)}; {args.rounds} rounds, "
                   f"{threads}.\n")
        for job in args.jobs:
            steps = int(args.samples * SAMPLES[job])
            written += f"\n*{TITLES[job]}*; {steps:,} samples.\n\n{markdown(tables[job])}\n"
        write_between(PAGE, BEGIN, END, written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
