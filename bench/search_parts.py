# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/search.py. Each takes its Bench, prints its table and its bars, and returns its figures."""

import concurrent.futures
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import time
import types

import compile as compiling
from common import QUIET, Failed, bible

STEPS = {"samples": 540, "orchestration": 900, "promotion": 270, "architecture": 270, "gpt": 270, "kills": 81}
METHODS = {
    "halving": "SuccessiveHalving of random candidates",
    "evolution": "RandomSearch with Evolution",
    "hyperband": "Hyperband with Tpe",
}
CHECKPOINT_EVERY = 5  # steps, in the program's kills
PROGRAM = """
#include <frugal/search.hpp>
#include <iostream>
namespace fr = frugal;
struct Shape {{ int width = 16; }};
int main() {{
  fr::TensorDataset train(torch::randn({{512, 8}}), torch::randint(2, {{512}}), {{.batch = 32}});
  fr::TensorDataset valid(torch::randn({{128, 8}}), torch::randint(2, {{128}}), {{.batch = 64, .shuffle = false}});
  fr::SearchSpace const space{{
      fr::product(fr::Recipe<fr::Schedule<fr::Cosine>>{{}}, fr::Axis<fr::Optimize<fr::AdamW>, fr::Optimize<fr::SGD>>{{}},
                  fr::Axis<fr::Without, fr::ClipNorm<>>{{}}{more}),
      fr::vary<&fr::Optimize<fr::AdamW>::lr, &fr::Optimize<fr::SGD>::lr>(fr::LogUniform{{1e-4, 1e-1}}),
      fr::vary<&Shape::width>(fr::Int{{4, 64}})}};
  auto const make = [](Shape const& shape) {{
    return torch::nn::Sequential(torch::nn::Linear(8, shape.width), torch::nn::ReLU(), torch::nn::Linear(shape.width, 2));
  }};
  fr::SearchJob const job{{make, fr::CrossEntropy{{}}, train, valid, fr::Validate<fr::Accuracy>{{}}, fr::Checkpoint<fr::Every<50>>{{}}}};
  auto const found = fr::search(space, job, {{.settings = {{.run_dir = "search", .steps = 270}}}},
                                fr::SuccessiveHalving<fr::Eta<3>>{{.trials = 27}}, fr::Tpe{{}});
  std::cout << found << found.code;
  return found.exit_code();
}}
"""
RECIPES = {4: "", 16: ", fr::Axis<fr::Without, fr::Accumulate<4>>{}, fr::Axis<fr::Without, fr::Average<fr::Ema<0.9>>>{}"}


def same_as_replayed(real: dict, replayed: dict) -> None:
    """A search that runs decides as its replay on the curves of all trials."""
    for what in ("samples", "winner", "values"):
        if real[what] != replayed[what]:
            raise Failed(f"a search that runs and its replay differ in {what}: {real[what]} and {replayed[what]}")


def samples(bench) -> dict:
    steps, pool, of = bench.steps(STEPS["samples"]), bench.args.trials, bench.args.trials * 2 // 3
    begin = time.monotonic()
    found = bench.workers("curves", "pool", "--steps", steps, "--trials", pool, "--of", of)
    print(f"{pool} candidates of {steps} steps in full: {time.monotonic() - begin:.0f} s with two workers")
    print(found["schedule"])
    real = bench.program("halving", "real", "--steps", steps, "--trials", of)
    same_as_replayed(real, found["first"])
    print(f"the first {of} as a search: {real['samples']:,} samples, winner {real['winner']}, as replayed")
    resamples = found["resamples"]
    share = statistics.mean(each["samples"] / each["in_full"] for each in resamples)
    ranks = [each["rank"] for each in resamples]
    lost = statistics.median(each["loss"] - min(curve[-1] for curve in found["curves"]) for each in resamples)
    print(f"ranks of {len(ranks)} winners in full: {' '.join(map(str, ranks))}; median of their loss above the pool's best {lost:.4f}")
    bench.bar("samples of halving over training all in full", share, 0.35)
    bench.bar(f"winners of {len(ranks)} among the best three in full", sum(rank <= 3 for rank in ranks), 0.9 * len(ranks), "least")
    return found | {"real": real}


def orchestration(bench) -> dict:
    args, steps = bench.args, bench.steps(STEPS["orchestration"])
    ours = bench.program("orchestration", "orchestration", "--steps", steps, "--trials", 6, "--rounds", args.rounds)
    if not ours["same"]:
        raise Failed("a Trainer by hand ended with another loss than the search's trial")
    rivals = {"Optuna": [], "Ray Tune": []}
    scripts = {"Optuna": "search_optuna.py", "Ray Tune": "search_tune.py"}
    words = ("--data", args.data, "--steps", steps, "--candidates", json.dumps(ours["candidates"]))
    for number in range(args.rounds):
        for name, script in scripts.items():
            # Unix sockets of Ray have short names.
            with tempfile.TemporaryDirectory(prefix="rival-") as folder:
                rivals[name].append(bench.python(script, "--folder", folder, *words))
    rows = {"frugal": [(each["search"], each["own"]) for each in ours["rounds"]]}
    rows |= {name: [(each["wall"], sum(each["loops"])) for each in rounds] for name, rounds in rivals.items()}
    print(f"six trials of {steps} steps, medians of {args.rounds} rounds")
    print(f"{'':12}{'wall, s':>10}{'runs, s':>10}{'ratio':>8}{'a trial more, ms':>18}")
    ratios = {}
    for name, rounds in rows.items():
        ratios[name] = statistics.median(wall / runs for wall, runs in rounds)
        more = statistics.median((wall - runs) / 6 for wall, runs in rounds)
        print(f"{name:12}{statistics.median(wall for wall, _ in rounds):10.2f}{statistics.median(runs for _, runs in rounds):10.2f}"
              f"{ratios[name]:8.3f}{1e3 * more:18.1f}")  # fmt: skip
    print(f"Ray itself starts in {statistics.median(each['start'] for each in rivals['Ray Tune']):.1f} s, which are not in the table")
    by_hand = [each["search"] / each["by_hand"] for each in ours["rounds"]]
    print(f"search() over the same runs by Trainers by hand: {' '.join(f'{each:.3f}' for each in by_hand)}")
    bench.bar("wall time of search() over its trials' own seconds", ratios["frugal"], 1.02)
    return {"frugal": ours, **rivals}


def promotion(bench) -> dict:
    found = bench.program("halving", "promotion", "--steps", bench.steps(STEPS["promotion"]), "--trials", 27)
    # A run that ends looks whether its epoch has ended with it: one batch, which is not trained.
    looked_at = found["complete"] * found["batch"]
    twice = found["handed_out"] - looked_at - found["samples"]
    promotions = sum(len(each) - 1 for each in found["values"])
    print(f"{promotions} promotions: the source handed out {found['handed_out']:,} samples, {looked_at} of them after a run's last step; "
          f"the trials count {found['samples']:,}")  # fmt: skip
    bench.bar("samples that promotions train twice", twice, 0)
    return found


def architecture(bench) -> dict:
    args, steps = bench.args, bench.steps(STEPS["architecture"])

    def search(method: str, seed: int) -> dict:
        return bench.program("architecture", f"{method}-{seed}", "--method", method, "--seed", seed, "--steps", steps,
                             "--budget", args.budget)  # fmt: skip

    found = {method: [] for method in METHODS}
    with concurrent.futures.ThreadPoolExecutor(2) as two:
        runs = [(method, two.submit(search, method, seed)) for seed in range(1, args.seeds + 1) for method in METHODS]
        for method, run in runs:
            found[method].append(run.result())
    print(f"{args.seeds} seeds, a budget of {args.budget} runs of {steps} steps each; the winner by test images")
    print(f"{'':42}{'trials':>8}{'samples':>12}{'accuracy':>10}{'spread':>8}{'loss':>9}{'spread':>8}  compared with halving")
    rival = [each["accuracy"] for each in found["halving"]]
    for method, text in METHODS.items():
        rounds = found[method]
        accuracy, loss = ([each[what] for each in rounds] for what in ("accuracy", "loss"))
        verdict = "" if method == "halving" else "at least as good" if statistics.mean(accuracy) >= statistics.mean(rival) else "no gain"
        print(f"{text:42}{rounds[0]['trials']:8}{max(each['samples'] for each in rounds):12,}{100 * statistics.mean(accuracy):10.2f}"
              f"{100 * statistics.stdev(accuracy):8.2f}{statistics.mean(loss):9.4f}{statistics.stdev(loss):8.4f}  {verdict}")  # fmt: skip
    return found


def compile(bench) -> dict:  # noqa: A001  it has the name of its part
    args = types.SimpleNamespace(torch=bench.args.torch, include=compiling.ROOT / "include", rounds=min(bench.args.rounds, 3))
    compiler = bench.args.cxx or "g++"
    try:
        header, use = compiling.precompile(compiler, args, bench.folder, "O2")
        sources = {}
        for recipes, more in RECIPES.items():
            sources[recipes] = bench.folder / f"recipes_{recipes}.cpp"
            sources[recipes].write_text(PROGRAM.format(more=more))
        costs = compiling.interleave(args, list(RECIPES), lambda recipes: compiling.compile_once(
            [compiler, *compiling.flags(args), *use, *compiling.options_of("O2", bench.folder), str(sources[recipes])]),
            "search, O2")  # fmt: skip
    except compiling.Failed as error:
        raise Failed(str(error)) from error
    cost = {recipes: vars(compiling.fastest(of)) for recipes, of in costs.items()}
    for recipes, each in cost.items():
        print(f"{recipes} recipes: {each['seconds']:.1f} s, {each['mib']:.0f} MiB; the precompiled header once {header.seconds:.1f} s")
    bench.bar("seconds of the compiler for one recipe more", (cost[16]["seconds"] - cost[4]["seconds"]) / 12, 5)
    return {"header": vars(header), "recipes": cost}


def gpt(bench) -> dict:
    steps, trials = bench.steps(STEPS["gpt"]), bench.args.gpt_trials
    words = ("--job", "gpt", "--text", bench.args.text or bible(bench.folder), "--steps", steps, "--trials", trials)
    found = bench.workers("curves", "gpt-pool", *words, "--of", trials, "--resamples", 0)
    real = bench.program("halving", "gpt", *words)
    same_as_replayed(real, found["first"])
    losses = sorted(curve[-1] for curve in found["curves"])
    print(found["schedule"])
    share = real["samples"] / found["first"]["in_full"]
    print(f"share of the samples {share:.3f}; loss {real['loss']:.4f}, number {found['first']['rank']} of {trials}; "
          f"in full the median is {statistics.median(losses):.4f}, the best {losses[0]:.4f}")  # fmt: skip
    return found | {"real": real}


def repeated(log: pathlib.Path) -> tuple[int, int]:
    """Steps that were trained again, and the most of them at once."""
    last: dict[str, int] = {}
    total = most = 0
    for line in log.read_text().splitlines():
        trial, step = line.split()
        again = max(0, last.get(trial, 0) - int(step) + 1)
        total, most = total + again, max(most, again)
        last[trial] = int(step)
    return total, most


def killed_search(bench, draw: random.Random, command: list[str], calm: dict) -> tuple[int, int]:
    """Kills workers of one search until it has ended, one in three by SIGTERM: the number of kills, and of trials that differ."""

    def start():
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | QUIET)

    workers = [start(), start()]
    kills = 0
    try:
        while True:
            time.sleep(draw.uniform(0.6, 1.6))
            which = draw.randrange(2)
            if workers[which].poll() is not None:
                break
            workers[which].send_signal(draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            _, errors = workers[which].communicate()
            if workers[which].returncode not in (-signal.SIGKILL, -signal.SIGTERM, 75, 0):
                raise Failed(f"a worker ended with exit code {workers[which].returncode}:\n{errors.strip()}")
            kills += workers[which].returncode != 0
            workers[which] = start()
        lost = 0
        for worker in workers:
            said, errors = worker.communicate()
            if worker.returncode != 0:
                raise Failed(f"a worker ended with exit code {worker.returncode}:\n{errors.strip()}")
            found = json.loads(said)
            lost = max(lost, sum(found[what][at : at + 1] != [each] for what in ("values", "states")
                                 for at, each in enumerate(calm[what])))  # fmt: skip
        return kills, lost + (found["winner"] != calm["winner"])
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def kills(bench) -> dict:
    words = ("--steps", bench.steps(STEPS["kills"]), "--trials", 27)
    calm = bench.program("kills", "calm", *words, "--milliseconds", 0)
    seed = random.randrange(10**9)
    draw = random.Random(seed)
    killed = lost = total = most = searches = 0
    while killed < bench.args.kills:
        searches += 1
        name = f"killed-{searches}"
        more, differ = killed_search(bench, draw, bench.command("kills", name, *words, "--milliseconds", 50), calm)
        again, at_once = repeated(bench.folder / f"{name}.steps")
        killed, lost, total, most = killed + more, lost + differ, total + again, max(most, at_once)
    print(f"{killed} kills in {searches} searches of 27 trials (seed {seed}): {total} steps repeated, {total / max(killed, 1):.2f} a kill, "
          f"at most {most}; a checkpoint every {CHECKPOINT_EVERY} steps")  # fmt: skip
    bench.bar("trials that are lost or have another result", lost, 0)
    bench.bar("steps repeated by a kill at most over the checkpoint interval", most / CHECKPOINT_EVERY, 1)
    return {"kills": killed, "searches": searches, "seed": seed, "lost": lost, "repeated": total, "most": most}
