# SPDX-License-Identifier: Apache-2.0
"""Writes importance.json: PED-ANOVA's importances by Optuna, for scripted trials.

Needs requirements/search.txt alone.
"""

import json
import math
import warnings
from pathlib import Path

import numpy
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState, create_trial

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)

RECIPES = ["AdamW + BF16", "SGD", "Lion + BF16"]
# The kind, its bounds, and the recipes that have the setting; all, if there are none.
SETTINGS = {
    "lr": ("log", 1e-4, 1e-1, []),
    "decay": ("uniform", -0.5, 0.5, []),
    "width": ("int", 16, 256, 16, []),
    "layers": ("int", 1, 8, 1, []),
    "hidden": ("int", 3, 500, 1, []),
    "batch": ("log int", 1, 1024, []),
    "few": ("log int", 3, 17, []),
    "norm": ("choice", ["none", "layer", "rms", "batch"], []),
    "momentum": ("uniform", 0.0, 0.99, [1]),
    "beta": ("uniform", 0.8, 0.999, [0, 2]),
    "schedule": ("choice", ["cosine", "linear"], [0, 2]),
    "fixed": ("uniform", 0.5, 0.5, []),
}


def distribution(of: tuple):
    kind = of[0]
    if kind == "log":
        return FloatDistribution(of[1], of[2], log=True)
    if kind == "uniform":
        return FloatDistribution(of[1], of[2])
    if kind == "int":
        return IntDistribution(of[1], of[2], step=of[3])
    if kind == "log int":
        return IntDistribution(of[1], of[2], log=True)
    return CategoricalDistribution(of[1])


def draw(of: tuple, random) -> float:
    """A value as the library writes it: the index of a name."""
    kind = of[0]
    if kind == "log":
        return float(f"{math.exp(random.uniform(math.log(of[1]), math.log(of[2]))):.6g}")
    if kind == "uniform":
        return round(random.uniform(of[1], of[2]), 4)
    if kind == "int":
        return float(of[1] + of[3] * random.integers(0, (of[2] - of[1]) // of[3] + 1))
    if kind == "log int":
        return float(round(math.exp(random.uniform(math.log(of[1]), math.log(of[2])))))
    return float(random.integers(0, len(of[1])))


def values_of(recipe: int, at: dict, random) -> list:
    """Two objectives, both to be minimised; of a loss that is not a number and of infinity some."""
    loss = abs(math.log10(at["lr"]) + 2.5) + 0.3 * [0, 1, 0.2][recipe] + at["layers"] / 20 + 0.05 * random.normal()
    loss += abs(at["momentum"] - 0.9) if "momentum" in at else 0.2 * at["schedule"]
    return [round(loss, 6), round(at["width"] * at["layers"] / 100 + 0.01 * at["batch"], 6)]


def history(count: int, seed: int) -> list:
    random = numpy.random.default_rng(seed)
    trials = []
    for number in range(count):
        recipe = int(random.integers(0, len(RECIPES)))
        at = {name: draw(each, random) for name, each in SETTINGS.items() if recipe in (each[-1] or range(3))}
        values = values_of(recipe, at, random)
        state = "complete" if number % 7 else "pruned"
        if number % 11 == 5:
            values[0] = "inf"
        trials.append({"recipe": recipe, "values": [at.get(name) for name in SETTINGS], "objectives": values, "state": state})
    return trials


def optunas_trial(each: dict):
    params, distributions = {"recipe": RECIPES[each["recipe"]]}, {"recipe": CategoricalDistribution(RECIPES)}
    for (name, of), value in zip(SETTINGS.items(), each["values"]):
        if value is None:
            continue
        distributions[name] = distribution(of)
        params[name] = of[1][int(value)] if of[0] == "choice" else int(value) if "int" in of[0] else value
    return create_trial(state=TrialState.COMPLETE if each["state"] == "complete" else TrialState.PRUNED, params=params,
                        distributions=distributions, values=[float(value) for value in each["objectives"]])


def case(count: int, seed: int, objective: int, target: float, region: float) -> dict:
    trials = history(count, seed)
    study = optuna.create_study(directions=["minimize", "minimize"])
    study.add_trials([optunas_trial(each) for each in trials])

    def importances(normalize: bool) -> dict:
        evaluator = PedAnovaImportanceEvaluator(target_quantile=target, region_quantile=region)
        found = get_param_importances(study, evaluator=evaluator, target=lambda trial: trial.values[objective], normalize=normalize)
        # Those that are 0 come in any order.
        return dict(sorted(found.items()))

    return {"objective": objective, "target": target, "region": region, "trials": trials, "importance": importances(False),
            "share": importances(True)}


def main() -> None:
    settings = [{"name": name, "kind": each[0], "bounds": list(each[1:-1]), "recipes": each[-1]} for name, each in SETTINGS.items()]
    cases = [
        case(120, 1, 0, 0.1, 1.0),
        case(120, 1, 1, 0.1, 1.0),
        case(90, 2, 0, 0.25, 0.6),
        case(40, 3, 0, 0.5, 1.0),
        case(12, 4, 0, 0.1, 1.0),
        case(3, 5, 0, 0.1, 1.0),
    ]
    text = json.dumps({"about": f"Optuna {optuna.__version__}", "recipes": RECIPES, "settings": settings, "cases": cases})
    # A trial on a line.
    text = text.replace('{"recipe": ', '\n{"recipe": ').replace('{"objective"', '\n{"objective"').replace('{"name"', '\n{"name"')
    Path(__file__).with_name("importance.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
