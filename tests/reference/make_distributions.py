# SPDX-License-Identifier: Apache-2.0
"""Writes distributions.json: Optuna's texts of distributions, and its values of numbers between 0 and 1.

Needs requirements/search.txt alone.
"""

import json
from pathlib import Path

import numpy
import optuna
from optuna._transform import _SearchSpaceTransform
from optuna.distributions import (CategoricalDistribution, FloatDistribution, IntDistribution,
                                  distribution_to_json)  # fmt: skip

KINDS = {
    "real": FloatDistribution(-2.5, 7.25),
    "rate": FloatDistribution(1e-4, 0.1, log=True),
    "one": FloatDistribution(3.0, 3.0),
    "whole": IntDistribution(-3, 5),
    "steps": IntDistribution(8, 64, step=8),
    "uneven steps": IntDistribution(1, 10, step=4),
    "log": IntDistribution(1, 1000, log=True),
}
UNITS = [0.001, 0.13, 0.25, 0.49, 0.51, 0.77, 0.9, 0.999]


def values(distribution) -> list:
    transform = _SearchSpaceTransform({"x": distribution}, transform_0_1=True)
    return [float(transform.untransform(numpy.array([u]))["x"]) for u in UNITS]


def main() -> None:
    cases = [{"name": name, "text": distribution_to_json(each), "values": values(each)} for name, each in KINDS.items()]
    choice = CategoricalDistribution(["adam", "sgd", 'with "quotes"'])
    cases.append({"name": "names", "text": distribution_to_json(choice), "values": []})
    others = [distribution_to_json(FloatDistribution(0, 1, step=0.25)), distribution_to_json(CategoricalDistribution([1, None]))]
    text = json.dumps({"about": f"Optuna {optuna.__version__}", "units": UNITS, "cases": cases, "others": others}, indent=1)
    Path(__file__).with_name("distributions.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
