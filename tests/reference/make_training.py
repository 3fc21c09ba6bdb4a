# SPDX-License-Identifier: Apache-2.0
"""Writes training.json: 30 steps of a small network, trained by plain PyTorch loops."""

import torch
from torch.nn.functional import cross_entropy

from reference import deterministic, table, values, write

# Shapes: B rows of a batch, F = 6 features, H = 8 hidden units, C = 3 classes.
ROWS, F, H, C = 40, 6, 8, 3
STEPS = 30
BATCH = 8
LR, WEIGHT_DECAY = 1e-2, 1e-2
WARMUP = 5
# 40 rows as 11 micro-batches of unequal size; in windows of 4 the last window has only 3.
MICRO_BATCHES = [3, 5, 2, 4, 1, 6, 3, 2, 4, 5, 5]
WINDOW = 4

START = {
    "0.weight": table([H, F], 20, 0),
    "0.bias": table([H], 20, 1) * 0.25,
    "2.weight": table([C, H], 20, 2) * 2.0,
    "2.bias": table([C], 20, 3) * 0.25,
}
DATA = table([ROWS, F], 21, 0)
# A linear rule makes the classes learnable, so that the losses fall and the gradients shrink.
TARGET = (DATA @ table([F, C], 21, 1)).argmax(dim=1)
# Exact in every float type, and very unequal, like tokens per sequence.
WEIGHT = (table([ROWS], 21, 2) * 4 + 5).round()


def network(dtype: torch.dtype) -> torch.nn.Sequential:
    net = torch.nn.Sequential(torch.nn.Linear(F, H), torch.nn.ReLU(), torch.nn.Linear(H, C))
    net.load_state_dict(START)
    return net.to(dtype)


def rows_of_batch(step: int) -> torch.Tensor:
    """Batches in order, restarting at the first row after the last."""
    first = step * BATCH % ROWS
    return torch.arange(first, first + BATCH)


def rows_of_window(step: int) -> torch.Tensor:
    """All rows of the window's micro-batches: the equivalent big batch."""
    windows = [MICRO_BATCHES[i : i + WINDOW] for i in range(0, len(MICRO_BATCHES), WINDOW)]
    ends = [sum(sum(window) for window in windows[: i + 1]) for i in range(len(windows))]
    i = step % len(windows)
    return torch.arange(ends[i] - sum(windows[i]), ends[i])


def train(dtype, rows=rows_of_batch, weighted=False, limit=None, schedule=False, bf16=False):
    net = network(dtype)
    optim = torch.optim.AdamW(
        net.parameters(), lr=LR, weight_decay=WEIGHT_DECAY, foreach=False, fused=False
    )
    scheduler = None
    if schedule:
        lr = torch.optim.lr_scheduler
        scheduler = lr.SequentialLR(
            optim,
            [
                lr.LinearLR(optim, start_factor=1 / WARMUP, total_iters=WARMUP - 1),
                lr.CosineAnnealingLR(optim, T_max=STEPS - WARMUP),
            ],
            milestones=[WARMUP],
        )

    data, weight = DATA.to(dtype), WEIGHT.to(dtype)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        optim.zero_grad()
        picked = rows(step)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits_BC = net(data[picked])
            if weighted:
                each_B = cross_entropy(logits_BC, TARGET[picked], reduction="none")
                loss = (each_B * weight[picked]).sum() / weight[picked].sum()
            else:
                loss = cross_entropy(logits_BC, TARGET[picked])
        loss.backward()
        rates.append(optim.param_groups[0]["lr"])
        if limit is not None:
            norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), limit, foreach=False))
        optim.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(loss.detach())

    result = {
        "losses": values(torch.stack(losses)),
        "final": {name: values(tensor) for name, tensor in net.state_dict().items()},
    }
    if norms:
        result["norms"] = values(torch.stack(norms))
    if schedule:
        result["rates"] = rates
    return result


def both(**settings) -> dict:
    return {
        "float32": train(torch.float32, **settings),
        "float64": train(torch.float64, **settings),
    }


def main() -> None:
    deterministic()
    micro = {"micro_batches": MICRO_BATCHES, "window": WINDOW}
    write(
        "training.json",
        "make_training.py",
        {
            "network": "Linear(6, 8), ReLU, Linear(8, 3), mean cross entropy, AdamW; "
            "names are those of torch::nn::Sequential",
            "batches": "step s (from 0) takes 8 rows from row (8 s) mod 40, in order; with "
            "micro_batches the 40 rows are cut in order into micro-batches of these sizes, every "
            "`window` of them (the last window is ragged) make one step, and again from the first "
            "row after the last",
            "losses": "losses[s] is the loss of step s before its update; of a window, the mean "
            "over all its rows, weighted where the case says so",
            "weighted": "loss = sum(weight * cross entropy) / sum(weight) over the rows of a step",
            "steps": STEPS,
            "optimizer": {
                "lr": LR,
                "betas": [0.9, 0.999],
                "eps": 1e-8,
                "weight_decay": WEIGHT_DECAY,
            },
            "start": {
                name: {"shape": list(tensor.shape), "values": values(tensor)}
                for name, tensor in START.items()
            },
            "data": {"shape": [ROWS, F], "values": values(DATA)},
            "target": TARGET.tolist(),
            "weight": values(WEIGHT),
            "cases": [
                {"name": "plain"} | both(),
                {
                    "name": "clip, warm-up, cosine",
                    "max_norm": 1.0,
                    "warmup": WARMUP,
                    "cosine": STEPS - WARMUP,
                }
                | both(limit=1.0, schedule=True),
                {"name": "accumulate"} | micro | both(rows=rows_of_window),
                {"name": "accumulate, weighted"}
                | micro
                | both(rows=rows_of_window, weighted=True),
                # Forward and loss under autocast; weights, gradients and optimizer in float32.
                {"name": "bf16 autocast", "float32": train(torch.float32, bf16=True)},
            ],
        },
    )


if __name__ == "__main__":
    main()
