# SPDX-License-Identifier: Apache-2.0
"""Seconds per step of Replicate, compared with PyTorch's DistributedDataParallel over Gloo.

All ranks are processes of this machine, with one thread each; ranks beyond its cores share them, and measure what
Replicate adds and not how it scales. Ways are interleaved over the rounds. A round's figure is the median of its
steps; ratios are of figures of one round, and their median counts.
"""

import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys

from common import QUIET, Failed, add_strict, judge, machine, parse, parser_of, version_of

STEPS = {"small": (2000, 200), "gpt": (30, 5)}  # and warm-up
EIGHT = {"small": (200, 20), "gpt": (6, 2)}  # with eight ranks
JOBS = {"small": "MLP 64-128-10, 32 samples a rank", "gpt": "GPT of 11 million parameters, 4 sequences of 128 a rank"}
BARS = (  # job, ranks, way, compared with, at most
    ("small", 2, "ring", "ddp", 0.90),
    ("gpt", 2, "ring", "ddp", 0.97),
    ("gpt", 8, "exact", "ring", 1.10),
)
LOSS_SPREAD = 1.25  # another order of the data ends some percent apart


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Bench:
    def __init__(self, args):
        self.args = args

    def run(self, job: str, way: str, ranks: int) -> dict:
        steps, warmup = (STEPS if ranks <= 2 else EIGHT)[job]
        if self.args.steps:
            steps, warmup = self.args.steps, max(2, self.args.steps // 10)
        command = [str(self.args.frugal), "--way", way]
        if way == "ddp":
            command = [sys.executable, str(pathlib.Path(__file__).with_name("cluster_torch.py"))]
        command += ["--job", job, "--steps", str(steps), "--warmup", str(warmup)]
        place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        kept = {name: value for name, value in os.environ.items() if not re.match("SLURM|TORCHELASTIC|OMPI", name)}
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=kept | QUIET | threads | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(ranks)
        ]  # fmt: skip
        ended = [each.communicate() for each in started]
        for process, (_, errors) in zip(started, ended):
            if process.returncode != 0:
                tail = "\n".join(errors.strip().splitlines()[-5:])
                raise Failed(f"`{' '.join(command)}` ended with exit code {process.returncode}:\n{tail}")
        line = json.loads(ended[0][0].splitlines()[-1])
        return {"step": statistics.median(line["seconds"]), "loss": line["loss"]}

    def measure(self) -> list[dict]:
        ways = [(job, 2, way) for job in JOBS for way in ("ring", "ddp", "exact", "ring after backward")]
        ways += [(job, 8, way) for job in JOBS for way in ("ring", "exact", "ddp")]
        if self.args.jobs:
            ways = [each for each in ways if each[0] in self.args.jobs.split(",")]
        rounds = []
        for number in range(self.args.rounds):
            found = {}
            at = number % len(ways)
            for job, ranks, way in ways[at:] + ways[:at]:
                found[job, ranks, way] = self.run(job, way, ranks)
                print(f"round {number + 1}: {job}, {ranks} ranks, {way}: "
                      f"{found[job, ranks, way]['step'] * 1e3:.3f} ms a step", flush=True)  # fmt: skip
            rounds.append(found)
        return rounds


def ratio(rounds: list[dict], job: str, ranks: int, way: str, rival: str) -> float:
    return statistics.median(each[job, ranks, way]["step"] / each[job, ranks, rival]["step"] for each in rounds)


def show(rounds: list[dict]) -> None:
    print(f"\n{'job':8}{'ranks':>6}  {'way':22}{'ms a step':>10}{'over ddp':>10}{'loss':>9}")
    for job, ranks, way in rounds[0]:
        step = statistics.median(each[job, ranks, way]["step"] for each in rounds)
        over = ratio(rounds, job, ranks, way, "ddp")
        loss = statistics.median(each[job, ranks, way]["loss"] for each in rounds)
        print(f"{job:8}{ranks:6}  {way:22}{step * 1e3:10.3f}{over:10.3f}{loss:9.4f}")


def main() -> int:
    parser = parser_of(__doc__, "cluster")
    add_strict(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="of every way, for a trial")
    parser.add_argument("--jobs", help=f"of {', '.join(JOBS)}, with commas between")
    args = parse(parser)
    try:
        rounds = Bench(args).measure()
    except Failed as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    print(f"\n{machine()}, LibTorch {version_of(args.torch)}")
    for job, text in JOBS.items():
        print(f"{job}: {text}")
    show(rounds)
    print()
    met = True
    for job, ranks, way, rival, bar in BARS:
        if (job, ranks, way) in rounds[0]:
            text = f"{job}, {ranks} ranks: {way} over {rival}"
            met = judge(text, ratio(rounds, job, ranks, way, rival), bar) and met
    for job in {each[0] for each in rounds[0]}:
        losses = [each["loss"] for found in rounds for key, each in found.items() if key[:2] == (job, 2)]
        met = judge(f"{job}: the largest loss over the least", max(losses) / min(losses), LOSS_SPREAD) and met
    if args.json:
        args.json.write_text(json.dumps([{" ".join(map(str, key)): value for key, value in each.items()}
                                         for each in rounds], indent=1))  # fmt: skip
    return 0 if met or not args.strict else 1


if __name__ == "__main__":
    sys.exit(main())
