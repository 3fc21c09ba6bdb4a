# SPDX-License-Identifier: Apache-2.0
"""What runs of four processes come to: the loss of LocalSteps, and the memory of a module that is divided.

Loss: a GPT of 0.8 million parameters on the bytes of the King James Bible, with Replicate<Exact> and with 64 local steps (DiLoCo), the
same data, steps and inner settings. The figure is the loss of the last 1/20 of the text, which neither has trained on.

Memory: a GPT of 76 million parameters with AdamW, in one process and in four: the most memory of a process, and whether it trains to
the end with a limit for each process's data that one process does not keep. Each also with glibc's MALLOC_MMAP_THRESHOLD_ at 1 MiB:
otherwise glibc keeps for itself most of what layers' weights and gradients have taken in turn.
"""

import json
import pathlib
import statistics
import sys

from cluster_ranks import ended, free_port, start
from common import Failed, bible, judge, machine, version_of

RANKS = 4
STEPS = 2048  # 32 rounds of 64
SEEDS = (1, 2, 3)
LOSS_BAR = 1.01
LIMIT = 1000  # MiB of data for each process
RETURNS = {"MALLOC_MMAP_THRESHOLD_": str(2**20)}


def run(args, way: str, ranks: int, *more: str, variables: dict | None = None) -> list[dict]:
    """What each rank prints."""
    command = [str(args.frugal.with_name("cluster_runs")), "--way", way, *more]
    port = free_port()
    outputs = ended([start(command, rank, ranks, port, variables=variables) for rank in range(ranks)])
    return [json.loads(each.splitlines()[-1]) for each in outputs]


def losses(args) -> bool:
    text = args.text or bible(pathlib.Path(args.build))
    ratios = []
    for seed in SEEDS[: args.rounds]:
        found = {}
        for way in ("exact", "local"):
            found[way] = run(args, way, RANKS, "--text", str(text), "--seed", str(seed),
                             "--steps", str(args.steps or STEPS))[0]["loss"]  # fmt: skip
        ratios.append(found["local"] / found["exact"])
        print(f"seed {seed}: loss {found['exact']:.4f} with Exact, {found['local']:.4f} with LocalSteps<64>, "
              f"{ratios[-1]:.4f}", flush=True)  # fmt: skip
    return judge("64 local steps: loss over that of Replicate<Exact>", statistics.mean(ratios), LOSS_BAR)


def memory(args) -> bool:
    ways = (("alone", 1), ("sharded", RANKS), ("pipeline", RANKS))
    for way, ranks in ways:
        for variables in ({}, RETURNS):
            lines = run(args, way, ranks, variables=variables)
            mib = max(each["bytes"] for each in lines) / 2**20
            print(f"{way}, {ranks} processes{', MALLOC_MMAP_THRESHOLD_' if variables else ''}: at most {mib:.0f} MiB in a process, "
                  f"{lines[0]['seconds']:.2f} s a step", flush=True)  # fmt: skip
    met = True
    for way, ranks in ways:
        try:
            run(args, way, ranks, "--limit-mib", str(LIMIT), variables=RETURNS)
            outcome = "trained to the end"
        except Failed as error:
            outcome = str(error).splitlines()[-1]
        met = met and (outcome == "trained to the end") == (way != "alone")
        print(f"{way}, {ranks} processes with {LIMIT} MiB of data each: {outcome}", flush=True)
    return met


def main(args) -> int:
    try:
        met = True
        if args.loss:
            met = losses(args) and met
        if args.memory:
            met = memory(args) and met
    except Failed as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    print(f"{machine()}, LibTorch {version_of(args.torch)}")
    return 0 if met or not args.strict else 1
