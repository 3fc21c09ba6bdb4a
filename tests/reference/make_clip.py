# SPDX-License-Identifier: Apache-2.0
"""Writes clip.json: the results of PyTorch's own gradient clipping on stored gradients.

Adaptive clipping is not in PyTorch: its values are from the paper's formula (Brock et al. 2021,
equation 3), one output unit at a time, in double precision.
"""

import math

import torch

from reference import deterministic, table, values, write

SHAPES = ([4, 5], [7], [2, 2, 2], [1])

GRADIENTS = {
    "usual": [table(shape, 10, i) * 2.0**-i for i, shape in enumerate(SHAPES)],
    "large": [table(shape, 11, i) * 2.0**10 for i, shape in enumerate(SHAPES)],
    "tiny": [table(shape, 12, i) * 2.0**-30 for i, shape in enumerate(SHAPES)],
    "zero": [torch.zeros(shape) for shape in SHAPES],
    # A parameter without a gradient does not count; a single element decides the infinity norm.
    "absent": [table([4, 5], 13, 0), None, table([2, 2, 2], 13, 2), torch.tensor([-3.0])],
}

NORMS = {"1": 1.0, "2": 2.0, "inf": float("inf")}


def parameters(gradients: list, dtype: torch.dtype) -> list[torch.nn.Parameter]:
    made = []
    for shape, gradient in zip(SHAPES, gradients):
        parameter = torch.nn.Parameter(torch.zeros(shape, dtype=dtype))
        parameter.grad = None if gradient is None else gradient.to(dtype).clone()
        made.append(parameter)
    return made


def flat(tensors: list) -> list:
    return [None if tensor is None else values(tensor) for tensor in tensors]


def by_norm(name: str, norm_type: str, limit: float) -> dict:
    result = {"gradients": name, "norm_type": norm_type, "max_norm": limit}
    for label, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        made = parameters(GRADIENTS[name], dtype)
        norm = torch.nn.utils.clip_grad_norm_(made, limit, norm_type=NORMS[norm_type], foreach=False)
        result[label] = {"norm": values(norm)[0], "clipped": flat([p.grad for p in made])}
    return result


def by_value(name: str, limit: float) -> dict:
    made = parameters(GRADIENTS[name], torch.float32)
    torch.nn.utils.clip_grad_value_(made, limit, foreach=False)
    return {"gradients": name, "clip_value": limit, "clipped": flat([p.grad for p in made])}


WEIGHTS = [table(shape, 14, i) for i, shape in enumerate(SHAPES)]


def adaptive(name: str, share: float, least: float) -> dict:
    clipped = []
    for weight, gradient in zip(WEIGHTS, GRADIENTS[name]):
        if gradient is None:
            clipped.append(None)
            continue
        units = weight.double().reshape(weight.shape[0], -1) if weight.dim() > 1 else weight.double().reshape(1, -1)
        found = gradient.double().reshape(units.shape).clone()
        for unit, row in zip(units, found):
            limit = share * max(math.sqrt(sum(float(w) ** 2 for w in unit)), least)
            norm = math.sqrt(sum(float(g) ** 2 for g in row))
            if norm > limit:
                row *= limit / norm
        clipped.append(found)
    return {"gradients": name, "share": share, "least": least, "clipped": flat(clipped)}


def main() -> None:
    deterministic()
    norms = []
    for name in GRADIENTS:
        for norm_type in NORMS:
            made = parameters(GRADIENTS[name], torch.float64)
            norm = torch.nn.utils.get_total_norm(
                [p.grad for p in made if p.grad is not None], NORMS[norm_type]
            ).item()
            # One limit below the norm and one above it, whatever its size.
            limits = {1.0, norm / 2, norm * 2} if name == "usual" else {1.0}
            norms += [by_norm(name, norm_type, limit) for limit in sorted(limits)]
    write(
        "clip.json",
        "make_clip.py",
        {
            "norms_are_made_by": "torch.nn.utils.clip_grad_norm_; norm is what it returns, the "
            "norm before clipping",
            "values_are_made_by": "torch.nn.utils.clip_grad_value_",
            "null": "a parameter without a gradient",
            "shapes": [list(shape) for shape in SHAPES],
            "gradients": {name: flat(tensors) for name, tensors in GRADIENTS.items()},
            "norms": norms,
            "adaptive_is_made_by": "the formula of the paper, in double precision",
            "adaptive_weights": flat(WEIGHTS),
            "adaptive": [
                adaptive(name, share, least)
                for name in ("usual", "large", "zero", "absent") for share, least in ((0.01, 1e-3), (0.5, 1.5))
            ],
            "values": [
                by_value(name, limit) for name in ("usual", "absent", "zero") for limit in (0.25, 8.0)
            ],
        },
    )


if __name__ == "__main__":
    main()
