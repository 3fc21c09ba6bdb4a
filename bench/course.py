# SPDX-License-Identifier: Apache-2.0
"""The three levers as one experiment: a plain run, then each lever added in turn, to the same accuracy.

Each run trains a small convolutional network on Fashion-MNIST from the start of its first process to
the end of its last one, until a validation has the target accuracy.

plain  torch::optim::AdamW, FP32, images stacked one by one, a constant learning rate, on demand
spot   price per hour: Checkpoint<Every<100>, Async>, Spot and Log; the process is interrupted at random
       moments, in turn with notice (SIGTERM) and without (SIGKILL), and started again at once
steps  hours per run: those step levers that a measurement on this machine has shown to pay
runs   runs to convergence: Schedule<Warmup<50>, Cosine> over few epochs, and a validation every 100 steps

The constant rate and the schedule's peak are each the best of the same candidates, on seeds of their own,
so that no lever wins by a rate that plain was not given. Stages are interleaved, once per seed. Costs are
measured seconds times the prices of the command line.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from common import Failed, QUIET, machine, parse, parser_of, told, version_of, write_between
from levers import LESS, noise_floor, verdict

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "course.md"
BEGIN, END = "<!-- figures: ./dev bench course -->", "<!-- end of figures -->"
STAGES = {
    "plain": "plain, on demand",
    "spot": "+ spot machine with checkpoints",
    "steps": "+ step levers",
    "runs": "+ schedule, and a stop in time",
}
TERM = {"plain": "", "spot": "price per hour", "steps": "hours per run", "runs": "runs to convergence"}
LEVERS = {"fused": "Optimize<AdamW>", "bf16": "Precision<BF16>", "keep": "KeepHostMemory", "resident": "TensorDataset data"}
# A process that was preempted and asks for another start, by sysexits.h.
AGAIN = 75
TUNING_SEEDS = (101, 102)
RUNS = 1000  # a run costs less than a cent, so prices are of as many runs


def positive(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 0 or more")
    return value


def candidates(text: str) -> list[float]:
    return [positive(each) for each in text.split(",")]


def choose(args) -> tuple[list[str], list[tuple[str, list[float], str]]]:
    """The step levers that pay on this machine alone, and the ratios of a step's time for each."""
    names = [name for name in told([str(args.frugal), "--list"])["levers"]]
    ratios: dict[str, list[float]] = {name: [] for name in ["again", *names]}
    for turn in range(args.rounds):
        def seconds(levers: str) -> float:
            flags = ["--levers", levers] if levers else []
            return told([str(args.frugal), "--seed", "1", "--epochs", "1", "--target", "2", "--steps",
                         str(args.steps), "--threads", str(args.threads), "--data", str(args.data),
                         *flags])["seconds"]
        print(f"step levers, round {turn + 1} of {args.rounds}", file=sys.stderr)
        plain = seconds("")
        ratios["again"].append(seconds("") / plain)
        for name in names:
            ratios[name].append(seconds(name) / plain)
    floor = noise_floor(ratios["again"])
    said = [(name, ratios[name], verdict(ratios[name], floor)) for name in names]
    return [name for name, _, found in said if found == LESS], said


class Course:
    def __init__(self, args, levers: list[str], folder: pathlib.Path, rates: dict[str, float] | None = None):
        self.args, self.levers, self.folder = args, levers, folder
        self.rates = rates or {"plain": args.rates[0], "runs": args.rates[0]}
        self.runs: dict[str, list[dict]] = {stage: [] for stage in STAGES}
        # Of a whole stage, as most runs are interrupted once: each would have its notice.
        self.kills = {stage: 0 for stage in STAGES}

    def command(self, stage: str, seed: int, run: pathlib.Path) -> list[str]:
        args = self.args
        command = [str(args.frugal), "--stage", stage, "--seed", str(seed), "--target", str(args.target), "--threads",
                   str(args.threads), "--data", str(args.data), "--run", str(run)]  # fmt: skip
        if stage in ("steps", "runs") and self.levers:
            command += ["--levers", ",".join(self.levers)]
        rate, epochs = ("runs", args.schedule_epochs) if stage == "runs" else ("plain", args.epochs)
        return command + ["--lr", str(self.rates[rate]), "--epochs", str(epochs)]

    def tune(self) -> dict[str, list[tuple[float, float]]]:
        """The median of the images to the target for each candidate rate; infinite where it is missed. Takes the best."""
        found: dict[str, list[tuple[float, float]]] = {"plain": [], "runs": []}
        for stage, tried in found.items():
            for rate in self.args.rates:
                self.rates[stage] = rate
                images = []
                for seed in TUNING_SEEDS:
                    run = self.folder / f"tune-{stage}-{rate}-{seed}"
                    run.mkdir()
                    figures = told(self.command(stage, seed, run))
                    images.append(figures["samples"] if figures["reached"] else math.inf)
                tried.append((rate, statistics.median(images)))
                print(f"{stage}, rate {rate:g}: {tried[-1][1]:,.0f} images to the target", file=sys.stderr)
            self.rates[stage] = min(tried, key=lambda each: each[1])[0]
        return found

    def train(self, stage: str, seed: int) -> dict:
        """One run to its end, in as many processes as the interruptions make of it."""
        run = self.folder / f"{stage}-{seed}"
        run.mkdir()
        # The same moments in every stage of a seed, counted from each start.
        chance = random.Random(seed)
        kills, starts, began = [], 0, time.monotonic()
        while True:
            starts += 1
            with subprocess.Popen(self.command(stage, seed, run), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, env=os.environ | QUIET) as process:  # fmt: skip
                interrupted = False
                wait = chance.expovariate(1 / self.args.between) if stage != "plain" and self.args.between else None
                try:
                    out, error = process.communicate(timeout=wait)
                except subprocess.TimeoutExpired:
                    how = signal.SIGTERM if self.kills[stage] % 2 == 0 else signal.SIGKILL
                    process.send_signal(how)
                    out, error = process.communicate()
                    interrupted = process.returncode != 0
                    if interrupted:
                        kills.append(how.name)
                        self.kills[stage] += 1
            if interrupted or process.returncode == AGAIN:
                # A signal that does not come from here, such as a scheduler's, counts too.
                if starts > 100:
                    raise Failed("a run was started 100 times and has not ended; set a larger --between.")
                continue
            if process.returncode != 0:
                raise Failed(f"stage {stage} ended with exit code {process.returncode}:\n{error.strip()[-2000:]}")
            break
        seconds = time.monotonic() - began
        figures = json.loads(out.strip().splitlines()[-1])
        if not figures["reached"]:
            best = max((accuracy for _, accuracy in figures["validations"]), default=0)
            print(f"  {stage}, seed {seed}: the target was not reached; best accuracy {best:.4f}", file=sys.stderr)
        lost = 0.0
        log = run / "metrics.jsonl"
        if log.exists():
            for line in log.read_text().splitlines():
                event = json.loads(line)
                if event.get("event") == "resume":
                    lost += event.get("seconds_lost") or 0
        return {"seed": seed, "seconds": seconds, "interruptions": len(kills),
                "without_notice": kills.count("SIGKILL"), "lost": lost,
                "training": figures["seconds"], "samples": figures["samples"], "recipe": figures["recipe"],
                "reached": figures["reached"],
                "accuracy": figures["validations"][-1][1] if figures["validations"] else 0.0}  # fmt: skip

    def all(self) -> None:
        order = random.Random(1)
        for seed in range(1, self.args.seeds + 1):
            stages = order.sample(list(STAGES), len(STAGES))
            for stage in stages:
                print(f"seed {seed} of {self.args.seeds}: {stage}", file=sys.stderr)
                self.runs[stage].append(self.train(stage, seed))

    def price(self, stage: str) -> float:
        return self.args.on_demand if stage == "plain" else self.args.spot

    def missed(self, stage: str) -> int:
        return sum(not run["reached"] for run in self.runs[stage])

    def spread(self, stage: str, figure) -> tuple[float, float, float]:
        values = [figure(run) for run in self.runs[stage]]
        return statistics.median(values), min(values), max(values)

    def cost(self, stage: str) -> tuple[float, float, float]:
        """Of RUNS runs: median, least, greatest."""
        return self.spread(stage, lambda run: run["seconds"] / 3600 * self.price(stage) * RUNS)


def waterfall(course: Course) -> dict:
    """levers.json, as report.html reads it; the total after each lever."""
    steps = []
    for stage, text in STAGES.items():
        if course.missed(stage):
            continue
        seconds = course.spread(stage, lambda run: run["seconds"])[0]
        note = f"median of {len(course.runs[stage])} seeds"
        if stage != "plain":
            note += f", {sum(run['interruptions'] for run in course.runs[stage])} interruptions"
        steps.append({"name": text, "value": course.cost(stage)[0], "hours": RUNS * seconds / 3600, "note": note})
    title = f"{RUNS:,} runs on Fashion-MNIST to an accuracy of {course.args.target}"
    return {"version": 1, "currency": "USD", "title": title, "unit": "USD", "steps": steps}


def bars(levers: dict, width: int = 40) -> str:
    """The waterfall as text: what is left after each lever, and what it took off or added."""
    steps = levers["steps"]
    most = max((step["value"] for step in steps), default=0) or 1
    wide = max((len(step["name"]) for step in steps), default=0)
    lines = [levers["title"] + ", in USD"]
    before = None
    for step in steps:
        change = "" if before is None else f"  {step['value'] - before:+.2f}"
        filled = round(width * step["value"] / most)
        gone = 0 if before is None else max(0, round(width * before / most) - filled)
        lines.append(f"{step['name']:{wide}}  {'#' * filled}{'-' * gone}{' ' * (width - filled - gone)} {step['value']:8.2f}{change}")
        before = step["value"]
    return "\n".join(lines)


def range_of(spread: tuple[float, float, float], digits: int) -> str:
    median, least, most = (f"{value:,.{digits}f}" for value in spread)
    return f"{median} ({least} to {most})"


def table(course: Course) -> str:
    rows = ["| run | term | USD/hour | seconds | images | interruptions, without notice, work lost | USD of 1,000 runs | of plain |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    # A plain run that gave up early is no measure of one that reached the target.
    plain = 0 if course.missed("plain") else course.cost("plain")[0]
    for stage, text in STAGES.items():
        runs = course.runs[stage]
        kills = sum(run["interruptions"] for run in runs)
        hard = sum(run["without_notice"] for run in runs)
        lost = sum(run["lost"] for run in runs)
        end = ["-", "-"] if course.missed(stage) else [range_of(course.cost(stage), 2),
                                                       f"{course.cost(stage)[0] / plain:.2f}" if plain else "-"]
        if course.missed(stage):
            end[0] = f"the target was missed in {course.missed(stage)} of {len(runs)}"
        rows.append("| " + " | ".join([
            text, TERM[stage] or "-", f"{course.price(stage):g}",
            range_of(course.spread(stage, lambda run: run["seconds"]), 1),
            range_of(course.spread(stage, lambda run: run["samples"]), 0),
            f"{kills}, {hard}, {lost:.1f} s" if stage != "plain" else "-", *end]) + " |")
    return "\n".join(rows)


def verdicts(said: list[tuple[str, list[float], str]], levers: list[str]) -> str:
    rows = ["| step lever alone | time, of plain | verdict | used |", "| --- | --- | --- | --- |"]
    for name, ratios, found in said:
        text = f"`{LEVERS[name]}`" if "<" in LEVERS[name] else LEVERS[name]
        rows.append(f"| {text} | {min(ratios):.3f} to {max(ratios):.3f} | {found} | {'yes' if name in levers else 'no'} |")
    return "\n".join(rows)


def rates(found: dict[str, list[tuple[float, float]]]) -> str:
    """What tuning has found: images to the target for each candidate."""
    rows = ["| learning rate | constant: images | schedule: images |", "| --- | --- | --- |"]
    for (rate, plain), (_, schedule) in zip(found["plain"], found["runs"], strict=True):
        rows.append(f"| {rate:g} | " + " | ".join(
            f"{images:,.0f}" if math.isfinite(images) else "missed" for images in (plain, schedule)) + " |")
    return "\n".join(rows)


def written(course: Course, said, levers: list[str], found) -> str:
    args = course.args
    threads = f"{args.threads} thread{'s' * (args.threads > 1)}" if args.threads else "all threads"
    every = f"an interruption every {args.between:g} s on average" if args.between else "no interruptions"
    return "\n".join([
        "", f"On {machine()}; LibTorch {version_of(args.torch)}; {datetime.date.today():%d %B %Y}; {threads}; "
        f"{args.seeds} seeds, accuracy {args.target}, {every}. Medians, with the least and the greatest.",
        f"Prices: {args.on_demand:g} USD per hour on demand and {args.spot:g} on spot ({args.prices_from}).",
        f"Learning rates: {course.rates['plain']:g}, constant; {course.rates['runs']:g}, the schedule's peak.",
        "", table(course), "", verdicts(said, levers), "", rates(found), "", "```text", bars(waterfall(course)), "```", ""])  # fmt: skip


def main() -> int:
    parser = parser_of(__doc__, "course")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--target", type=float, default=0.88, help="accuracy on 10,000 images held out of the training set")
    parser.add_argument("--on-demand", type=positive, default=0.085, help="USD per hour of the machine")
    parser.add_argument("--spot", type=positive, default=0.045, help="USD per hour of the same machine on spot")
    parser.add_argument("--prices-from", default="a quarter of the example of the EC2 Auto Scaling user guide for c5.2xlarge",
                        help="source and date of the prices, for the table")  # fmt: skip
    parser.add_argument("--between", type=positive, default=10,
                        help="mean seconds between interruptions on spot; 0: none")  # fmt: skip
    parser.add_argument("--rates", type=candidates, default="1e-3,2e-3,4e-3,8e-3",
                        help="learning rates to choose from, for the constant and for the schedule's peak")  # fmt: skip
    parser.add_argument("--epochs", type=int, default=20, help="the most that a constant rate gets")
    parser.add_argument("--schedule-epochs", type=int, default=5, help="length of the schedule")
    parser.add_argument("--rounds", type=int, default=3, help="of measuring step levers")
    parser.add_argument("--steps", type=int, default=150, help="of each run in these rounds")
    parser.add_argument("--threads", type=int, default=1, help="0: as many as LibTorch takes; a network this small likes one")
    parser.add_argument("--data", type=pathlib.Path, default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--levers-json", type=pathlib.Path, help="file for the waterfall, levers.json")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/course.md")
    args = parse(parser)
    if args.seeds < 1 or args.rounds < 1:
        parser.error("there is at least one seed and one round.")
    if args.write and (args.seeds < 3 or args.rounds < 3):
        parser.error("--write is for three seeds and three rounds or more.")
    try:
        with tempfile.TemporaryDirectory(prefix="bench-course-") as folder:
            levers, said = choose(args)
            course = Course(args, levers, pathlib.Path(folder))
            found = course.tune()
            course.all()
    except (Failed, OSError) as error:
        print(f"course: {error}", file=sys.stderr)
        return 2
    if args.write and not all(any(run["without_notice"] for run in course.runs[stage]) for stage in ("spot", "steps")):
        print("course: no run was killed without notice, so the figures would flatter spot; set a shorter --between or "
              "more --seeds.", file=sys.stderr)  # fmt: skip
        return 2
    print(rates(found) + "\n\n" + verdicts(said, levers) + "\n\n" + table(course) + "\n\n" + bars(waterfall(course)))
    if args.json:
        args.json.write_text(json.dumps({"runs": course.runs, "levers": levers, "steps": said, "rates": found}, indent=1) + "\n")
    if args.levers_json:
        args.levers_json.write_text(json.dumps(waterfall(course), indent=1) + "\n")
    if args.write:
        write_between(PAGE, BEGIN, END, written(course, said, levers, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
