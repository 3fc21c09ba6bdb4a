# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.json: parameters after 1, 2, 10 and 100 steps of PyTorch's own optimizers."""

import torch

from reference import FORMULA, deterministic, number, table, values, write

STEPS = (1, 2, 10, 100)

# 21 and 9 elements leave a tail behind every vector width; the last is a single element.
SHAPES = ([3, 7], [9], [2, 3, 2], [1])
STREAM_START = 0

# A parameter with occasional gradients, like a rarely used branch of a model.
ABSENT = [{"parameter": 2, "steps": [1, 4, 5, 9, 10, 50, 51, 52, 100]}]

ADAMS = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "amsgrad": False, "maximize": False}
ADAMW = ADAMS | {"weight_decay": 1e-2}
ADAM = ADAMS | {"weight_decay": 0.0}
SGD = {
    "lr": 1e-2,
    "momentum": 0.0,
    "dampening": 0.0,
    "weight_decay": 0.0,
    "nesterov": False,
    "maximize": False,
}
ADAGRAD = {
    "lr": 1e-2,
    "lr_decay": 0.0,
    "weight_decay": 0.0,
    "initial_accumulator_value": 0.0,
    "eps": 1e-10,
}
RMSPROP = {
    "lr": 1e-2,
    "alpha": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "momentum": 0.0,
    "centered": False,
}


def two_groups(optimizer, base, one, other):
    return (optimizer, [{"parameters": [0, 2]} | base | one, {"parameters": [1, 3]} | base | other])


def one_group(optimizer, base, **changes):
    unknown = set(changes) - set(base)
    assert not unknown, unknown
    return (optimizer, [{"parameters": [0, 1, 2, 3]} | base | changes])


CASES = {
    "adamw": one_group("AdamW", ADAMW),
    "adamw, large weight decay": one_group("AdamW", ADAMW, lr=1e-2, weight_decay=0.3),
    "adamw, no weight decay": one_group("AdamW", ADAMW, weight_decay=0.0),
    "adamw, amsgrad": one_group("AdamW", ADAMW, amsgrad=True),
    "adamw, other betas and eps": one_group("AdamW", ADAMW, betas=[0.5, 0.75], eps=1e-2),
    "adamw, maximize": one_group("AdamW", ADAMW, maximize=True),
    "adamw, two groups": two_groups(
        "AdamW", ADAMW, {"lr": 3e-3, "weight_decay": 0.1}, {"weight_decay": 0.0}
    ),
    "adamw, absent gradients": one_group("AdamW", ADAMW, lr=1e-2, weight_decay=0.1),
    "adam": one_group("Adam", ADAM),
    "adam, amsgrad": one_group("Adam", ADAM, amsgrad=True),
    "adam, weight decay": one_group("Adam", ADAM, weight_decay=0.1),
    "adam, amsgrad and weight decay": one_group("Adam", ADAM, amsgrad=True, weight_decay=0.1),
    "adam, two groups": two_groups("Adam", ADAM, {"lr": 3e-3}, {"weight_decay": 0.1}),
    "adam, absent gradients": one_group("Adam", ADAM, lr=1e-2, weight_decay=0.1),
    "sgd": one_group("SGD", SGD),
    "sgd, weight decay": one_group("SGD", SGD, weight_decay=0.1),
    "sgd, momentum": one_group("SGD", SGD, momentum=0.9),
    "sgd, momentum and dampening": one_group("SGD", SGD, momentum=0.9, dampening=0.5),
    "sgd, nesterov": one_group("SGD", SGD, momentum=0.9, nesterov=True),
    "sgd, nesterov and weight decay": one_group(
        "SGD", SGD, momentum=0.9, nesterov=True, weight_decay=0.1
    ),
    "sgd, maximize": one_group("SGD", SGD, momentum=0.9, weight_decay=0.1, maximize=True),
    "sgd, two groups": two_groups(
        "SGD", SGD, {"lr": 3e-2, "momentum": 0.9}, {"weight_decay": 0.1}
    ),
    "sgd, absent gradients": one_group("SGD", SGD, momentum=0.9, weight_decay=0.1),
    "adagrad": one_group("Adagrad", ADAGRAD),
    "adagrad, lr decay": one_group("Adagrad", ADAGRAD, lr_decay=0.1),
    "adagrad, weight decay": one_group("Adagrad", ADAGRAD, weight_decay=0.1),
    "adagrad, initial accumulator": one_group("Adagrad", ADAGRAD, initial_accumulator_value=0.5),
    "adagrad, two groups": two_groups(
        "Adagrad", ADAGRAD, {"lr": 3e-2, "lr_decay": 0.01}, {"weight_decay": 0.1}
    ),
    "adagrad, absent gradients": one_group("Adagrad", ADAGRAD, lr_decay=0.1),
    "rmsprop": one_group("RMSprop", RMSPROP),
    "rmsprop, centered momentum": one_group(
        "RMSprop", RMSPROP, centered=True, momentum=0.9, weight_decay=0.1
    ),
}


def start() -> list[torch.Tensor]:
    return [table(shape, STREAM_START, i) for i, shape in enumerate(SHAPES)]


def gradient(step: int, parameter: int) -> torch.Tensor:
    """2^-parameter times the formula: exact, and no two parameters have the same scale."""
    return table(SHAPES[parameter], 1, step, parameter) * 2.0**-parameter


GRADIENTS = {step: [gradient(step, i) for i in range(len(SHAPES))] for step in range(1, 101)}


def run(optimizer: str, groups: list, absent: list, dtype: torch.dtype) -> dict:
    parameters = [torch.nn.Parameter(tensor.to(dtype)) for tensor in start()]
    arguments = []
    for group in groups:
        settings = {key: value for key, value in group.items() if key != "parameters"}
        if "betas" in settings:
            settings["betas"] = tuple(settings["betas"])
        arguments.append({"params": [parameters[i] for i in group["parameters"]]} | settings)
    # One tensor at a time in plain arithmetic, as in the optimizer's documentation.
    plain = {"foreach": False} if optimizer == "RMSprop" else {"foreach": False, "fused": False}
    defaults = {}
    if optimizer == "Adagrad":  # its accumulators are made from the default, not from the groups
        defaults["initial_accumulator_value"] = groups[0]["initial_accumulator_value"]
    optim = getattr(torch.optim, optimizer)(arguments, **defaults, **plain)

    kept = {}
    for step in range(1, STEPS[-1] + 1):
        for i, parameter in enumerate(parameters):
            missing = any(a["parameter"] == i and step in a["steps"] for a in absent)
            parameter.grad = None if missing else GRADIENTS[step][i].to(dtype)
        optim.step()
        if step in STEPS:
            kept[str(step)] = [parameter.detach().clone() for parameter in parameters]
    return kept


def main() -> None:
    deterministic()
    cases = []
    for name, (optimizer, groups) in CASES.items():
        absent = ABSENT if "absent" in name else []
        narrow = run(optimizer, groups, absent, torch.float32)
        wide = run(optimizer, groups, absent, torch.float64)
        error = {
            step: max((a.double() - b).abs().max().item() for a, b in zip(narrow[step], wide[step]))
            for step in narrow
        }
        cases.append(
            {
                "name": name,
                "optimizer": optimizer,
                "groups": groups,
                "absent": absent,
                "float32": {step: [values(t) for t in ts] for step, ts in narrow.items()},
                "float64": {step: [values(t) for t in ts] for step, ts in wide.items()},
                "rounding": error,
            }
        )
    write(
        "optimizers.json",
        "make_optimizers.py",
        {
            "number": FORMULA,
            "gradient": "element i of parameter p in step s (from 1): "
            "number(1, s, p, i) * 2^-p; the float64 runs use the same numbers, widened",
            "gradient_check": [
                {"step": s, "parameter": p, "index": i, "value": number(1, s, p, i) * 2.0**-p}
                for s, p, i in ((1, 0, 0), (2, 1, 8), (100, 2, 11), (37, 3, 0))
            ],
            "absent": "in these steps the parameter has no gradient (None) and must stay untouched, "
            "its state and step count too",
            "rounding": "largest absolute difference between float32 and float64 after a step: "
            "what rounding alone does",
            "steps": list(STEPS),
            "start": [
                {"shape": list(shape), "values": values(tensor)}
                for shape, tensor in zip(SHAPES, start())
            ],
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
