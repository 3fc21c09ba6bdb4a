# SPDX-License-Identifier: Apache-2.0
"""Writes pareto.json: fronts, crowding distances and hypervolumes of Optuna, for scripted points.

Needs requirements/search.txt alone.
"""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy
import optuna
from optuna._hypervolume import compute_hypervolume
from optuna.samplers.nsgaii._elite_population_selection_strategy import _calc_crowding_distance
from optuna.study._multi_objective import _fast_non_domination_rank


def points(count: int, objectives: int, seed: int, steps: int) -> list:
    """Values on a grid of so many steps, so that some are equal; 0: any."""
    drawn = numpy.random.default_rng(seed).random((count, objectives))
    return (drawn if steps == 0 else numpy.floor(drawn * steps) / steps).tolist()


def case(name: str, all_points: list, reference: list) -> dict:
    values = numpy.array(all_points)
    ranks = _fast_non_domination_rank(values).tolist()
    front = [i for i, rank in enumerate(ranks) if rank == 0]
    trials = [SimpleNamespace(number=i, values=all_points[i]) for i in front]
    distances = _calc_crowding_distance(list(trials))
    return {
        "name": name,
        "points": all_points,
        "reference": reference,
        "ranks": ranks,
        "front": front,
        # -1: infinite.
        "crowding": [-1 if math.isinf(distances[i]) else distances[i] for i in front],
        # Of the points that the reference point bounds: Optuna takes no others.
        "hypervolume": float(compute_hypervolume(values[(values <= reference).all(1)], numpy.array(reference))),
    }


def main() -> None:
    cases = [
        case("one objective", points(9, 1, 1, 0), [0.9]),
        case("two objectives", points(60, 2, 2, 0), [1.0, 1.0]),
        case("two objectives, a few equal", points(60, 2, 3, 12), [1.0, 1.0]),
        case("three objectives", points(50, 3, 4, 0), [1.0, 0.9, 1.1]),
        case("three objectives, a few equal", points(40, 3, 5, 6), [1.0, 1.0, 1.0]),
        case("five objectives", points(24, 5, 6, 0), [1.0] * 5),
        case("one point", [[0.25, 0.5]], [1.0, 2.0]),
    ]
    text = json.dumps({"about": f"Optuna {optuna.__version__}; crowding: of the front, -1 is infinite", "cases": cases}, indent=1)
    Path(__file__).with_name("pareto.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
