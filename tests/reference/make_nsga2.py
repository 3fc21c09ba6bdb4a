# SPDX-License-Identifier: Apache-2.0
"""Writes nsga2.json: the parents that Optuna's NSGA-II chooses, generation by generation, from scripted results.

Needs requirements/search.txt alone.
"""

import json
from pathlib import Path

import numpy
import optuna
from optuna.samplers.nsgaii._elite_population_selection_strategy import (
    NSGAIIElitePopulationSelectionStrategy,
    _calc_crowding_distance,
    _rank_population,
)
from optuna.trial import create_trial

optuna.logging.set_verbosity(optuna.logging.ERROR)


def is_clear(study, pool: list, size: int) -> bool:
    """Whether no trial that stays has the same front and distance as one that goes."""
    count = 0
    for front in _rank_population(pool, study.directions):
        if count + len(front) > size:
            found = _calc_crowding_distance(list(front))
            distances = sorted((found[trial.number] for trial in front), reverse=True)
            cut = size - count
            return cut == 0 or distances[cut - 1] > distances[cut]
        count += len(front)
    return True


def case(name: str, size: int, generations: int, objectives: int, seed: int) -> dict:
    """Results that become better with each generation, by a little."""
    rng = numpy.random.default_rng(seed)
    results = rng.random((size * generations, objectives))
    results -= 0.03 * (numpy.arange(size * generations) // size)[:, None]
    study = optuna.create_study(directions=["minimize"] * objectives)
    study.add_trials([create_trial(values=row) for row in results.tolist()])
    select = NSGAIIElitePopulationSelectionStrategy(population_size=size)
    parents: list = []
    chosen = []
    for generation in range(generations):
        pool = parents + study.trials[generation * size : (generation + 1) * size]
        assert is_clear(study, pool, size), f"{name}: equal distances at the cut, take another seed"
        parents = select(study, pool)
        chosen.append(sorted(trial.number for trial in parents))
    return {"name": name, "population": size, "results": results.tolist(), "parents": chosen}


def main() -> None:
    cases = [
        case("two objectives", 20, 6, 2, 1),
        case("three objectives", 24, 5, 3, 6),
        case("one objective", 10, 4, 1, 3),
        case("a small population", 4, 8, 2, 12),
    ]
    rows = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in cases)
    text = f'{{\n "about": "Optuna {optuna.__version__}; parents of generations 1, 2, ..., by number",\n "cases": [\n{rows}\n ]\n}}\n'
    Path(__file__).with_name("nsga2.json").write_text(text)


if __name__ == "__main__":
    main()
