#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of frugal's loop compared with a hand-written loop for the same recipe.

For each recipe (rivals.hpp) it reports, per optimizer step, for frugal and for its rival:
instructions (callgrind), allocations of the whole process, operators that LibTorch dispatched, and
time (Google Benchmark, interleaved). Counts are the difference of two runs of different length,
which cancels start-up. Counts are exact and have bars; time is shown without one.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

RECIPES = {
    "none": "Optimize<AdamW>",
    "bf16": "Optimize<AdamW>, Precision<BF16>, Accumulate<4>",
    "full": "Optimize<AdamW>, ClipNorm<>, Schedule<Warmup, Cosine>, Log<Every<100>>",
    "saves": "Optimize<AdamW>, Checkpoint<Every<1000000>, Async>: the steps between two saves",
    "fp16": "Optimize<AdamW>, Precision<FP16>",
    "value": "Optimize<AdamW>, ClipValue<0.5>",
    "adaptive": "Optimize<AdamW>, ClipAdaptive<0.01>",
    "ema": "Optimize<AdamW>, Average<Ema<0.999>>",
    "swa": "Optimize<AdamW>, Average<Swa<From<10>, Every<10>>>",
    "recompute": "Optimize<AdamW>, Recompute<Segments<2>>, of a list of four layers",
    "half": "Optimize<AdamW>, Activations<BF16>, on the same network",
    "speed": "Optimize<AdamW>, Throughput<Every<50>>",
    "profile": "Optimize<AdamW>, Profile<Seconds<3>, Every<1000000>>: the steps between two windows",
    "sinks": "Optimize<AdamW>, Log, Csv, TensorBoard, MlperfLog, Prometheus, PrometheusEndpoint, "
             "OnMetrics, each with Every<100>",
    "stop": "Optimize<AdamW>, Validate<Every<20>, Accuracy>, EarlyStop<Patience<100>>",
    "audit": "Optimize<AdamW>, Audit<BitExact>: the steps within an epoch",
}
# Its time is that of two saves to a disk.
UNTIMED = {"saves"}
# The hand-written loop of "sinks" writes nothing: its bar is for what all of them cost together.
INSTRUCTION_BARS = {name: 1.001 for name in RECIPES} | {"sinks": 1.005}
ALLOCATIONS_SHOWN = {"sinks"}
# Steps of the shorter and the longer run: within one epoch, with one period of every cadence in
# between. The first measurement of "speed", at step 50, sets up what later ones reuse.
SHORT = {name: 40 for name in RECIPES} | {"bf16": 10, "speed": 60}
LONG = {name: 140 for name in RECIPES} | {"bf16": 35, "speed": 160}


class Failed(Exception):
    """One sentence for the reader; main() prints it."""


def call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise Failed(f"`{' '.join(command)}` ended with exit code {done.returncode}:\n{tail}")
    return done.stdout + done.stderr


# How long glibc searches its bins depends on the order of all earlier frees, and differs by 0.2% of
# a step between two programs with equal allocations. Allocations are counted and compared
# separately; their cost is excluded from the instructions.
MALLOC = re.compile(r"\b(_int_malloc|_int_free|_int_realloc|_int_memalign|malloc_consolidate|"
                    r"unlink_chunk|sysmalloc|systrim|_int_free_\w+)\b")


def inside_malloc(callgrind_file: pathlib.Path) -> int:
    text = call(["callgrind_annotate", "--threshold=100", str(callgrind_file)])
    rows = re.findall(r"^ *([\d,]+) (?:\([^)]*\))? *(\S.*)$", text, re.MULTILINE)
    inside = [int(count.replace(",", "")) for count, name in rows if MALLOC.search(name)]
    if not inside:
        raise Failed("callgrind_annotate names no function of malloc: is libc6-dbg installed?")
    return sum(inside)


class Counter:
    """Runs the counting program; every figure is per step."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path):
        self.program, self.folder = program, folder

    def command(self, recipe: str, loop: str, steps: int) -> list[str]:
        # Both logs get names of one length: the name itself is copied and must not count.
        log = self.folder / f"log-{loop:_<6}.jsonl"
        log.unlink(missing_ok=True)
        return [str(self.program), "--recipe", recipe, "--loop", loop, "--steps", str(steps),
                "--log", str(log)]

    def per_step(self, recipe: str, total) -> float:
        short, long = SHORT[recipe], LONG[recipe]
        return (total(long) - total(short)) / (long - short)

    def counts(self, recipe: str, loop: str) -> dict:
        def field(name: str, flags: list[str]):
            return lambda steps: json.loads(call(self.command(recipe, loop, steps) + flags))[name]

        return {
            "allocations": self.per_step(recipe, field("allocations", [])),
            "operators": self.per_step(recipe, field("operators", ["--operators"])),
            "added_bytes": field("added_bytes", [])(1),
        }

    def instructions(self, recipe: str, loop: str) -> float:
        def total(steps: int) -> int:
            # The file is not used; callgrind writes one to the current folder.
            out = self.folder / "callgrind.out"
            text = call(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
                        + self.command(recipe, loop, steps) + ["--slow-clock", "100"])
            found = re.search(r"Collected : (\d+)", text)
            if not found:
                raise Failed("callgrind printed no count: is valgrind installed?")
            return int(found.group(1)) - inside_malloc(out)

        return self.per_step(recipe, total)


def times(program: pathlib.Path, recipes: list[str], repetitions: int) -> dict[str, list[float]]:
    text = call([str(program), "--benchmark_format=json", "--benchmark_min_time=0.2",
                 f"--benchmark_filter=^({'|'.join(recipes)})/",
                 f"--benchmark_repetitions={repetitions}",
                 "--benchmark_enable_random_interleaving=true"])
    found: dict[str, list[float]] = {}
    for entry in json.loads(text[text.index("{") :])["benchmarks"]:
        if entry["run_type"] == "iteration":
            found.setdefault(entry["run_name"], []).append(entry["seconds_per_step"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--torch", help="not needed here")
    parser.add_argument("--cxx", help="not needed here")
    parser.add_argument("--only", choices=["counts", "instructions", "time"], action="append")
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--strict", action="store_true", help="fail when a bar is missed")
    args = parser.parse_args()
    parts = args.only or ["counts", "instructions", "time"]

    program = args.build / "bench" / "overhead_counts"
    timer = args.build / "bench" / "bench_overhead"
    for needed in (program, timer):
        if not needed.exists():
            raise Failed(f"{needed} is not there. Build with FRUGAL_BUILD_BENCH=ON.")
    rows, missed = [], []

    def row(recipe: str, what: str, frugal: float, rival: float, bar: str, met: bool | None):
        rows.append({"recipe": recipe, "figure": what, "frugal": frugal, "rival": rival,
                     "ratio": frugal / rival if rival else None, "met": met})
        verdict = "" if met is None else f"  {bar}: {'met' if met else 'NOT MET'}"
        ratio = f"{frugal / rival:8.5f}" if rival else "       -"
        print(f"{recipe:9} {what:22} {frugal:14,.6g} {rival:14,.6g} {ratio}{verdict}", flush=True)
        if met is False:
            missed.append(f"{recipe} {what}")

    for recipe in args.recipes.split(","):
        print(f"# {recipe}: {RECIPES[recipe]}")
    print(f"{'':9} {'per step':22} {'frugal':>14} {'rival':>14}    ratio")
    with tempfile.TemporaryDirectory() as name:
        counter = Counter(program, pathlib.Path(name))
        for recipe in args.recipes.split(","):
            if "counts" in parts:
                ours, theirs = counter.counts(recipe, "frugal"), counter.counts(recipe, "rival")
                for what in ("allocations", "operators"):
                    judged = what != "allocations" or recipe not in ALLOCATIONS_SHOWN
                    row(recipe, what, ours[what], theirs[what], "no more",
                        ours[what] <= theirs[what] if judged else None)
                if recipe == "none":
                    row(recipe, "bytes of policies", ours["added_bytes"], 0, "at most 16",
                        ours["added_bytes"] <= 16)
            if "instructions" in parts:
                ours, theirs = (counter.instructions(recipe, loop) for loop in ("frugal", "rival"))
                bar = INSTRUCTION_BARS[recipe]
                row(recipe, "instructions", ours, theirs, f"at most {bar}", ours <= bar * theirs)
    if "time" in parts:
        timed = [recipe for recipe in args.recipes.split(",") if recipe not in UNTIMED]
        found = times(timer, timed, args.repetitions) if timed else {}
        for recipe in timed:
            ours, theirs = (statistics.median(found[f"{recipe}/{loop}"]) for loop in ("frugal", "rival"))
            row(recipe, "microseconds", ours * 1e6, theirs * 1e6, "", None)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if missed:
        print("bars not met: " + ", ".join(missed))
    return 1 if missed and args.strict else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"frugal: {failed}")
    except KeyboardInterrupt:
        sys.exit(130)
