# SPDX-License-Identifier: Apache-2.0
"""Memory of the activations of 24 transformer blocks, and time of a step, plain and with less memory.

Bytes are counted in the reports of LibTorch's CPU allocator: the peak during forward and backward,
minus what was there before (weights, gradients, the optimizer's state). They are the same in every
run. Seconds are of forward and backward, the median over all rounds; each round is one process that
measures all recipes in turn. On a busy machine, processor seconds with --threads 1 are more reliable
than wall time.
"""

import json
import os
import statistics
import sys

from common import Failed, add_strict, all_told, judge, parse, parser_of

RECIPES = {
    "plain": "no policy",
    "auto": "Recompute<Segments<Auto>>",
    "segments": "Recompute<Segments<8>>",
    "modules": "Recompute<Modules<OfType<Block>>>",
    "half": "Activations<BF16>",
    "both": "Recompute<Segments<8>>, Activations<BF16>",
}
# recipe, figure, largest ratio to the plain one
BARS = [("auto", "peak", 0.20), ("auto", "seconds", 1.35), ("half", "peak", 0.55)]


def measure(args) -> dict[str, dict[str, list[float]]]:
    told: dict[str, dict[str, list[float]]] = {
        name: {"held": [], "peak": [], "seconds": [], "processor": []} for name in RECIPES
    }
    for turn in range(args.rounds):
        print(f"round {turn + 1}/{args.rounds}", file=sys.stderr)
        for said in all_told([str(args.frugal), "--layers", str(args.layers), "--steps", str(args.steps),
                              "--threads", str(args.threads)]):  # fmt: skip
            for figure, values in told[said["recipe"]].items():
                values += said[figure]
    return told


def main() -> int:
    parser = parser_of(__doc__, "activations")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--steps", type=int, default=3, help="of each recipe, in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as LibTorch takes")
    add_strict(parser)
    args = parse(parser)
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
        met = judge(f"{figure} of {RECIPES[name]} over plain", ratio, bar) and met
    if args.json:
        args.json.write_text(json.dumps(told, indent=2) + "\n")
    return 1 if args.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
