# SPDX-License-Identifier: Apache-2.0
"""Writes average.json: averaged weights of a training run, and BatchNorm statistics for them, from
torch.optim.swa_utils."""

import torch
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import (
    AveragedModel,
    get_ema_multi_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)

from reference import deterministic, table, values, write

# Shapes: 40 rows, F = 6 features, H = 8 hidden units, C = 3 classes.
ROWS, F, H, C = 40, 6, 8, 3
BATCH = 8
EPOCHS = 6
LR = 0.2

START = {
    "0.weight": table([H, F], 30, 0),
    "0.bias": table([H], 30, 1) * 0.25,
    "1.weight": table([H], 30, 2) * 0.5 + 1.0,
    "1.bias": table([H], 30, 3) * 0.25,
    "3.weight": table([C, H], 30, 4),
    "3.bias": table([C], 30, 5) * 0.25,
}
DATA = table([ROWS, F], 31, 0)
TARGET = (DATA @ table([F, C], 31, 1)).argmax(dim=1)

# The updates: after each `every`-th step from step `start` on, or at each epoch's end.
CASES = [
    {"name": "ema", "decay": 0.9, "every": 1, "start": 0},
    {"name": "ema every 4 steps", "decay": 0.75, "every": 4, "start": 0},
    {"name": "swa every 3 steps from step 10", "every": 3, "start": 10},
    {"name": "swa from epoch 3", "epochs_from": 3},
]


def network(dtype: torch.dtype) -> torch.nn.Sequential:
    net = torch.nn.Sequential(
        torch.nn.Linear(F, H), torch.nn.BatchNorm1d(H), torch.nn.ReLU(), torch.nn.Linear(H, C)
    )
    net.load_state_dict(START, strict=False)
    return net.to(dtype)


def run(case: dict, dtype: torch.dtype) -> dict:
    net = network(dtype)
    data = DATA.to(dtype)
    rule = get_ema_multi_avg_fn(case["decay"]) if "decay" in case else get_swa_multi_avg_fn()
    averaged = AveragedModel(net, multi_avg_fn=rule)
    optim = torch.optim.SGD(net.parameters(), lr=LR, foreach=False, fused=False)
    step = 0
    for epoch in range(1, EPOCHS + 1):
        for first in range(0, ROWS, BATCH):
            rows = slice(first, first + BATCH)
            optim.zero_grad()
            cross_entropy(net(data[rows]), TARGET[rows]).backward()
            optim.step()
            step += 1
            if "every" in case and step >= case["start"] and step % case["every"] == 0:
                averaged.update_parameters(net)
        if "epochs_from" in case and epoch >= case["epochs_from"]:
            averaged.update_parameters(net)
    result = {
        "taken": averaged.n_averaged.item(),
        "average": {name: values(p) for name, p in averaged.module.named_parameters()},
    }
    update_bn([data[first : first + BATCH] for first in range(0, ROWS, BATCH)], averaged)
    result["statistics"] = {
        name: values(averaged.module.get_buffer(name)) for name in ("1.running_mean", "1.running_var")
    }
    with torch.no_grad():
        result["loss"] = values(cross_entropy(averaged.eval()(data), TARGET))[0]
    return result


def main() -> None:
    deterministic()
    write(
        "average.json",
        "make_average.py",
        {
            "network": "Linear(6, 8), BatchNorm1d(8), ReLU, Linear(8, 3), mean cross entropy, SGD; "
            "names are those of torch::nn::Sequential",
            "batches": "5 batches of 8 rows, in order, in each epoch",
            "average": "AveragedModel after the last epoch; `taken` is its n_averaged",
            "statistics": "then made anew by update_bn over the same batches; `loss` is the loss of "
            "all rows in evaluation mode after that",
            "epochs": EPOCHS,
            "lr": LR,
            "start": {
                name: {"shape": list(tensor.shape), "values": values(tensor)}
                for name, tensor in START.items()
            },
            "data": {"shape": [ROWS, F], "values": values(DATA)},
            "target": TARGET.tolist(),
            "cases": [
                case | {"float32": run(case, torch.float32), "float64": run(case, torch.float64)}
                for case in CASES
            ],
        },
    )


if __name__ == "__main__":
    main()
