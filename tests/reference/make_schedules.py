# SPDX-License-Identifier: Apache-2.0
"""Writes schedules.json: learning-rate factors of PyTorch's own learning-rate schedulers."""

import math
import warnings

import torch
from torch.optim import lr_scheduler

from reference import deterministic, write

N = 40


def one(scheduler: str, **arguments) -> dict:
    return {"scheduler": scheduler, "arguments": arguments}


def sequence(milestones: list, *schedulers: dict) -> dict:
    return {
        "scheduler": "SequentialLR",
        "arguments": {"milestones": milestones},
        "schedulers": list(schedulers),
    }


def warmup(steps: int) -> dict:
    """Reaches the full rate in its last step: 1/steps, 2/steps, ... 1."""
    return one("LinearLR", start_factor=1 / steps, end_factor=1.0, total_iters=steps - 1)


CASES = {
    "constant": one("ConstantLR", factor=1.0, total_iters=N),
    "constant, a third for 4 steps": one("ConstantLR", factor=1 / 3, total_iters=4),
    "constant, a half to the end": one("ConstantLR", factor=0.5, total_iters=N + 1),
    "warm-up over 2": warmup(2),
    "warm-up over 10": warmup(10),
    "warm-up over 16": warmup(16),
    "cosine": one("CosineAnnealingLR", T_max=N, eta_min=0.0),
    "cosine to a tenth": one("CosineAnnealingLR", T_max=N, eta_min=0.1),
    "linear to 0": one("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=N),
    "linear to a tenth": one("LinearLR", start_factor=1.0, end_factor=0.1, total_iters=N),
    "linear to a quarter, then flat": one(
        "LinearLR", start_factor=1.0, end_factor=0.25, total_iters=N // 2
    ),
    "step": one("StepLR", step_size=10, gamma=0.1),
    "step of 7 by a half": one("StepLR", step_size=7, gamma=0.5),
    "milestones": one("MultiStepLR", milestones=[5, 12, 30], gamma=0.3),
    "exponential": one("ExponentialLR", gamma=0.9),
    "polynomial of power 1": one("PolynomialLR", total_iters=N, power=1.0),
    "polynomial of power 2": one("PolynomialLR", total_iters=N, power=2.0),
    "polynomial of power 0.5, then flat": one("PolynomialLR", total_iters=N // 2, power=0.5),
    "warm-up, cosine": sequence(
        [8], warmup(8), one("CosineAnnealingLR", T_max=N - 8, eta_min=0.0)
    ),
    "warm-up, cosine to a tenth": sequence(
        [5], warmup(5), one("CosineAnnealingLR", T_max=N - 5, eta_min=0.1)
    ),
    "warm-up, linear": sequence(
        [8], warmup(8), one("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=N - 8)
    ),
    "warm-up, polynomial": sequence(
        [8], warmup(8), one("PolynomialLR", total_iters=N - 8, power=2.0)
    ),
    "warm-up, stable, decay": sequence(
        [6, 28],
        warmup(6),
        one("ConstantLR", factor=1.0, total_iters=22),
        one("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=N - 28),
    ),
    "warm-up, step": sequence([4], warmup(4), one("StepLR", step_size=9, gamma=0.5)),
    "warm restarts": one("CosineAnnealingWarmRestarts", T_0=10, T_mult=1, eta_min=0.0),
    "warm restarts, twice as long": one(
        "CosineAnnealingWarmRestarts", T_0=6, T_mult=2, eta_min=0.1
    ),
}

NAN = math.nan
FALLS_AND_STALLS = [
    1.0, 0.8, 0.7, 0.69, 0.695, 0.7, 0.71, 0.69, 0.68999, 0.66, 0.66, 0.66, 0.67, 0.66, 0.65999,
    0.66, 0.66, 0.66, 0.66, 0.5, 0.51, 0.52, 0.51, 0.505, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
]  # fmt: skip
RISES_AND_STALLS = [round(1.5 - x, 6) for x in FALLS_AND_STALLS]
WITH_NANS = [
    NAN, 1.0, NAN, NAN, NAN, 0.9, NAN, 0.95, NAN, 0.8, 0.8, 0.8, 0.8, 0.8, NAN, NAN, NAN, 0.1, 0.1,
]  # fmt: skip
BELOW_ZERO = [-1.0, -1.05, -1.2, -1.2, -1.2, -1.1, -1.3, -1.29, -1.28, -1.27, -2.0, -2.0, -2.0]

PLATEAU = {
    "mode": "min",
    "factor": 0.1,
    "patience": 10,
    "threshold": 1e-4,
    "threshold_mode": "rel",
    "cooldown": 0,
    "min_lr": 0.0,
    "eps": 1e-8,
}

PLATEAUS = {
    "defaults, too patient for this curve": (FALLS_AND_STALLS, {}),
    "patience 2": (FALLS_AND_STALLS, {"patience": 2}),
    "patience 0": (FALLS_AND_STALLS, {"patience": 0, "factor": 0.5}),
    "patience 3, cooldown 2": (FALLS_AND_STALLS, {"patience": 3, "cooldown": 2, "factor": 0.5}),
    "cooldown 3": (FALLS_AND_STALLS, {"patience": 1, "cooldown": 3, "factor": 0.5}),
    "lower limit": (FALLS_AND_STALLS, {"patience": 1, "factor": 0.3, "min_lr": 0.05}),
    "changes below eps are left out": (
        FALLS_AND_STALLS,
        {"patience": 0, "factor": 0.1, "eps": 1e-3},
    ),
    "relative threshold": (FALLS_AND_STALLS, {"patience": 2, "threshold": 0.05}),
    "absolute threshold": (
        FALLS_AND_STALLS,
        {"patience": 2, "threshold": 0.02, "threshold_mode": "abs"},
    ),
    "max": (RISES_AND_STALLS, {"mode": "max", "patience": 2, "factor": 0.5}),
    "max, relative threshold": (
        RISES_AND_STALLS,
        {"mode": "max", "patience": 2, "factor": 0.5, "threshold": 0.05},
    ),
    "max, absolute threshold": (
        RISES_AND_STALLS,
        {"mode": "max", "patience": 2, "threshold": 0.02, "threshold_mode": "abs"},
    ),
    "not a number": (WITH_NANS, {"patience": 1, "factor": 0.5}),
    "not a number, max": (WITH_NANS, {"mode": "max", "patience": 2, "factor": 0.5}),
    "not a number, cooldown": (WITH_NANS, {"patience": 1, "factor": 0.5, "cooldown": 2}),
    "below zero": (BELOW_ZERO, {"patience": 1, "factor": 0.5, "threshold": 0.1}),
    "below zero, absolute threshold": (
        BELOW_ZERO,
        {"patience": 1, "factor": 0.5, "threshold": 0.1, "threshold_mode": "abs"},
    ),
}


def optimizer() -> torch.optim.Optimizer:
    """A base rate of 1 makes the rate itself the factor."""
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def build(entry: dict, optim: torch.optim.Optimizer):
    arguments = dict(entry["arguments"])
    if "schedulers" in entry:
        arguments["schedulers"] = [build(part, optim) for part in entry["schedulers"]]
    return getattr(lr_scheduler, entry["scheduler"])(optim, **arguments)


def factors(entry: dict) -> list[float]:
    optim = optimizer()
    scheduler = build(entry, optim)
    rates = [optim.param_groups[0]["lr"]]
    for _ in range(N):
        optim.step()
        scheduler.step()
        rates.append(optim.param_groups[0]["lr"])
    return rates


def plateau(curve: list[float], arguments: dict) -> dict:
    optim = optimizer()
    scheduler = lr_scheduler.ReduceLROnPlateau(optim, **arguments)
    rates = [optim.param_groups[0]["lr"]]
    best = []
    for metric in curve:
        scheduler.step(metric)
        rates.append(optim.param_groups[0]["lr"])
        best.append(scheduler.best if math.isfinite(scheduler.best) else None)
    return {"factors": rates, "best": best}


def main() -> None:
    deterministic()
    # PyTorch warns about its own milestones: SequentialLR calls the deprecated form of step().
    warnings.filterwarnings("ignore", message=".*epoch parameter in `scheduler.step\\(\\)`.*")
    write(
        "schedules.json",
        "make_schedules.py",
        {
            "factors": "factors[i] is in force in optimizer step i (from 0); "
            "the last one would be in force after the run",
            "plateau_factors": "factors[i] is in force before metric i is reported; the base rate "
            "is 1, so min_lr and eps are factors too; null among the metrics is a NaN; "
            "best[i] is the best after metric i, null while there is none",
            "steps": N,
            "schedules": [
                {"name": name} | entry | {"factors": factors(entry)}
                for name, entry in CASES.items()
            ],
            "plateaus": [
                {
                    "name": name,
                    "scheduler": "ReduceLROnPlateau",
                    "arguments": PLATEAU | changes,
                    "metrics": [None if math.isnan(x) else x for x in curve],
                }
                | plateau(curve, PLATEAU | changes)
                for name, (curve, changes) in PLATEAUS.items()
            ],
        },
    )


if __name__ == "__main__":
    main()
