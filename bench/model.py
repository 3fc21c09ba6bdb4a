# SPDX-License-Identifier: Apache-2.0
"""Time and memory of the levers in the model, compared with full fine-tuning and with PEFT.

The encoder of examples/finetune (22 million parameters, random weights and tokens) makes some steps in each way,
a process for each way and round, interleaved. A round's figure is the fastest of its steps, so that another
process costs a step and no figure; ratios are of figures of one round, and their median counts. Memory is the
peak of live tensors' bytes for frugal.
"""

import json
import os
import pathlib
import statistics
import sys

from common import Failed, add_strict, judge, parse, parser_of, told

WAYS = {
    "full": "all parameters",
    "lora": "Lora<Rank<8>, On<query, value>>",
    "lora-all": "Lora<Rank<8>> on every linear layer",
    "nf4-all": "the same with Base<NF4>",
}
RIVALS = {"peft": "PEFT, as lora"}


def main() -> int:
    parser = parser_of(__doc__, "model")
    parser.add_argument("--steps", type=int, default=6, help="of each way, in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=48)
    add_strict(parser)
    args = parse(parser)
    shape = [str(args.steps), str(args.threads), str(args.batch), str(args.tokens)]
    rival = [sys.executable, str(pathlib.Path(__file__).with_name("model_peft.py"))]
    rounds: list[dict] = []
    try:
        for turn in range(args.rounds):
            print(f"round {turn + 1}/{args.rounds}", file=sys.stderr)
            one = {way: told([str(args.frugal), way, *shape]) for way in WAYS}
            one |= {way: told([*rival, way, *shape]) for way in RIVALS}
            rounds.append(one)
    except (Failed, OSError) as error:
        print(f"model: {error}", file=sys.stderr)
        return 2

    def fastest(one: dict, way: str) -> float:
        return min(one[way]["seconds"][1:])

    def ratio(way: str, of: str) -> float:
        return statistics.median(fastest(one, way) / fastest(one, of) for one in rounds)

    print(f"batches of {args.batch} x {args.tokens} tokens; load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'':40}{'seconds':>10}{'of full':>10}{'MiB peak':>10}{'of full':>10}{'trained':>12}")
    for way, text in (WAYS | RIVALS).items():
        said = rounds[0][way]
        memory = ""
        if "peak" in said:
            memory = f"{said['peak'] / 2**20:10.1f}{said['peak'] / rounds[0]['full']['peak']:10.3f}"
        seconds = statistics.median(fastest(one, way) for one in rounds)
        print(f"{text:40}{seconds:10.3f}{ratio(way, 'full'):10.3f}{memory:20}{said['trained']:12,}")
    lora, full, packed = (rounds[0][way] for way in ("lora", "full", "nf4-all"))
    plain = rounds[0]["lora-all"]
    print(f"bytes of the module: {plain['weights'] / 2**20:.1f} MiB, with Base<NF4> {packed['weights'] / 2**20:.1f}")
    bars = [
        ("a step of LoRA over one of full tuning", ratio("lora", "full"), 0.80),
        ("a step of LoRA over one of PEFT", ratio("lora", "peft"), 0.95),
        ("parameters that LoRA trains", lora["trained"] / lora["all"], 0.01),
        ("peak memory of LoRA over full tuning", lora["peak"] / full["peak"], 0.60),
        ("a step over NF4 over one of LoRA", ratio("nf4-all", "lora-all"), 1.10),
    ]
    met = True
    for text, value, bar in bars:
        met = judge(text, value, bar) and met
    if args.json:
        args.json.write_text(json.dumps(rounds, indent=2) + "\n")
    return 1 if args.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
