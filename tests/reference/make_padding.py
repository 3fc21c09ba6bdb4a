# SPDX-License-Identifier: Apache-2.0
"""Writes padding.json: sequences of different lengths with ignored labels, trained by a plain PyTorch
loop without any padding."""

import torch
from torch.nn.functional import cross_entropy

from reference import deterministic, table, values, write

# Shapes: T positions of a sequence, F = 5 features, C = 4 classes.
F, C = 5, 4
LENGTHS = [5, 2, 7, 1, 4, 3, 6, 2]
BATCH, WINDOW = 2, 3  # sequences of a micro-batch, micro-batches of a step: the last step has one
EPOCHS = 6
LR, MOMENTUM = 0.3, 0.9

START = {"weight": table([C, F], 40, 0), "bias": table([C], 40, 1)}
DATA = [table([length, F], 41, i) for i, length in enumerate(LENGTHS)]
TARGET = [
    (data @ table([F, C], 42, 0)).argmax(dim=1).masked_fill(table([len(data)], 43, i) < -0.4, -100)
    for i, data in enumerate(DATA)
]
# Of one micro-batch no label counts, and of one sequence of another.
TARGET[2].fill_(-100)
TARGET[3].fill_(-100)
TARGET[7].fill_(-100)


def train(dtype: torch.dtype) -> dict:
    net = torch.nn.Linear(F, C)
    net.load_state_dict(START)
    net.to(dtype)
    optim = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM, foreach=False, fused=False)
    losses = []
    for _ in range(EPOCHS):
        for begin in range(0, len(LENGTHS), BATCH * WINDOW):
            data = torch.cat(DATA[begin : begin + BATCH * WINDOW]).to(dtype)
            target = torch.cat(TARGET[begin : begin + BATCH * WINDOW])
            optim.zero_grad()
            loss = cross_entropy(net(data), target, ignore_index=-100)
            loss.backward()
            optim.step()
            losses.append(loss.detach())
    return {
        "losses": values(torch.stack(losses)),
        "final": {name: values(tensor) for name, tensor in net.state_dict().items()},
    }


def main() -> None:
    deterministic()
    write(
        "padding.json",
        "make_padding.py",
        {
            "network": "Linear(5, 4) at every position, mean cross entropy with ignore_index=-100, "
            "SGD",
            "batches": "the sequences in order, two to a micro-batch, three micro-batches to a step "
            "(the last step of an epoch has one); the loss of a step is that of its concatenated "
            "positions, without padding",
            "optimizer": {"lr": LR, "momentum": MOMENTUM},
            "epochs": EPOCHS,
            "start": {name: values(tensor) for name, tensor in START.items()},
            "sequences": [
                {"data": values(data), "target": target.tolist()}
                for data, target in zip(DATA, TARGET)
            ],
            "cases": [{"name": "float32"} | train(torch.float32), {"name": "float64"} | train(torch.float64)],
        },
    )


if __name__ == "__main__":
    main()
