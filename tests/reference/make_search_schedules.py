# SPDX-License-Identifier: Apache-2.0
"""Writes search_schedules.json: brackets by algorithm 1 of Hyperband's paper, and what Optuna's pruners
decide on scripted histories.

Needs requirements/search.txt alone.
"""

import json
import math
from pathlib import Path

import numpy
import optuna


def hyperband(least: int, most: int, eta: int) -> list:
    """Li et al. (2018), algorithm 1, with R = most / least and B = (s_max + 1) R, in units of `least`."""
    longest = most // least
    s_max = 0
    while eta ** (s_max + 1) <= longest:
        s_max += 1
    brackets = []
    for s in range(s_max, -1, -1):
        n = math.ceil((s_max + 1) / (s + 1) * eta**s)
        r = most / eta**s
        brackets.append([[n // eta**i, round(r * eta**i)] for i in range(s + 1)])
    return brackets


def asha(trials: int, eta: int, rungs: int, seed: int) -> dict:
    """Trials one after the other, each as far as SuccessiveHalvingPruner lets it go."""
    random = numpy.random.default_rng(seed)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=eta)
    study = optuna.create_study(pruner=pruner, direction="minimize")
    reports = []
    for _ in range(trials):
        trial = study.ask()
        for rung in range(rungs):
            value = float(random.normal())
            trial.report(value, step=eta**rung)
            pruned = bool(trial.should_prune())
            reports.append({"trial": trial.number, "rung": rung, "value": value, "pruned": pruned})
            if pruned:
                break
        study.tell(trial, state=optuna.trial.TrialState.PRUNED if pruned else None, values=None if pruned else value)
    return {"eta": eta, "reports": reports}


def median(trials: int, startup: int, warmup: int, interval: int, steps: int, seed: int) -> dict:
    random = numpy.random.default_rng(seed)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=startup, n_warmup_steps=warmup, interval_steps=interval)
    study = optuna.create_study(pruner=pruner, direction="minimize")
    reports = []
    for _ in range(trials):
        trial = study.ask()
        quality = float(random.normal())
        for step in range(warmup or interval, steps + 1, interval):
            value = quality + float(random.normal()) * 0.7 - step * 0.05
            trial.report(value, step=step)
            pruned = bool(trial.should_prune())
            reports.append({"trial": trial.number, "step": step, "value": value, "pruned": pruned})
            if pruned:
                break
        study.tell(trial, state=optuna.trial.TrialState.PRUNED if pruned else None, values=None if pruned else value)
    return {"startup": startup, "reports": reports}


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    brackets = [
        {"least": least, "most": most, "eta": eta, "brackets": hyperband(least, most, eta)}
        for least, most, eta in [(1, 81, 3), (1, 27, 3), (3, 81, 3), (1, 256, 4), (10, 640, 2), (100, 2700, 3), (7, 7, 3), (1, 243, 3)]
    ]
    cases = {
        "about": f"Optuna {optuna.__version__}; brackets: the paper's algorithm",
        "brackets": brackets,
        "asha": [asha(60, 3, 4, 1), asha(80, 2, 5, 2), asha(50, 4, 3, 3)],
        "median": [median(40, 5, 0, 1, 12, 4), median(30, 3, 4, 3, 16, 5), median(25, 0, 0, 2, 10, 6)],
    }
    Path(__file__).with_name("search_schedules.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
