# SPDX-License-Identifier: Apache-2.0
"""Writes range_test.json: numpy's results for losses over growing learning rates."""

import numpy as np

from reference import number, write


def curve(name: str, losses: list, keep: float) -> dict:
    """The smoothing from its definition, sum by sum, and numpy's lines through the points."""
    losses = np.array(losses, dtype=np.float64)
    smoothed = []
    for i in range(1, len(losses) + 1):
        weights = keep ** np.arange(i - 1, -1, -1)
        smoothed.append(float((weights * losses[:i]).sum() / weights.sum()))
    half = max(len(losses) // 20, 1)
    around = np.arange(-half, half + 1)
    slopes = {
        i: np.polyfit(around, smoothed[i - half : i + half + 1], 1)[0]
        for i in range(max(len(losses) // 10, half), len(losses) - half)
    }
    at = min(slopes, key=slopes.get)
    return {
        "name": name,
        "keep": keep,
        "losses": losses.tolist(),
        "smoothed": smoothed,
        "steepest": at if slopes[at] < 0 else None,
    }


def main() -> None:
    steps = np.arange(60)
    fall = 2.3 - 1.5 / (1 + np.exp(-(steps - 35) / 4)) + np.exp((steps - 55) / 2)
    noise = np.array([number(50, i) for i in range(60)])
    write(
        "range_test.json",
        "make_range_test.py",
        {
            "smoothed": "mean of the losses so far, each weighing `keep` times the one after it",
            "steepest": "place of the lowest slope of numpy.polyfit's line through a twentieth of the "
            "points on either side, behind the first tenth; null where none is negative",
            "curves": [
                curve("smooth", list(fall), 0.0),
                curve("noisy", list(fall + 0.05 * noise), 0.9),
                curve("rising", list(np.linspace(1, 2, 20)), 0.5),
            ],
        },
    )


if __name__ == "__main__":
    main()
