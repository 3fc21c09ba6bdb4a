# SPDX-License-Identifier: Apache-2.0
"""Writes tpe.json: suggestions of Optuna's TPESampler with its defaults after recorded histories, over many seeds,
and which trials it takes as the good ones.

Needs requirements/search.txt alone.
"""

import functools
import json
import math
import warnings
from pathlib import Path

import numpy
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler
from optuna.samplers._tpe.sampler import _split_trials
from optuna.trial import TrialState, create_trial

# Equal observations share deviations in their order, whatever numpy sorts with on this machine.
numpy.argsort = functools.partial(numpy.argsort, kind="stable")
optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")

SEEDS = 300
RECIPES = CategoricalDistribution(["adam", "sgd", "lion"])
SETTINGS = [
    ("rate", FloatDistribution(1e-5, 0.1, log=True), [0, 1, 2]),
    ("depth", IntDistribution(2, 16, step=2), [0, 1, 2]),
    ("momentum", FloatDistribution(0.5, 0.99), [1, 2]),
    ("decay", CategoricalDistribution(["none", "linear", "cosine"]), [0]),
]
STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "running": TrialState.RUNNING}


def history(count: int, objectives: int, seed: int, pruned: bool, running: int) -> list:
    """Trials in rows: state, recipe, settings (names as indices, null where the recipe has none), results, steps."""
    rng = numpy.random.default_rng(seed)
    rows = []
    for number in range(count):
        recipe = int(rng.integers(3))
        rate = float(numpy.exp(rng.uniform(math.log(1e-5), math.log(0.1))))
        depth = int(2 * rng.integers(1, 9))
        momentum = float(rng.uniform(0.5, 0.99)) if recipe else None
        decay = int(rng.integers(3)) if recipe == 0 else None
        loss = (math.log10(rate) + 2.7) ** 2 + 0.02 * abs(depth - 10) + (0.3, 0.8, 0.0)[recipe]
        loss += (momentum - 0.9) ** 2 * 4 if recipe else 0.2 * decay
        results, steps, state = [loss + float(rng.normal()) * 0.05, depth * (1 + 0.1 * recipe)][:objectives], 90, "complete"
        if number >= count - running:
            results, steps, state = [], 0, "running"
        elif pruned and rng.random() < 0.6:
            steps, state = (10, 30)[int(rng.integers(2))], "pruned"
            results = [results[0] + 1]
        rows.append([state, recipe, [rate, depth, momentum, decay], results, steps])
    return rows


def trial_of(row: list) -> optuna.trial.FrozenTrial:
    state, recipe, settings, results, steps = row
    params, kinds = {"recipe": RECIPES.choices[recipe]}, {"recipe": RECIPES}
    for (name, kind, recipes), value in zip(SETTINGS, settings):
        if recipe in recipes:
            params[name], kinds[name] = kind.to_external_repr(value), kind
    return create_trial(
        state=STATES[state],
        params=params,
        distributions=kinds,
        values=results if state == "complete" else None,
        intermediate_values={steps: results[0]} if state == "pruned" else None,
    )


def suggestions(rows: list, objectives: int) -> list:
    trials = [trial_of(row) for row in rows]
    found = []
    for seed in range(SEEDS):
        study = optuna.create_study(directions=["minimize"] * objectives, sampler=TPESampler(seed=seed))
        study.add_trials(trials)
        trial = study.ask()
        recipe = RECIPES.choices.index(trial.suggest_categorical("recipe", RECIPES.choices))
        values = []
        for name, kind, recipes in SETTINGS:
            value = trial._suggest(name, kind) if recipe in recipes else None
            value = None if value is None else float("%.6g" % kind.to_internal_repr(value))
            values.append(value)
        found.append([recipe, values])
    return found


def split(rows: list, objectives: int, counts: list) -> list:
    study = optuna.create_study(directions=["minimize"] * objectives)
    study.add_trials([trial_of(row) for row in rows])
    return [[count, [trial.number for trial in _split_trials(study, study.trials, count)[0]]] for count in counts]


def points(count: int, objectives: int, seed: int, repeated: int) -> list:
    """Complete trials with results anywhere; so many of them have the results of an earlier one."""
    rng = numpy.random.default_rng(seed)
    results = rng.random((count, objectives)).tolist()
    for number in rng.choice(range(count // 2, count), repeated, replace=False):
        results[number] = results[rng.integers(number)]
    rows = history(count, 1, seed, False, 0)
    return [[state, recipe, settings, result, 90] for (state, recipe, settings, _, _), result in zip(rows, results)]


def main() -> None:
    named = {
        "complete trials": (history(30, 1, 1, False, 0), 1),
        "pruned trials": (history(45, 1, 2, True, 0), 1),
        "running trials": (history(24, 1, 3, False, 6), 1),
        "many trials": (history(150, 1, 4, True, 0), 1),
        "two objectives": (history(40, 2, 5, False, 0), 2),
    }
    cases = [
        {"name": name, "objectives": objectives, "trials": rows, "suggested": suggestions(rows, objectives)}
        for name, (rows, objectives) in named.items()
    ]
    counts = [1, 2, 3, 5, 8, 13, 21, 34, 40]
    splits = [
        {"name": name, "trials": rows, "below": split(rows, objectives, counts)}
        for name, rows, objectives in [
            ("one objective, pruned trials", history(40, 1, 6, True, 0), 1),
            ("two objectives", points(40, 2, 7, 0), 2),
            ("two objectives, a few equal", points(40, 2, 8, 15), 2),
            ("three objectives", points(40, 3, 9, 0), 3),
            ("three objectives, a few equal", points(40, 3, 10, 15), 3),
        ]
    ]
    lines = [json.dumps({"about": f"Optuna {optuna.__version__}; names are indices"})[1:-1]]
    for key, rows in (("cases", cases), ("splits", splits)):
        lines.append(f'"{key}": [\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]")
    Path(__file__).with_name("tpe.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
