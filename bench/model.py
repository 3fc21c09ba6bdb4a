# SPDX-License-Identifier: Apache-2.0
"""Time, memory and quality of the levers in the model, compared with their rivals in Python.

Each way is a process, and ways are interleaved over the rounds. A round's figure is the fastest of its steps, so
that another process costs a step and no figure; ratios are of figures of one round, and their median counts.
Memory is the peak of live tensors' bytes.

adapters  a BERT of the size of MiniLM (22 million parameters, random weights and tokens): LoRA, NF4; PEFT
teacher   five epochs of distillation from that encoder, asked live, or once by CachedTeacher
cut       a residual network on Fashion-MNIST without a quarter of its channels; torch-pruning
quantize  one linear layer; and examples/compress, a GPT on the text of the Bible, in INT8 and INT4
int8      Precision<INT8>: the linear layers of a GPT, and the loss of a small GPT with five seeds
"""

import json
import os
import pathlib
import statistics
import sys
import tempfile

from common import Failed, add_strict, bible, judge, machine, parse, parser_of, run, told

WAYS = {
    "full": "all parameters",
    "lora": "Lora<Rank<8>, On<query, value>>",
    "lora-all": "Lora<Rank<8>> on every linear layer",
    "nf4-all": "the same with Base<NF4>",
}
RIVALS = {"peft": "PEFT, as lora"}
# Rows of examples/compress.
COMPRESSED = {"large", "tuned", "int8", "tuned int8", "qat int8"}


class Bench:
    """The programs, and what was measured."""

    def __init__(self, args, folder: pathlib.Path):
        self.args, self.folder = args, folder
        self.figures: dict = {}
        self.met = True

    def parts(self, *words) -> dict:
        return told([str(self.args.frugal.with_name("model_parts")), *map(str, words)])

    def python(self, script: str, *words) -> dict:
        return told([sys.executable, str(pathlib.Path(__file__).with_name(script)), *map(str, words)])

    def bar(self, text: str, value: float, bar: float, way: str = "most") -> None:
        self.met = judge(text, value, bar, way) and self.met

    def rounds(self, ways) -> list[dict]:
        """Each way once per round: {name: function without arguments}."""
        return [{name: way() for name, way in ways.items()} for _ in range(self.args.rounds)]

    # ---- adapters -------------------------------------------------------------------------------

    def adapters(self) -> None:
        args = self.args
        shape = [str(args.steps), str(args.threads), str(args.batch), str(args.tokens)]
        ways = {way: lambda way=way: told([str(args.frugal), way, *shape]) for way in WAYS}
        ways |= {way: lambda way=way: self.python("model_peft.py", way, *shape) for way in RIVALS}
        rounds = self.figures["adapters"] = self.rounds(ways)

        def fastest(one: dict, way: str) -> float:
            return min(one[way]["seconds"][1:])

        def ratio(way: str, of: str) -> float:
            return statistics.median(fastest(one, way) / fastest(one, of) for one in rounds)

        print(f"batches of {args.batch} x {args.tokens} tokens")
        print(f"{'':40}{'seconds':>10}{'of full':>10}{'MiB peak':>10}{'of full':>10}{'trained':>12}")
        for way, text in (WAYS | RIVALS).items():
            said = rounds[0][way]
            memory = ""
            if "peak" in said:
                memory = f"{said['peak'] / 2**20:10.1f}{said['peak'] / rounds[0]['full']['peak']:10.3f}"
            seconds = statistics.median(fastest(one, way) for one in rounds)
            print(f"{text:40}{seconds:10.3f}{ratio(way, 'full'):10.3f}{memory:20}{said['trained']:12,}")
        lora, full, plain, packed = (rounds[0][way] for way in ("lora", "full", "lora-all", "nf4-all"))
        # Six layers, each with four matrices of 384 x 384 and two of 384 x 1536.
        matrices = 6 * (4 * 384 * 384 + 2 * 384 * 1536)
        self.bar("a step of LoRA over one of full tuning", ratio("lora", "full"), 0.80)
        self.bar("a step of LoRA over one of PEFT", ratio("lora", "peft"), 0.95)
        self.bar("parameters that LoRA trains", lora["trained"] / lora["all"], 0.01)
        self.bar("peak memory of LoRA over full tuning", lora["peak"] / full["peak"], 0.60)
        self.bar("bytes of a weight in NF4", 4 - (plain["weights"] - packed["weights"]) / matrices, 0.53)
        self.bar("a step over NF4 over one of LoRA", ratio("nf4-all", "lora-all"), 1.10)

    # ---- a teacher ------------------------------------------------------------------------------

    def teacher(self) -> None:
        made = iter(range(1000))
        rounds = self.figures["teacher"] = self.rounds({
            "live": lambda: self.parts("live", self.folder),
            "cached": lambda: self.parts("cached", self.folder / f"cache-{next(made)}"),
        })  # fmt: skip
        for way in ("live", "cached"):
            print(f"five epochs, teacher {way}: {statistics.median(one[way]['seconds'] for one in rounds):.2f} s, "
                  f"loss {rounds[0][way]['loss']:.6f}")  # fmt: skip
        gain = statistics.median(one["live"]["seconds"] / one["cached"]["seconds"] for one in rounds)
        self.bar("five epochs with a live teacher over CachedTeacher", gain, 1.8, "least")

    # ---- channels -------------------------------------------------------------------------------

    def cut(self) -> None:
        images, weights = str(self.args.images), self.folder / "cut"
        rounds = self.figures["cut"] = self.rounds({
            "frugal": lambda: self.parts("cut", images, weights),
            "torch-pruning": lambda: self.python("model_pruning.py", weights, images, self.args.threads),
        })  # fmt: skip
        print(f"{'':16}{'operations':>12}{'as fast':>10}{'before':>10}{'cut':>10}{'tuned':>10}  accuracy")
        for way, said in rounds[0].items():
            speed = statistics.median(one[way]["seconds"] / one[way]["cut_seconds"] for one in rounds)
            print(f"{way:16}{said['operations']:12.3f}{speed:10.2f}{100 * said['accuracy']:10.2f}"
                  f"{100 * said['cut_accuracy']:10.2f}{100 * said['tuned_accuracy']:10.2f}")  # fmt: skip
            if way == "frugal":
                self.bar("the speed of the network that is cut", speed, 1.7, "least")
                self.bar("points lost by it after tuning", 100 * (said["accuracy"] - said["tuned_accuracy"]), 1)

    # ---- integers -------------------------------------------------------------------------------

    def quantize(self) -> None:
        rounds = self.rounds({"linear": lambda: self.parts("linear")})
        linear = statistics.median(one["linear"]["int8"] / one["linear"]["fp32"] for one in rounds)
        example = self.args.frugal.parent.parent / "examples" / "compress"
        table = run([str(example), str(bible(self.folder)), str(self.args.gpt_steps), str(self.folder / "gpt")])
        print(table.rstrip())
        rows = {line[:12].strip(): [float(cell) for cell in line[12:].split()[:4]]
                for line in table.splitlines() if line[:12].strip() in COMPRESSED}  # fmt: skip
        self.figures["quantize"] = {"linear": [one["linear"] for one in rounds], "compress": rows}
        size, loss, accuracy = ({way: row[at] for way, row in rows.items()} for at in (0, 1, 2))
        self.bar("a linear layer in INT8 over FP32, 32 rows of 384 to 1536", linear, 0.35)
        self.bar("bytes of the GPT in INT8 over FP32", size["int8"] / size["large"], 0.30)
        self.bar("points of accuracy that INT8 loses", accuracy["large"] - accuracy["int8"], 0.5)
        lost = loss["tuned int8"] - loss["tuned"]
        if lost <= 0:  # of four decimals
            print("static INT8 loses nothing that Qat could win back")
            return
        self.bar("share of what static INT8 loses that Qat wins back", (loss["tuned int8"] - loss["qat int8"]) / lost,
                 0.5, "least")  # fmt: skip

    def int8(self) -> None:
        rounds = self.rounds({"passes": lambda: self.parts("int8")})
        for of, bar in (("fp32", 0.40), ("bf16", 0.75)):
            ratio = statistics.median(one["passes"]["int8"] / one["passes"][of] for one in rounds)
            self.bar(f"forward and backward of a GPT's linears in INT8 over {of.upper()}", ratio, bar)
        losses = self.parts("seeds", bible(self.folder), self.args.seed_steps)
        self.figures["int8"] = {"passes": [one["passes"] for one in rounds], "losses": losses}
        mean = {way: statistics.mean(losses[way]) for way in losses}
        noise = statistics.stdev(losses["fp32"])
        print(f"loss of five seeds: FP32 {mean['fp32']:.4f}, INT8 {mean['int8']:.4f}; "
              f"standard deviation of FP32's {noise:.4f}")  # fmt: skip
        self.bar("difference of the mean losses over that deviation", abs(mean["int8"] - mean["fp32"]) / noise, 1)


def main() -> int:
    parser = parser_of(__doc__, "model")
    names = ("adapters", "teacher", "cut", "quantize", "int8")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--steps", type=int, default=6, help="of each way of adapters, in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--gpt-steps", type=int, default=600, help="of the GPT's first training")
    parser.add_argument("--seed-steps", type=int, default=300, help="of each of the ten trainings of int8")
    parser.add_argument("--images", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    add_strict(parser)
    args = parse(parser)
    if unknown := set(args.parts) - set(names):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    # Every program computes with as many threads.
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}")
    try:
        with tempfile.TemporaryDirectory(prefix="frugal-model-") as folder:
            bench = Bench(args, pathlib.Path(folder))
            for name in names:
                if name in args.parts or not args.parts:
                    print(f"\n{name}", flush=True)
                    getattr(bench, name)()
    except (Failed, OSError) as error:
        print(f"model: {error}", file=sys.stderr)
        return 2
    if args.json:
        args.json.write_text(json.dumps(bench.figures, indent=2) + "\n")
    return 1 if args.strict and not bench.met else 0


if __name__ == "__main__":
    sys.exit(main())
