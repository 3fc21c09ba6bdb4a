# SPDX-License-Identifier: Apache-2.0
"""Compares Checkpoint with torch.save and Python's safetensors on one state: module and AdamW.

What Async lets the step pay, beside one memcpy of the state and what torch.save blocks; and how long
a resume takes, hashes included, beside load_file of the same files. Every run is a process of its own
that times itself, without its start; the files are in the page cache for both sides. This file itself
needs nothing but Python; the rivals need requirements/peers.txt.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

RIVAL = """
import json, sys, time
import safetensors.torch, torch
what, *paths = sys.argv[1:]
if what == "load_file":
    torch.zeros(8192).clone()
    begun = time.perf_counter()
    kept = [{k: t.clone() for k, t in safetensors.torch.load_file(path).items()} for path in paths]
    print(json.dumps({"seconds": time.perf_counter() - begun}))
else:
    state = [{k: t.clone() for k, t in safetensors.torch.load_file(p).items()} for p in paths[1:]]
    begun = time.perf_counter()
    torch.save(state, paths[0])
    print(json.dumps({"seconds": time.perf_counter() - begun}))
"""


class Failed(Exception):
    """One sentence for the reader; main() prints it."""


def told(command: list[str]) -> dict:
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | quiet)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise Failed(f"`{' '.join(command[:2])} ...` ended with exit code {done.returncode}:\n{tail}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(args, folder: pathlib.Path) -> dict[str, list[float]]:
    run, size = folder / "run", ["--mib", str(args.mib)]
    times: dict[str, list[float]] = {n: [] for n in
        ("stall", "memcpy", "longest_between", "torch_save", "resume", "load_file")}  # fmt: skip
    for turn in range(args.rounds):
        print(f"round {turn + 1}/{args.rounds}", file=sys.stderr)
        for old in sorted(folder.glob("run*")):
            subprocess.run(["rm", "-r", str(old)], check=True)
        said = told([str(args.frugal), "stall", str(run), *size])
        times["stall"] += said["stall"]
        times["memcpy"] += said["memcpy"]
        times["longest_between"].append(said["longest_between"])
        checkpoint = pathlib.Path(told([str(args.frugal), "resume", str(run), *size])["from"])
        files = [str(checkpoint / name) for name in ("model.safetensors", "optimizer.safetensors")]
        rival = [sys.executable, "-c", RIVAL]
        for _ in range(3):
            times["resume"].append(told([str(args.frugal), "resume", str(run), *size])["seconds"])
            times["load_file"].append(told([*rival, "load_file", *files])["seconds"])
        for _ in range(2):
            times["torch_save"].append(
                told([*rival, "torch_save", str(folder / "run.pt"), *files])["seconds"])
            os.sync()  # what it left to be written is nobody's next figure
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frugal", type=pathlib.Path, help="the program checkpoint")
    parser.add_argument("--build", type=pathlib.Path, help="or the build folder that holds it")
    parser.add_argument("--folder", type=pathlib.Path, default=".", help="on the disk to measure")
    parser.add_argument("--mib", type=int, default=512, help="of the whole state")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="file for every figure")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is not met")
    for other in ("--torch", "--cxx"):
        parser.add_argument(other, help="taken and not needed: every benchmark gets it")
    args = parser.parse_args()
    if args.frugal is None and args.build is None:
        parser.error("say where the program is, with --frugal or --build.")
    args.frugal = (args.frugal or args.build / "bench" / "checkpoint").resolve()
    try:
        with tempfile.TemporaryDirectory(dir=args.folder, prefix="bench-checkpoint-") as name:
            times = measure(args, pathlib.Path(name))
    except (Failed, OSError) as error:
        print(f"checkpoint: {error}", file=sys.stderr)
        return 2
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"{args.mib} MiB of state, seconds\n{'':18}{'median':>10}{'least':>10}{'greatest':>10}")
    for name, values in times.items():
        print(f"{name:18}{medians[name]:10.4f}{min(values):10.4f}{max(values):10.4f}")
    bars = [
        ("stall of an async save over one memcpy", medians["stall"] / medians["memcpy"], 1.3, "most"),
        ("stall over what torch.save blocks", medians["stall"] / medians["torch_save"], 0.05, "most"),
        ("load_file's time over a resume's", medians["load_file"] / medians["resume"], 1.0, "least"),
    ]
    met = True
    for what, ratio, bar, way in bars:
        good = ratio <= bar if way == "most" else ratio >= bar
        met = met and good
        print(f"bar: {what}, at {way} {bar}: {ratio:.3f}, {'met' if good else 'NOT met'}")
    if args.json:
        args.json.write_text(json.dumps(times, indent=2) + "\n")
    return 1 if args.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
