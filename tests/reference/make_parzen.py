# SPDX-License-Identifier: Apache-2.0
"""Writes parzen.json: densities and samples of Optuna's Parzen estimator, and of its normal distribution.

Needs requirements/search.txt alone.
"""

import functools
import json
from pathlib import Path

import numpy
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.distributions import distribution_to_json
from optuna.samplers._tpe import _truncnorm
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_weights

# Equal observations share deviations in their order, whatever numpy sorts with on this machine.
numpy.argsort = functools.partial(numpy.argsort, kind="stable")

SETTINGS = _ParzenEstimatorParameters(
    prior_weight=1.0,
    consider_magic_clip=True,
    consider_endpoints=False,
    weights=default_weights,
    multivariate=True,
)
NAMES = CategoricalDistribution(["adam", "sgd", "lion", "adagrad"])
KINDS = {
    "real": FloatDistribution(-2.5, 7.25),
    "rate": FloatDistribution(1e-5, 0.1, log=True),
    "whole": IntDistribution(-3, 5),
    "steps": IntDistribution(8, 256, step=8),
    "log": IntDistribution(1, 2000, log=True),
    "names": NAMES,
    "pair": CategoricalDistribution(["yes", "no"]),
}


def drawn(kind, count: int, rng) -> list:
    """Values of a distribution, two thirds of them in its lower quarter."""
    units = rng.random(count)
    units[: 2 * count // 3] *= 0.25
    rng.shuffle(units)
    if isinstance(kind, CategoricalDistribution):
        return [float(int(u * len(kind.choices))) for u in units]
    low, high = kind.low, kind.high
    if kind.log:
        found = numpy.exp(numpy.log(low) + units * (numpy.log(high) - numpy.log(low)))
    else:
        found = low + units * (high - low)
    if kind.step is not None:
        found = low + numpy.round((found - low) / kind.step) * kind.step
    return numpy.clip(found, low, high).tolist()


def edges(kind) -> list:
    if isinstance(kind, CategoricalDistribution):
        return [float(i) for i in range(len(kind.choices))]
    return [kind.low, kind.high]


def case(name: str, kinds: list, observed: int, seed: int, samples: int, weights=None, digits: int = 6) -> dict:
    rng = numpy.random.default_rng(seed)
    space = {f"x{i}": KINDS[kind] for i, kind in enumerate(kinds)}
    columns = {key: numpy.array(drawn(kind, observed, rng), dtype=float) for key, kind in space.items()}
    given = None if weights is None else numpy.array(weights)
    estimator = _ParzenEstimator(columns, space, SETTINGS, given)
    points = {key: drawn(kind, 12, rng) for key, kind in space.items()}
    if len(kinds) == 1:
        points["x0"] = edges(space["x0"]) + points["x0"]
    logs = estimator.log_pdf({key: numpy.array(value) for key, value in points.items()})
    sampled = estimator.sample(numpy.random.RandomState(seed), samples)
    if isinstance(sampled, dict):
        sampled = numpy.array([sampled[key] for key in space]).T
    return {
        "name": name,
        "kinds": [json.loads(distribution_to_json(kind)) for kind in space.values()],
        "observed": numpy.array([columns[key] for key in space]).T.tolist(),
        "weights": weights,
        "points": numpy.array([points[key] for key in space]).T.tolist(),
        "logs": logs.tolist(),
        "samples": [[float(f"%.{digits}g" % x) for x in row] for row in sampled.tolist()],
    }


def normal() -> dict:
    ends = [(-1, 2), (-0.5, 0.5), (0, 1e-3), (-9, -8), (8, 9), (-40, -38), (35, 60), (-60, 1), (3, 3.25), (-20.5, -20)]
    a = numpy.array([float(x) for x, _ in ends])
    b = numpy.array([float(x) for _, x in ends])
    units = [0.001, 0.25, 0.5, 0.9, 0.999]
    return {
        "ends": ends,
        "units": units,
        "masses": _truncnorm._log_gauss_mass(a, b).tolist(),
        "quantiles": [_truncnorm.ppf(numpy.array(units), x, y).tolist() for x, y in zip(a, b)],
    }


def main() -> None:
    cases = [case(kind, [kind], 14, 20 + i, 400) for i, kind in enumerate(KINDS)]
    cases += [
        case("real, nothing observed", ["real"], 0, 1, 0),
        case("names, nothing observed", ["names"], 0, 2, 0),
        case("log, one observed", ["log"], 1, 3, 0),
        case("rate, 60 observed", ["rate"], 60, 4, 300),
        case("whole, 26 observed", ["whole"], 26, 5, 0),
        case("steps, 130 observed", ["steps"], 130, 6, 0),
        case("real, given weights", ["real"], 9, 7, 0, [1.0] * 3 + [0.25] * 6),
        case("mixed", ["rate", "names", "log", "real", "steps", "pair"], 33, 8, 400),
        case("names and a number", ["names", "whole"], 11, 9, 300),
    ]
    content = {"about": f"Optuna {optuna.__version__}; points in rows; names are indices", "normal": normal()}
    head = ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in content.items())
    rows = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in cases)
    Path(__file__).with_name("parzen.json").write_text(f'{{\n{head},\n "cases": [\n{rows}\n ]\n}}\n')


if __name__ == "__main__":
    main()
