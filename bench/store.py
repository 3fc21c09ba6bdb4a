# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's safetensors files with dd, torch.save and Python's safetensors.

All write to one disk, and the clock stops when fsync returns; frugal hashes what it writes, the others
do not. Every run is a separate process that times itself, without its start. The order is shuffled in
every round, because the speed of a shared machine's disk varies, and one run may exhaust what the next
needs. This file needs nothing but Python; the rivals need requirements/peers.txt.
"""

import argparse
import json
import os
import pathlib
import random
import re
import statistics
import sys
import tempfile
import time

from common import Failed, add_strict, judge, parse, parser_of, run, told

HERE = pathlib.Path(__file__).resolve().parent
ORDER = random.Random(1)
READS = ("open", "touch", "copy")

# frugal's speed relative to the rival's must be at least this. dd copies the same bytes; dd of
# zeros is also shown, because a virtual disk may detect zeros.
WRITE_BARS = {"dd": 0.9, "torch_save": 1.0, "save_file": 1.0}
READ_BAR = 1.0


def dd(source: str, to: pathlib.Path, mib: int) -> float:
    said = run(["dd", f"if={source}", f"of={to}", "bs=1M", f"count={mib}", "iflag=fullblock", "conv=fsync"])
    return float(re.search(r"copied, ([0-9.e-]+) s", said)[1])


def measure_writing(args, folder: pathlib.Path, source: pathlib.Path) -> dict[str, list[float]]:
    python = [sys.executable, str(HERE / "store_python.py")]
    to = folder / "written"
    ways = {
        "frugal": lambda: told([str(args.frugal), "write", str(to), "--mib", str(args.mib),
                                "--tensors", str(args.tensors)])["seconds"],
        "dd": lambda: dd(str(source), to, args.mib),
        "dd of zeros": lambda: dd("/dev/zero", to, args.mib),
        "torch_save": lambda: told([*python, "torch_save", str(to), str(source)])["seconds"],
        "save_file": lambda: told([*python, "save_file", str(to), str(source)])["seconds"],
    }  # fmt: skip
    times = {name: [] for name in ways}
    for turn in range(args.rounds):
        for name in ORDER.sample(list(ways), len(ways)):
            print(f"writing, round {turn + 1}/{args.rounds}: {name}", file=sys.stderr)
            time.sleep(args.pause)
            times[name].append(ways[name]())
            to.unlink()
            os.sync()  # the cost of removing it must not count
    return times


def measure_reading(args, source: pathlib.Path) -> dict[str, dict[str, list[float]]]:
    python = [sys.executable, str(HERE / "store_python.py")]
    sides = {"frugal": [str(args.frugal)], "load_file": python}
    times = {how: {name: [] for name in sides} for how in READS}
    for turn in range(args.rounds):
        for how in READS:
            checks = set()
            for name in ORDER.sample(list(sides), len(sides)):
                print(f"reading, round {turn + 1}/{args.rounds}: {name}, {how}", file=sys.stderr)
                said = told([*sides[name], how, str(source)])
                times[how][name].append(said["seconds"])
                checks.add(said["check"])
            if len(checks) != 1:
                raise Failed(f"the two sides did not read the same ({how}).")
    return times


def show(title: str, times: dict[str, list[float]], bars: dict[str, float]) -> list[dict]:
    print(f"\n{title}\n{'':14}{'median':>10}{'least':>10}{'greatest':>10}{'frugal is':>11}")
    medians = {name: statistics.median(values) for name, values in times.items()}
    out = []
    for name, values in times.items():
        ratio = medians[name] / medians["frugal"]
        shown = "" if name == "frugal" else f"{ratio:.2f}"
        print(f"{name:14}{medians[name]:10.4f}{min(values):10.4f}{max(values):10.4f}{shown:>11}")
        if name in bars:
            out.append({"what": title, "over": name, "bar": bars[name], "ratio": ratio,
                        "met": ratio >= bars[name]})  # fmt: skip
    for bar in out:
        judge(f"speed over that of {bar['over']}", bar["ratio"], bar["bar"], "least")
    return out


def arguments() -> argparse.Namespace:
    parser = parser_of(__doc__, "bench_store")
    parser.add_argument("--folder", type=pathlib.Path, default=".", help="on the disk to measure")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--tensors", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds before each writing")
    add_strict(parser)
    args = parse(parser)
    if args.rounds < 1 or args.mib < 1:
        parser.error("--rounds and --mib must be positive.")
    return args


def main() -> int:
    args = arguments()
    try:
        with tempfile.TemporaryDirectory(dir=args.folder, prefix="bench-store-") as name:
            folder = pathlib.Path(name)
            source = folder / "source.safetensors"
            told([str(args.frugal), "write", str(source), "--mib", str(args.mib),
                  "--tensors", str(args.tensors)])  # fmt: skip
            told([str(args.frugal), "touch", str(source)])  # now it is in the page cache
            reading = measure_reading(args, source)
            writing = measure_writing(args, folder, source)
    except (Failed, OSError) as error:
        print(f"store: {error}", file=sys.stderr)
        return 2
    judged = show(f"writing {args.mib} MiB with fsync, seconds", writing, WRITE_BARS)
    for how in READS:
        title = {"open": "opening", "touch": "touching every page of",
                 "copy": "copying every tensor of"}[how]  # fmt: skip
        judged += show(f"{title} {args.mib} MiB in the page cache, seconds", reading[how],
                       {"load_file": READ_BAR})  # fmt: skip
    if args.json:
        report = {"writing": writing, "reading": reading, "bars": judged}
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if args.strict and not all(bar["met"] for bar in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
