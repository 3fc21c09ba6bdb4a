# SPDX-License-Identifier: Apache-2.0
"""Seconds per step of Replicate, compared with PyTorch's DistributedDataParallel over Gloo, and with LibTorch's Reducer.

All ranks are processes of this machine, with one thread each; ranks beyond its cores share them, and measure what
Replicate adds and not how it scales. Ways are interleaved over the rounds. A round's figure is the median of its
steps; ratios are of figures of one round, and their median counts. With --links, over links of a known rate
(cluster_links.py); with --loss or --memory, what whole runs come to (cluster_runs.py).
"""

import json
import pathlib
import statistics
import sys

import cluster_links
import cluster_runs
from cluster_ranks import ended, free_port, start
from common import Failed, add_strict, judge, machine, parse, parser_of, version_of

STEPS = {"small": (2000, 200), "gpt": (30, 5)}  # and warm-up
EIGHT = {"small": (200, 20), "gpt": (6, 2)}  # with eight ranks
JOBS = {"small": "MLP 64-128-10, 32 samples a rank", "gpt": "GPT of 11 million parameters, 4 sequences of 128 a rank"}
BARS = (  # job, ranks, way, compared with, at most
    ("small", 2, "ring", "ddp", 0.90),
    ("gpt", 2, "ring", "ddp", 0.97),
    ("gpt", 2, "ring", "reducer", 1.02),
    ("gpt", 8, "exact", "ring", 1.10),
)
LOSS_SPREAD = 1.25  # another order of the data ends some percent apart


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
        port = free_port()
        outputs = ended([start(command, rank, ranks, port) for rank in range(ranks)])
        line = json.loads(outputs[0].splitlines()[-1])
        return {"step": statistics.median(line["seconds"]), "loss": line["loss"]}

    def measure(self) -> list[dict]:
        ways = [(job, 2, way) for job in JOBS for way in ("ring", "ddp", "reducer", "exact", "ring after backward")]
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
    parser.add_argument("--links", action="store_true", help="over shaped links of network namespaces; as root")
    parser.add_argument("--loss", action="store_true", help="of 64 local steps, compared with Replicate<Exact>")
    parser.add_argument("--memory", action="store_true", help="of a module that is divided among processes")
    parser.add_argument("--text", type=pathlib.Path, help="of --loss, in place of the King James Bible")
    parser.add_argument("--jobs", help=f"of {', '.join(JOBS)}, with commas between")
    args = parse(parser)
    if args.links:
        return cluster_links.main(args)
    if args.loss or args.memory:
        return cluster_runs.main(args)
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
