# SPDX-License-Identifier: Apache-2.0
"""Writes sobol.json: points of torch.quasirandom.SobolEngine without scrambling."""

import torch
from torch.quasirandom import SobolEngine

from reference import deterministic, write


def points(dimensions: int, numbers: list) -> list:
    found = []
    for number in numbers:
        engine = SobolEngine(dimensions, scramble=False)
        if number:
            engine.fast_forward(number)
        found.append(engine.draw(1, dtype=torch.float64)[0].tolist())
    return found


def main() -> None:
    deterministic()
    cases = []
    for dimensions, numbers in ((1, [0, 1, 2, 3, 1000]), (5, [*range(20), 1023, 4096, 123456]), (60, [3, 77])):
        cases.append({"dimensions": dimensions, "numbers": numbers, "points": points(dimensions, numbers)})
    write("sobol.json", "make_sobol.py", {"about": "points in rows, in the order of the numbers", "cases": cases})


if __name__ == "__main__":
    main()
