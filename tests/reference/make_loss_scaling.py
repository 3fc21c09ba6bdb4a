# SPDX-License-Identifier: Apache-2.0
"""Writes loss_scaling.json: PyTorch's GradScaler, step by step, on scripted gradients.

The gradients are those of sum(weight * row): the row itself, finite or not. The scaler's scale and
count, and the weights, are written after every step.
"""

import torch

from reference import deterministic, table, values, write

SIZE = 6
START = table([SIZE], 40)

# One row per step; None is a row with an infinity, "nan" one with a NaN. A window of two rows
# overflows if either does.
SCRIPTS = {
    "grows": [1, 1, 1, 1, 1, 1, 1, 1],
    "backs off": [1, None, 1, "nan", None, 1, 1, 1, 1, None],
    "begins with overflows": [None, None, None, 1, 1, 1, 1],
}
SCALING = {"initial": 1024.0, "growth": 2.0, "backoff": 0.5, "growth_interval": 3}
CLIP = 0.5


def row(script: str, step: int, kind) -> torch.Tensor:
    made = table([SIZE], 41, len(script), step)
    if kind is None:
        made[step % SIZE] = float("inf")
    elif kind == "nan":
        made[step % SIZE] = float("nan")
    return made


def optimizer(name: str, weight: torch.nn.Parameter) -> torch.optim.Optimizer:
    if name == "AdamW":
        return torch.optim.AdamW([weight], lr=0.1, weight_decay=0.01, fused=True)
    return torch.optim.SGD([weight], lr=0.1, momentum=0.9, fused=True)


def run(script: str, name: str, clip: bool) -> dict:
    weight = torch.nn.Parameter(START.clone())
    made = optimizer(name, weight)
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=SCALING["initial"], growth_factor=SCALING["growth"],
        backoff_factor=SCALING["backoff"], growth_interval=SCALING["growth_interval"])  # fmt: skip
    result = {"name": f"{script}, {name}{', clipped' if clip else ''}", "script": script,
              "optimizer": name, "clip": clip, "steps": []}  # fmt: skip
    for step, kind in enumerate(SCRIPTS[script]):
        made.zero_grad()
        scaler.scale((weight * row(script, step, kind)).sum()).backward()
        scaler.unscale_(made)
        if clip:
            torch.nn.utils.clip_grad_norm_([weight], CLIP, foreach=False)
        scaler.step(made)
        scaler.update()
        result["steps"].append({
            "finite": kind == 1,
            "scale": scaler.get_scale(),
            "good_steps": scaler._get_growth_tracker(),
            "weight": values(weight),
        })  # fmt: skip
    return result


def main() -> None:
    deterministic()
    cases = [run(script, name, clip) for script in SCRIPTS for name in ("AdamW", "SGD")
             for clip in (False, True)
             # PyTorch's fused SGD uses momentum buffers that a skipped first step left unset.
             if not (script == "begins with overflows" and name == "SGD")]  # fmt: skip
    write(
        "loss_scaling.json",
        "make_loss_scaling.py",
        {
            "made_by_class": "torch.amp.GradScaler('cpu'), unscale_ before clipping, fused optimizers",
            "start": values(START),
            "scaling": SCALING,
            "max_norm": CLIP,
            "scripts": {
                script: [
                    {"row": values(row(script, step, 1)), "kind": "finite" if kind == 1 else
                     "inf" if kind is None else "nan", "at": step % SIZE}
                    for step, kind in enumerate(kinds)
                ]
                for script, kinds in SCRIPTS.items()
            },
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
