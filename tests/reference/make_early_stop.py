# SPDX-License-Identifier: Apache-2.0
"""Writes early_stop.json: where Keras's EarlyStopping ends on recorded metric curves, and which weights it
restores."""

import math
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras  # noqa: E402
from reference import write  # noqa: E402

NAN = math.nan

# The default is that of frugal's EarlyStop<> too: lower is better, no threshold.
CASES = {
    "improves to the end": ([1.0, 0.9, 0.8, 0.7, 0.6], {"patience": 3}),
    "stalls": ([1.0, 0.8, 0.8, 0.8, 0.8, 0.8], {"patience": 3}),
    "stalls, patience 1": ([1.0, 0.8, 0.8, 0.7, 0.6], {"patience": 1}),
    "worsens": ([1.0, 1.1, 1.2, 1.3, 1.4], {"patience": 2}),
    "recovers in the last moment": (
        [1.0, 1.1, 1.2, 0.9, 1.0, 1.0, 0.8, 0.9, 0.9, 0.9, 0.7],
        {"patience": 3},
    ),
    "the curve ends before patience does": ([1.0, 1.1, 1.2], {"patience": 3}),
    "small improvements do not count": (
        [1.0, 0.95, 0.93, 0.91, 0.89, 0.85],
        {"patience": 2, "min_delta": 0.1},
    ),
    "small improvements add up against the best": (
        [1.0, 0.95, 0.89, 0.85, 0.78, 0.75, 0.72],
        {"patience": 2, "min_delta": 0.1},
    ),
    "exactly min_delta is no improvement": (
        [1.0, 0.75, 0.5, 0.25],
        {"patience": 1, "min_delta": 0.25},
    ),
    "higher is better": ([0.1, 0.5, 0.7, 0.69, 0.7, 0.6], {"patience": 2, "mode": "max"}),
    "higher is better, small improvements": (
        [0.1, 0.5, 0.55, 0.58, 0.62, 0.65, 0.66],
        {"patience": 2, "mode": "max", "min_delta": 0.1},
    ),
    "higher is better, below zero": (
        [-3.0, -2.0, -2.5, -1.9, -1.95, -2.0, -1.0],
        {"patience": 2, "mode": "max"},
    ),
    "a NaN uses up patience": ([1.0, NAN, 0.9, NAN, NAN, 0.8], {"patience": 2}),
    "a NaN between equal values": ([1.0, 1.0, NAN, 1.0, 0.5], {"patience": 3}),
    "a NaN with higher is better": (
        [0.5, NAN, 0.6, 0.6, NAN, 0.7],
        {"patience": 2, "mode": "max"},
    ),
    "infinite": ([math.inf, math.inf, 1.0, math.inf, math.inf], {"patience": 2}),
    "infinite from the start": ([math.inf, math.inf, math.inf, 1.0], {"patience": 2}),
    "noise around a falling mean": (
        [2.3, 1.9, 2.0, 1.7, 1.75, 1.72, 1.6, 1.66, 1.62, 1.61, 1.64, 1.59, 1.6],
        {"patience": 4},
    ),
    "noise around a falling mean, min_delta": (
        [2.3, 1.9, 2.0, 1.7, 1.75, 1.72, 1.6, 1.66, 1.62, 1.61, 1.64, 1.59, 1.6],
        {"patience": 4, "min_delta": 0.05},
    ),
}

# Validations of the first epochs are not watched.
GRACE = {
    "the best value is in the grace period": (
        [0.1, 0.9, 0.8, 0.8, 0.8, 0.7],
        {"patience": 2, "start_from_epoch": 2},
    ),
    "patience begins after the grace period": (
        [1.0, 1.1, 1.2, 1.3, 1.2, 1.3, 1.4],
        {"patience": 2, "start_from_epoch": 3},
    ),
    "the grace period is longer than the run": (
        [1.0, 1.1, 1.2, 1.3],
        {"patience": 2, "start_from_epoch": 9},
    ),
    "improves after the grace period": (
        [1.0, 1.1, 0.9, 0.8, 0.7],
        {"patience": 2, "start_from_epoch": 3},
    ),
}

# Keras takes the first value as the best even if it is NaN, and then nothing is better than NaN.
# frugal refuses NaN as the best, so these two are recorded separately.
LEADING_NAN = {
    "NaN from the start": ([NAN, NAN, NAN, 0.5], {"patience": 3}),
    "a NaN, then improvements": ([NAN, 1.0, 0.9, 0.95, 0.8, 0.7], {"patience": 2}),
}

DEFAULTS = {
    "patience": 3,
    "min_delta": 0.0,
    "mode": "min",
    "baseline": None,
    "start_from_epoch": 0,
}


class Model:
    """The members of a model that the callback uses. Its weights are the number of epochs so far."""

    stop_training = False
    weights = 0

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = weights


def run(curve: list[float], arguments: dict) -> dict:
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", restore_best_weights=True, **arguments)
    model = Model()
    stop.set_model(model)
    stop.on_train_begin()
    for i, value in enumerate(curve):
        model.weights = i + 1
        stop.on_epoch_end(i, {"val_loss": value})
        if model.stop_training:
            break
    stop.on_train_end()
    best = stop.best
    return {
        "stops_at": i + 1 if model.stop_training else None,
        "best": float(best) if best is not None and math.isfinite(best) else None,
        "restores": model.weights,
    }


def recorded(cases: dict) -> list[dict]:
    return [
        {"name": name}
        | (DEFAULTS | arguments)
        | {"values": [encoded(x) for x in curve]}
        | run(curve, DEFAULTS | arguments)
        for name, (curve, arguments) in cases.items()
    ]


def encoded(value: float):
    if math.isnan(value):
        return "nan"
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else value


def main() -> None:
    write(
        "early_stop.json",
        "make_early_stop.py",
        {
            "keras": keras.__version__,
            "values": "the metric after each validation; 'nan' and 'inf' are texts, since JSON "
            "has neither",
            "stops_at": "how many validations were seen when it stopped, the last one included; "
            "null: it never stopped",
            "best": "the best value then; null: it was not finite",
            "restores": "the validation whose weights the model has at the end, counted from 1",
            "leading_nan_is": "where Keras takes a first NaN for the best; frugal does not",
            "cases": recorded(CASES),
            "leading_nan": recorded(LEADING_NAN),
            "grace": recorded(GRACE),
        },
    )


if __name__ == "__main__":
    main()
