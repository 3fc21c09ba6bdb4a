# SPDX-License-Identifier: Apache-2.0
"""What each lever does to time, memory and loss of three jobs: alone, and with others that pay.

fashion  the convolutional network of ./dev demo on Fashion-MNIST, batches of 128
gpt      a GPT of 10.9 million parameters on the King James Version, byte by byte, 8 windows of 128
deep     a transformer of 24 narrow layers on the same text and in the same windows

Plain is torch::optim::AdamW in FP32 on samples that are stacked one by one. Every cell is a process of
its own that trains on the same samples from the same seed; rounds are interleaved. Seconds are of all
steps but the first two, in the fastest round, since what else a machine does only adds to them. Peak bytes are those that LibTorch's allocator has
given out at most, without what was there when training began (weights and data). The loss is
that of samples which it was not trained on, in FP32, after the last step.
"""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from common import Failed, all_told, machine, parse, parser_of, told, version_of, write_between

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "levers.md"
BEGIN, END = "<!-- figures: ./dev bench levers -->", "<!-- end of figures -->"
# Samples that each job trains on, the first two steps included.
SAMPLES = {"fashion": 3840, "gpt": 64, "deep": 48}
TITLES = {
    "fashion": "Fashion-MNIST, convolutional network, batch 128",
    "gpt": "GPT of 10.9 million parameters, King James Version, 8 windows of 128 bytes",
    "deep": "transformer of 24 layers and 256 channels, the same text and windows",
}
# At most so much of the plain recipe's time or memory, and it is taken into what is combined.
PAYS = {"time": 0.97, "memory": 0.95}
# So many times as long as plain is measured once.
SLOW = 5
FIGURE = {"time": "seconds", "memory": "peak"}
SECONDS, PEAK, LOSS = "seconds", "peak", "loss"


def bible(folder: pathlib.Path) -> pathlib.Path:
    """The text as Debian's program prints it, a verse to a line with its place in front."""
    to = folder / "kjv.txt"
    try:
        done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL,
                              capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failed("the text is printed by Debian's program bible, which does not work here "
                     f"({error}). As root: apt-get install bible-kjv bible-kjv-text; or give "
                     "--text FILE.") from error
    to.write_bytes(done.stdout)
    return to


class Cells:
    """All that was measured: of each job, of each set of levers, every round's figures."""

    def __init__(self, args, folder: pathlib.Path, text: pathlib.Path):
        self.args, self.folder, self.text = args, folder, text
        self.told: dict[str, dict[str, list[dict]]] = {job: {} for job in args.jobs}

    def measure(self, job: str, levers: str) -> None:
        args = self.args
        samples = int(args.samples * SAMPLES[job])
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            self.told[job].setdefault(levers, []).append(told(
                [str(args.frugal), "--job", job, "--samples", str(samples), "--seed", str(args.seed),
                 "--device", args.device, "--threads", str(args.threads), "--text", str(self.text),
                 "--data", str(args.data), "--run", run] + (["--levers", levers] if levers else [])))

    def rounds(self, wanted: dict[str, list[str]], what: str) -> None:
        """Each round has every cell once, in an order of its own, the plain recipe among them."""
        order = random.Random(self.args.seed)
        for turn in range(self.args.rounds):
            cells = [(job, levers) for job in wanted if wanted[job] for levers in ["", *wanted[job]]]
            for at, (job, levers) in enumerate(order.sample(cells, len(cells))):
                # The order of magnitude is known, and minutes go into the others.
                if turn and self.ratio(job, levers, SECONDS) > SLOW:
                    continue
                print(f"{what}, round {turn + 1}/{self.args.rounds}, {at + 1}/{len(cells)}: {job} "
                      f"{levers or 'plain'}", file=sys.stderr)
                self.measure(job, levers)

    def figure(self, job: str, levers: str, figure: str) -> float:
        return self.of_rounds(self.told[job][levers], figure)

    @staticmethod
    def of_rounds(cells: list[dict], figure: str) -> float:
        """Seconds of the fastest, and of anything else the median."""
        of_them = [cell[figure] for cell in cells]
        return min(of_them) if figure == SECONDS else statistics.median(of_them)

    def ratio(self, job: str, levers: str, figure: str) -> float:
        """To plain as it was in the same rounds: the fastest of more rounds would be faster."""
        rounds = self.args.rounds
        plain = self.told[job][""][rounds:] if "," in levers else self.told[job][""][:rounds]
        return self.figure(job, levers, figure) / self.of_rounds(plain, figure)


def chain(cells: Cells, job: str, rows: list[dict], saves: str) -> list[str]:
    """The levers that save alone, the best first, each with all before it."""
    ratios = {row["name"]: cells.ratio(job, row["name"], FIGURE[saves])
              for row in rows if row["saves"] == saves}
    paying = sorted((name for name in ratios if ratios[name] <= PAYS[saves]), key=ratios.get)
    return [",".join(paying[:n]) for n in range(2, len(paying) + 1)]


def table(cells: Cells, job: str, keys: list[tuple[str, str]]) -> list[list[str]]:
    rows = []
    for levers, text in keys:
        own = [cells.figure(job, levers, figure) for figure in (SECONDS, PEAK, LOSS)]
        of_plain = ["", ""] if not levers else [
            f"{cells.ratio(job, levers, figure):.3f}" for figure in (SECONDS, PEAK)]
        rows.append([text, f"{own[0]:.2f}", of_plain[0], f"{own[1] / 2**20:.1f}", of_plain[1],
                     f"{own[2]:.4f}"])
    return rows


HEAD = ["", "seconds", "of plain", "MiB", "of plain", "loss"]


def show(title: str, rows: list[list[str]]) -> None:
    print(f"\n{title}\n" + f"{HEAD[0]:58}" + "".join(f"{cell:>10}" for cell in HEAD[1:]))
    for row in rows:
        print(f"{row[0]:58}" + "".join(f"{cell:>10}" for cell in row[1:]))


def markdown(rows: list[list[str]]) -> str:
    rows = [[f"`{row[0]}`" if "<" in row[0] else row[0], *row[1:]] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [HEAD, ["---"] * len(HEAD), *rows])


def main() -> int:
    parser = parser_of(__doc__, "levers")
    parser.add_argument("--jobs", default=",".join(SAMPLES), help="some of these")
    parser.add_argument("--levers", help="some of them alone, by name; nothing is combined then")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=float, default=1.0, help="so many times the usual number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--machine", help="its name in the table; found out by default")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as LibTorch takes")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--text", type=pathlib.Path, help="in place of the King James Version")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/levers.md")
    args = parse(parser)
    args.jobs = args.jobs.split(",")
    if not set(args.jobs) <= set(SAMPLES) or args.rounds < 1:
        parser.error(f"jobs are {', '.join(SAMPLES)}, and there is at least one round.")
    if args.write and (args.levers or set(args.jobs) != set(SAMPLES)):
        parser.error("--write is for all jobs and all levers.")
    name = args.machine or (machine() if args.device == "cpu" else f"{args.device}; {machine()}")
    try:
        with tempfile.TemporaryDirectory(prefix="bench-levers-") as folder:
            folder = pathlib.Path(folder)
            rows = all_told([str(args.frugal), "--list"])
            if args.levers:
                rows = [row for row in rows if row["name"] in args.levers.split(",")]
            cells = Cells(args, folder, args.text or bible(folder))
            cells.rounds({job: [row["name"] for row in rows] for job in args.jobs}, "alone")
            chains = {job: {} if args.levers else {saves: chain(cells, job, rows, saves)
                                                   for saves in PAYS} for job in args.jobs}
            cells.rounds({job: [key for keys in chains[job].values() for key in keys]
                          for job in args.jobs}, "together")
    except (Failed, OSError) as error:
        print(f"levers: {error}", file=sys.stderr)
        return 2
    text = {row["name"]: row["text"] for row in rows}
    tables = {}
    for job in args.jobs:
        keys = [("", "plain"), *((row["name"], row["text"]) for row in rows)]
        for added in chains[job].values():
            for key in added:
                names = key.split(",")
                keys.append((key, f"{text[names[0]]} and {text[names[1]]}" if len(names) == 2
                             else f"... and {text[names[-1]]}"))
        tables[job] = table(cells, job, keys)
        show(TITLES[job], tables[job])
    if args.json:
        args.json.write_text(json.dumps(cells.told, indent=1) + "\n")
    if args.write:
        written = f"\nOn {name}; LibTorch {version_of(args.torch)}; the fastest of {args.rounds} rounds.\n"
        for job in args.jobs:
            steps = int(args.samples * SAMPLES[job])
            written += f"\n*{TITLES[job]}*; {steps:,} samples.\n\n{markdown(tables[job])}\n"
        write_between(PAGE, BEGIN, END, written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
