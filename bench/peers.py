# SPDX-License-Identifier: Apache-2.0
"""Compares frugal with ways to train the same small network from Python.

Every rival runs in a separate process with one thread, makes the same number of steps, and prints one
JSON line (peers_common.py has the contract). The rounds are interleaved and their order rotates, so
that changes in the machine's speed affect all of them. This file needs nothing but Python; the rivals
need requirements/peers.txt.
"""

import argparse
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")  # the path in Debian's package

PEERS = {
    "plain": ["peers_plain.py"],
    "tuned": ["peers_tuned.py"],
    "compiled": ["peers_tuned.py", "--compile"],
    "lightning": ["peers_lightning.py"],
    "accelerate": ["peers_accelerate.py"],
}
PACKAGES = ("torch", "numpy", "lightning", "accelerate")

# frugal must be this many times as fast, at this batch size. "tuned" is the faster of the eager and
# the compiled form.
BARS = {"tuned": 1.5, "plain": 3.0, "lightning": 3.5}
BAR_BATCH = 32

# The same job in another order of the data ends some percent apart; a loop that forgets to zero its
# gradients or to step does not.
LOSS_SPREAD = 1.25

WARMUP_SAMPLES = 16_000
CALIBRATION_STEPS = 300


class Failed(Exception):
    """One sentence for the reader; main() prints it."""


def run(command: list[str], args, batch: int, steps: int) -> dict:
    line = command + ["--data", str(args.data), "--batch", str(batch), "--steps", str(steps)]
    line += ["--warmup", str(max(1, WARMUP_SAMPLES // batch))]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | threads | quiet)
    shown = " ".join(line)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise Failed(f"`{shown}` ended with exit code {done.returncode}:\n{tail}")
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        told = answer["steps"], answer["batch"]
        rate, loss = float(answer["samples_per_second"]), float(answer["loss"])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise Failed(f"`{shown}` did not end with the JSON line of the contract: {error!r}") from error
    if told != (steps, batch):
        raise Failed(f"`{shown}` says that it ran {told[0]} steps of {told[1]} samples.")
    if not (math.isfinite(loss) and math.isfinite(rate) and rate > 0):
        raise Failed(f"`{shown}` answers with loss {loss} and {rate} samples/s.")
    return answer


def measure(rivals: dict, args, batch: int) -> dict:
    """Rates and final losses of every rival, one of each per round."""
    rate = run(rivals["plain"], args, batch, CALIBRATION_STEPS)["samples_per_second"]
    steps = max(CALIBRATION_STEPS, math.ceil(args.seconds * rate / batch))
    names = list(rivals)
    result = {name: {"samples_per_second": [], "losses": []} for name in names}
    for i in range(args.rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            print(f"batch {batch}, round {i + 1}/{args.rounds}: {name}", file=sys.stderr)
            answer = run(rivals[name], args, batch, steps)
            result[name]["samples_per_second"].append(answer["samples_per_second"])
            result[name]["losses"].append(answer["loss"])
    for entry in result.values():
        entry["median"] = statistics.median(entry["samples_per_second"])
        entry["loss"] = statistics.median(entry["losses"])
    return {"batch": batch, "steps": steps, "rivals": result}


def judge(block: dict) -> None:
    """Adds the ratios, the bars and the check of equal losses to a block of figures."""
    medians = {name: entry["median"] for name, entry in block["rivals"].items()}
    block["best_tuned"] = max(("tuned", "compiled"), key=medians.__getitem__)
    ratios = {n: medians["frugal"] / rate for n, rate in medians.items() if n != "frugal"}
    block["ratios"] = ratios
    block["bars"] = []
    if block["batch"] == BAR_BATCH:
        for name, bar in BARS.items():
            ratio = ratios[block["best_tuned"] if name == "tuned" else name]
            block["bars"].append({"over": name, "bar": bar, "ratio": ratio, "met": ratio >= bar})
    losses = [entry["loss"] for entry in block["rivals"].values()]
    block["learned_the_same"] = max(losses) <= LOSS_SPREAD * min(losses)


def show(block: dict) -> None:
    print(f"\nbatch {block['batch']}, {block['steps']} steps, one thread, samples/s")
    print(f"{'':12}{'median':>10}{'min':>10}{'max':>10}{'frugal/it':>11}{'final loss':>12}")
    for name, entry in block["rivals"].items():
        rates = entry["samples_per_second"]
        ratio = f"{block['ratios'][name]:.2f}" if name in block["ratios"] else ""
        mark = " (the faster tuned form)" if name == block["best_tuned"] else ""
        print(
            f"{name:12}{entry['median']:10.0f}{min(rates):10.0f}{max(rates):10.0f}{ratio:>11}"
            f"{entry['loss']:12.4f}{mark}"
        )
    for bar in block["bars"]:
        verdict = "met" if bar["met"] else "NOT met"
        print(f"bar: {bar['bar']} times {bar['over']}: {bar['ratio']:.2f}, {verdict}")
    verdict = "yes" if block["learned_the_same"] else "NO: the losses differ too much to compare"
    print(f"all learned the same: {verdict}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frugal", type=pathlib.Path, help="the bench_peers program")
    parser.add_argument("--build", type=pathlib.Path, help="or the build folder that holds it")
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="folder of the IDX files")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one plain run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", default="32,128", help="batch sizes, with commas between")
    parser.add_argument("--json", type=pathlib.Path, help="file for every figure")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is not met")
    for other in ("--torch", "--cxx"):
        parser.add_argument(other, help="taken and not needed: every benchmark gets it")
    args = parser.parse_args()
    if args.frugal is None:
        if args.build is None:
            parser.error("say where bench_peers is, with --frugal or --build.")
        args.frugal = args.build / "bench" / "bench_peers"
    if args.rounds < 1 or args.seconds <= 0:
        parser.error("--rounds and --seconds must be positive.")
    try:
        args.batches = [int(size) for size in args.batches.split(",")]
    except ValueError:
        parser.error("--batches takes whole numbers with commas between, as in 32,128.")
    return args


def versions() -> dict:
    try:
        return {name: importlib.metadata.version(name) for name in PACKAGES}
    except importlib.metadata.PackageNotFoundError as error:
        raise Failed(
            f"{sys.executable} lacks {error.name}. Install requirements/peers.txt into a virtual "
            "environment and run this with its python."
        ) from error


def check(args) -> None:
    if not os.access(args.frugal, os.X_OK) or args.frugal.is_dir():
        raise Failed(f"{args.frugal} is no program. Build bench_peers and give its path.")
    if not (args.data / "train-images-idx3-ubyte.gz").is_file():
        raise Failed(
            f"{args.data} holds no train-images-idx3-ubyte.gz. Install dataset-fashion-mnist or "
            "name the folder of the data."
        )


def main() -> int:
    args = parse()
    report = {"versions": {"python": platform.python_version()}, "seconds": args.seconds}
    try:
        check(args)
        report["versions"] |= versions()
        python = {n: [sys.executable, str(HERE / c[0]), *c[1:]] for n, c in PEERS.items()}
        rivals = python | {"frugal": [str(args.frugal.resolve())]}
        report["blocks"] = [measure(rivals, args, batch) for batch in args.batches]
    except Failed as error:
        print(f"peers: {error}", file=sys.stderr)
        return 2
    for block in report["blocks"]:
        judge(block)
        show(block)
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    if not all(block["learned_the_same"] for block in report["blocks"]):
        return 1
    bars = [bar["met"] for block in report["blocks"] for bar in block["bars"]]
    return 1 if args.strict and not all(bars) else 0


if __name__ == "__main__":
    sys.exit(main())
