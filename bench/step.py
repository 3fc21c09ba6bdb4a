# SPDX-License-Identifier: Apache-2.0
"""Compares a step package, trained by frugal, with frugal's eager step, tuned PyTorch and torch.compile.

The job, the contract of the programs and the rounds are those of peers.py. Exports the package first; then a convolutional
network and a GPT, in FP32 and BF16, beside eager PyTorch and torch.compile (step_models.py); then whether an optimizer
inside of the compiled step would gain anything (step_inside.py); then the
seconds from opening it to the first step, beside torch.compile's with an empty and with a full cache; and the
instructions of a step by frugal over those of a loop by hand that runs the same code (callgrind). Needs
requirements/peers.txt, g++ and valgrind.
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

import peers

HERE = pathlib.Path(__file__).resolve().parent
EXPORTER = HERE.parent / "packaging" / "python" / "src"

# Of the whole step: time over that of frugal's eager step, and speed over PyTorch's.
BARS = {32: {"eager": 0.80, "tuned": 2.25, "compiled": 2.6}, 128: {"eager": 0.92, "tuned": 1.38, "compiled": 1.48}}
MOST_OPENING = 0.1  # seconds
MOST_INSTRUCTIONS = 1.002
MOST_LARGE = 1.00  # of the faster of eager PyTorch and torch.compile
LARGE = {"cnn": (128, 60), "gpt": (8, 5), "cnn-bf16": (128, 60), "gpt-bf16": (8, 5)}  # batch and steps
# glibc keeps freed memory, as KeepHostMemory has it; of all rivals.
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_TOP_PAD_": str(1 << 28)}
# Steps of the shorter and the longer run under callgrind.
COUNTED = (100, 300)


def export(folder: pathlib.Path) -> None:
    """The network of peers_common.network() as a package; torch compiles it."""
    sys.path[:0] = [str(EXPORTER)]
    import torch
    from peers_common import network
    from torch.nn.functional import cross_entropy

    from frugal_step import Loss, export_step

    def loss(module, batch):
        logits = module(batch["data"])
        return Loss(cross_entropy(logits, batch["target"]), output=logits)

    torch.manual_seed(1)
    example = {"data": torch.rand(32, 784), "target": torch.randint(0, 10, (32,))}
    export_step(network(), loss, example, folder)


def start(cache: pathlib.Path) -> None:
    """Prints the seconds from building torch.compile's step to the end of its first one."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    import time

    import torch
    from peers_common import network
    from torch.nn.functional import cross_entropy

    torch.set_num_threads(1)
    begun = time.perf_counter()
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    step = torch.compile(lambda data, target: cross_entropy(net(data), target), fullgraph=True, dynamic=False)
    step(torch.rand(32, 784), torch.randint(0, 10, (32,))).backward()
    optimizer.step()
    print(json.dumps({"seconds": time.perf_counter() - begun}))


def own_script(*command: str) -> str:
    done = subprocess.run([sys.executable, str(HERE / command[0]), *command[1:]], capture_output=True, text=True)
    if done.returncode != 0:
        raise peers.Failed(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def own(mode: str, path: pathlib.Path) -> str:
    return own_script("step.py", mode, str(path))


def show_inside(blocks: list[dict]) -> None:
    for block in blocks:
        within, without = block["median"]["inside"], block["median"]["outside"]
        print(f"batch {block['batch']}: AdamW inside of the code {within * 1e6:.0f} us a step, LibTorch's fused kernel outside "
              f"{without * 1e6:.0f}: {within / without:.3f}; final losses {block['loss']['inside']:.4f}, {block['loss']['outside']:.4f}")


def instructions(program: str, package: pathlib.Path, loop: str) -> float:
    """Those of a step at batch 32: the difference of two runs."""
    counts = []
    for steps in COUNTED:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "--package", str(package),
                   "--loop", loop, "--steps", str(steps), "--warmup", "1"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode != 0 or not found:
            raise peers.Failed(f"callgrind printed no count: {done.stderr.strip()[-500:]}")
        counts.append(int(found[1]))
    return (counts[1] - counts[0]) / (COUNTED[1] - COUNTED[0])


def answer_of(command: list[str], settings: dict[str, str] | None = None) -> dict:
    env = os.environ | {"OMP_NUM_THREADS": "1"} | (settings or {})
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise peers.Failed(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def large(name: str, program: str, folder: pathlib.Path, rounds: int) -> dict:
    """Seconds of a step of a larger job, one of each rival per round."""
    batch, steps = LARGE[name]
    script = [sys.executable, str(HERE / "step_models.py"), name]
    print(f"exporting {name}", file=sys.stderr)
    done = subprocess.run([*script, "export", str(folder / name)], capture_output=True, text=True)
    if done.returncode != 0:
        raise peers.Failed(f"exporting {name} failed:\n{done.stderr.strip()[-2000:]}")
    rivals = {"package": [program, "--package", str(folder / name), "--batch", str(batch), "--steps", str(steps), "--warmup", "3"],
              "eager": [*script, "eager", str(steps)], "compiled": [*script, "compiled", str(steps)]}
    found: dict = {rival: [] for rival in rivals}
    for i in range(rounds):
        for rival in [*rivals][i % 3:] + [*rivals][:i % 3]:
            print(f"{name}, round {i + 1}/{rounds}: {rival}", file=sys.stderr)
            found[rival].append(answer_of(rivals[rival], KEPT)["seconds_per_step"])
    return {"job": name, "seconds_per_step": found}


def show_large(block: dict) -> bool:
    medians = {rival: statistics.median(times) for rival, times in block["seconds_per_step"].items()}
    best = min(medians["eager"], medians["compiled"])
    ratio = medians["package"] / best
    print(f"{block['job']}: package {medians['package'] * 1e3:.1f} ms a step, eager {medians['eager'] * 1e3:.1f}, torch.compile "
          f"{medians['compiled'] * 1e3:.1f}; over the faster one {ratio:.2f}, bar {MOST_LARGE}", flush=True)
    return ratio <= MOST_LARGE


def show(block: dict) -> list[bool]:
    medians = {name: entry["median"] for name, entry in block["rivals"].items()}
    print(f"\nbatch {block['batch']}, {block['steps']} steps, one thread, samples/s")
    print(f"{'':12}{'median':>10}{'min':>10}{'max':>10}{'final loss':>12}")
    for name, entry in block["rivals"].items():
        rates = entry["samples_per_second"]
        print(f"{name:12}{entry['median']:10.0f}{min(rates):10.0f}{max(rates):10.0f}{entry['loss']:12.4f}")
    met = []
    for rival, bar in BARS.get(block["batch"], {}).items():
        if rival == "eager":
            ratio = medians["eager"] / medians["package"]
            met.append(ratio <= bar)
            print(f"package's time over that of frugal's eager step: {ratio:.3f}, bar {bar}")
        else:
            ratio = medians["package"] / medians[rival]
            met.append(ratio >= bar)
            print(f"package over {rival}: {ratio:.2f} times as fast, bar {bar}")
    losses = [entry["loss"] for entry in block["rivals"].values()]
    met.append(max(losses) <= peers.LOSS_SPREAD * min(losses))
    print(f"all learned the same: {'yes' if met[-1] else 'NO'}")
    return met


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder of bench_step")
    parser.add_argument("--data", type=pathlib.Path, default=peers.DATA, help="folder of the IDX files")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one eager run in Python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", default="small,inside," + ",".join(LARGE), help="small, inside, and the larger jobs")
    parser.add_argument("--batches", default="32,128", help="batch sizes, with commas between")
    parser.add_argument("--json", type=pathlib.Path, help="file for every figure")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is not met")
    for other in ("--torch", "--cxx"):
        parser.add_argument(other, help="taken and not needed: every benchmark gets it")
    return parser.parse_args()


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] in ("export", "start"):
        {"export": export, "start": start}[sys.argv[1]](pathlib.Path(sys.argv[2]))
        return 0
    args = parse()
    programs = {name: str((args.build / "bench" / name).resolve()) for name in ("bench_step", "bench_peers")}
    jobs = args.jobs.split(",")
    report: dict = {}
    met: list[bool] = []
    with tempfile.TemporaryDirectory() as held:
        folder = pathlib.Path(held)
        try:
            if "small" in jobs:
                small(programs, folder, args, report, met)
            if "inside" in jobs:
                report["inside"] = json.loads(own_script("step_inside.py", str(args.data)))
                show_inside(report["inside"])
            report["large"] = []
            for name in LARGE:
                if name in jobs:
                    report["large"].append(large(name, programs["bench_step"], folder, args.rounds))
                    met.append(show_large(report["large"][-1]))
        except peers.Failed as error:
            print(f"step: {error}", file=sys.stderr)
            return 2
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if args.strict and not all(met) else 0


def small(programs: dict, folder: pathlib.Path, args, report: dict, met: list[bool]) -> None:
    """The network of peers.py: rates, the time to the first step, instructions."""
    package = folder / "package"
    print("exporting the package", file=sys.stderr)
    own("export", package)
    python = {name: [sys.executable, str(HERE / command[0]), *command[1:]]
              for name, command in peers.PEERS.items() if name in ("plain", "tuned", "compiled")}
    rivals = python | {"eager": [programs["bench_peers"]], "package": [programs["bench_step"], "--package", str(package)]}
    report["blocks"] = [peers.measure(rivals, args, int(batch)) for batch in args.batches.split(",")]
    for block in report["blocks"]:
        met += show(block)
    first = [programs["bench_step"], "--package", str(package), "--steps", "1", "--warmup", "1"]
    opened = [answer_of(first)["seconds_to_first_step"] for _ in range(args.rounds)]
    starts = [json.loads(own("start", folder / "cache").splitlines()[-1])["seconds"] for _ in range(2)]
    report["seconds_to_first_step"] = {"package": opened, "torch.compile": starts}
    met.append(statistics.median(opened) <= MOST_OPENING)
    print(f"\nto the first step: package {statistics.median(opened) * 1e3:.1f} ms, torch.compile "
          f"{starts[0]:.1f} s with an empty cache, {starts[1]:.1f} s with a full one; bar {MOST_OPENING} s")
    counts = {loop: instructions(programs["bench_step"], package, loop) for loop in ("frugal", "hand")}
    report["instructions"] = counts
    ratio = counts["frugal"] / counts["hand"]
    met.append(ratio <= MOST_INSTRUCTIONS)
    print(f"instructions of a step: {counts['frugal']:.0f} by frugal, {counts['hand']:.0f} by hand: "
          f"{ratio:.4f}, bar {MOST_INSTRUCTIONS}")


if __name__ == "__main__":
    sys.exit(main())
