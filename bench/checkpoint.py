# SPDX-License-Identifier: Apache-2.0
"""Compares Checkpoint with torch.save and Python's safetensors on one state: module and AdamW.

It measures the stall of an Async save, compared with one memcpy of the state and with the time that
torch.save blocks; and the time of a resume, hashes included, compared with load_file of the same
files. Every run is a separate process that times itself, without its start; the files are in the page
cache for both sides. This file needs nothing but Python; the rivals need requirements/peers.txt.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from common import Failed, add_strict, judge, parse, parser_of, told

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
            os.sync()  # pending writes must not count in the next figure
    return times


def main() -> int:
    parser = parser_of(__doc__, "checkpoint")
    parser.add_argument("--folder", type=pathlib.Path, default=".", help="on the disk to measure")
    parser.add_argument("--mib", type=int, default=512, help="of the whole state")
    parser.add_argument("--rounds", type=int, default=3)
    add_strict(parser)
    args = parse(parser)
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
        met = judge(what, ratio, bar, way) and met
    if args.json:
        args.json.write_text(json.dumps(times, indent=2) + "\n")
    return 1 if args.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
