# SPDX-License-Identifier: Apache-2.0
"""Writes parameter_groups.json: 20 steps of torch.optim with parameter groups and LambdaLR."""

import math

import torch

from reference import FORMULA, deterministic, table, values, write

STEPS = 20
KEPT = (1, 10, 20)

# The names of a small encoder, in the order of named_parameters().
SHAPES = {
    "embeddings.weight": [5, 3],
    "encoder.layer.0.weight": [3, 3],
    "encoder.layer.0.bias": [3],
    "encoder.layer.1.weight": [3, 3],
    "encoder.layer.1.bias": [3],
    "encoder.layer.2.weight": [3, 3],
    "encoder.layer.2.bias": [3],
    "encoder.layer.2.lora_A": [2, 3],
    "encoder.layer.2.lora_B": [3, 2],
    "head.weight": [2, 3],
    "head.bias": [2],
}
NAMES = list(SHAPES)
LAYERS = 3


def is_bias_or_norm(name: str) -> bool:
    return len(SHAPES[name]) <= 1


def layer_id(name: str) -> int:
    """As get_num_layer_for_vit of BEiT: 0 for embeddings, LAYERS + 1 for the head."""
    if name.startswith("embeddings."):
        return 0
    if name.startswith("encoder.layer."):
        return int(name.split(".")[2]) + 1
    return LAYERS + 1


def layer_scale(name: str, decay: float) -> float:
    """As LayerDecayValueAssigner of BEiT."""
    return decay ** (LAYERS + 1 - layer_id(name))


def warm_up(step: int) -> float:
    return min(1.0, (step + 1) / 5)


def cosine(step: int) -> float:
    return (1 + math.cos(math.pi * step / STEPS)) / 2


def halves(step: int) -> float:
    return 0.5 ** (step // 4)


def adamw(name: str) -> dict:
    return {"lr": 1e-2, "weight_decay": 0.1, "betas": (0.9, 0.999), "eps": 1e-8}


def sgd(name: str) -> dict:
    return {"lr": 1e-2, "weight_decay": 0.1, "momentum": 0.9}


def decayed(usual: dict, name: str) -> dict:
    return usual | ({"weight_decay": 0.0} if is_bias_or_norm(name) else {})


# A case: the optimizer, the settings of a parameter, the factor of its rate at a step.
CASES = {
    "adamw, rates and decays": (
        "AdamW",
        lambda n: decayed(adamw(n) | ({"lr": 3e-2} if n.startswith("head.") else {}), n),
        None,
    ),
    "adamw, layer-wise and no decay": (
        "AdamW",
        lambda n: decayed(adamw(n) | {"lr": 1e-2 * layer_scale(n, 0.8)}, n),
        None,
    ),
    "adamw, betas": (
        "AdamW",
        lambda n: adamw(n) | ({"betas": (0.8, 0.99)} if n.startswith("encoder.") else {}),
        None,
    ),
    "adamw, a schedule per group": (
        "AdamW",
        lambda n: adamw(n) | ({"lr": 3e-2} if n.startswith("head.") else {}),
        lambda n: warm_up if n.startswith("head.") else cosine,
    ),
    "adamw, schedules that multiply": (
        "AdamW",
        lambda n: decayed(adamw(n) | {"lr": 1e-2 * layer_scale(n, 0.8)}, n),
        lambda n: (lambda s: cosine(s) * warm_up(s)) if n.startswith("head.") else cosine,
    ),
    "sgd, momentum": (
        "SGD",
        lambda n: decayed(sgd(n) | ({"momentum": 0.0} if n.startswith("head.") else {}), n),
        None,
    ),
    "sgd, factor and schedule": (
        "SGD",
        lambda n: sgd(n) | ({"lr": 1e-2 * 16} if n.endswith(".lora_B") else {}),
        lambda n: halves if n.endswith(".lora_B") else (lambda s: 1.0),
    ),
}


def gradient(step: int, parameter: int) -> torch.Tensor:
    return table(SHAPES[NAMES[parameter]], 1, step, parameter) * 2.0**-parameter


def run(optimizer: str, settings, schedule, dtype: torch.dtype) -> tuple[dict, list]:
    parameters = [
        torch.nn.Parameter(table(SHAPES[name], 0, i).to(dtype)) for i, name in enumerate(NAMES)
    ]
    # One group for each parameter: what frugal's rules combine is written out here.
    groups = [{"params": [p]} | settings(name) for p, name in zip(parameters, NAMES)]
    optim = getattr(torch.optim, optimizer)(groups, foreach=False, fused=False)
    schedule = schedule or (lambda name: lambda step: 1.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optim, [schedule(name) for name in NAMES])
    kept, rates = {}, []
    for step in range(1, STEPS + 1):
        for i, parameter in enumerate(parameters):
            parameter.grad = gradient(step, i).to(dtype)
        rates.append([group["lr"] for group in optim.param_groups])
        optim.step()
        scheduler.step()
        if step in KEPT:
            kept[str(step)] = [parameter.detach().clone() for parameter in parameters]
    return kept, rates


def main() -> None:
    deterministic()
    cases = []
    for name, (optimizer, settings, schedule) in CASES.items():
        narrow, rates = run(optimizer, settings, schedule, torch.float32)
        wide, _ = run(optimizer, settings, schedule, torch.float64)
        cases.append(
            {
                "name": name,
                "optimizer": optimizer,
                "rates": rates,
                "float32": {step: [values(t) for t in ts] for step, ts in narrow.items()},
                "float64": {step: [values(t) for t in ts] for step, ts in wide.items()},
            }
        )
    write(
        "parameter_groups.json",
        "make_parameter_groups.py",
        {
            "number": FORMULA,
            "start": "element i of parameter p: number(0, p, i)",
            "gradient": "element i of parameter p in step s (from 1): "
            "number(1, s, p, i) * 2^-p; the float64 runs use the same numbers, widened",
            "rates": "the learning rate of each parameter in each step",
            "parameters": [{"name": name, "shape": shape} for name, shape in SHAPES.items()],
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
