# SPDX-License-Identifier: Apache-2.0
"""What the activations of 24 transformer blocks hold, and what a step takes, plainly and with less.

Bytes are counted where LibTorch reports what its CPU allocator does: at most during forward and
backward, without what was there before (weights, gradients, the optimizer's state). They are the same in
every run. Seconds are of forward and backward, the median over all rounds; each round is a process of
its own that measures all recipes, one after the other. On a machine that does other things as well,
seconds of the processor with --threads 1 say more than those of the clock.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

RECIPES = {
    "plain": "no policy",
    "auto": "Recompute<Segments<Auto>>",
    "segments": "Recompute<Segments<8>>",
    "modules": "Recompute<Where<OfType<Block>>>",
    "half": "Activations<Half>",
    "both": "Recompute<Segments<8>>, Activations<Half>",
}
# recipe, figure, at most so many times the plain one
BARS = [("auto", "peak", 0.20), ("auto", "seconds", 1.35), ("half", "peak", 0.55)]


class Failed(Exception):
    """One sentence for the reader; main() prints it."""


def measure(args) -> dict[str, dict[str, list[float]]]:
    told: dict[str, dict[str, list[float]]] = {
        name: {"held": [], "peak": [], "seconds": [], "processor": []} for name in RECIPES
    }
    for turn in range(args.rounds):
        print(f"round {turn + 1}/{args.rounds}", file=sys.stderr)
        done = subprocess.run(
            [str(args.frugal), "--layers", str(args.layers), "--steps", str(args.steps),
             "--threads", str(args.threads)],  # fmt: skip
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Failed(f"{args.frugal.name} ended with exit code {done.returncode}:\n{done.stderr}")
        for line in done.stdout.splitlines():
            said = json.loads(line)
            for figure, values in told[said["recipe"]].items():
                values += said[figure]
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frugal", type=pathlib.Path, help="the program activations")
    parser.add_argument("--build", type=pathlib.Path, help="or the build folder that holds it")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--steps", type=int, default=3, help="of each recipe, in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as LibTorch takes")
    parser.add_argument("--json", type=pathlib.Path, help="file for every figure")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is not met")
    for other in ("--torch", "--cxx"):
        parser.add_argument(other, help="taken and not needed: every benchmark gets it")
    args = parser.parse_args()
    if args.frugal is None and args.build is None:
        parser.error("say where the program is, with --frugal or --build.")
    args.frugal = (args.frugal or args.build / "bench" / "activations").resolve()
    try:
        told = measure(args)
    except (Failed, OSError) as error:
        print(f"activations: {error}", file=sys.stderr)
        return 2
    medians = {
        name: {figure: statistics.median(values) for figure, values in figures.items()}
        for name, figures in told.items()
    }
    plain = medians["plain"]
    print(f"{args.layers} blocks; load of the machine {os.getloadavg()[0]:.1f}")
    columns = ("MiB held", "MiB peak", "of plain", "seconds", "of plain", "processor", "of plain")
    print(f"{'':42}" + "".join(f"{column:>10}" for column in columns))
    for name, text in RECIPES.items():
        own = medians[name]
        print(
            f"{text:42}{own['held'] / 2**20:10.1f}{own['peak'] / 2**20:10.1f}"
            f"{own['peak'] / plain['peak']:10.3f}{own['seconds']:10.3f}"
            f"{own['seconds'] / plain['seconds']:10.3f}"
            f"{own['processor']:10.3f}{own['processor'] / plain['processor']:10.3f}"
        )
    met = True
    for name, figure, bar in BARS:
        ratio = medians[name][figure] / plain[figure]
        met = met and ratio <= bar
        verdict = "met" if ratio <= bar else "NOT met"
        print(f"bar: {figure} of {RECIPES[name]}, at most {bar} of plain: {ratio:.3f}, {verdict}")
    if args.json:
        args.json.write_text(json.dumps(told, indent=2) + "\n")
    return 1 if args.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
