# SPDX-License-Identifier: Apache-2.0
"""Writes flops.json: floating-point operations as torch.utils.flop_counter counts them."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from reference import deterministic, table, write

# Convolutions [B, C, ...] x [C', C / groups, ...]. PyTorch counts the backward pass of several
# groups like that of one, so those record only their forward pass.
CONVOLUTIONS = [
    {"input": [2, 3, 9], "weight": [4, 3, 3]},
    {"input": [2, 3, 8, 9], "weight": [5, 3, 3, 2], "stride": [2, 1], "padding": [1, 0]},
    {"input": [2, 3, 9, 9], "weight": [4, 3, 3, 3], "dilation": [2, 3], "padding": [2, 2]},
    {"input": [1, 2, 4, 5, 6], "weight": [3, 2, 2, 3, 2], "stride": [1, 2, 2]},
    {"input": [2, 4, 5, 6], "weight": [4, 3, 3, 3], "stride": [2, 2], "transposed": True},
    {"input": [2, 4, 9, 9], "weight": [4, 4, 3, 3], "stride": [2, 2]},
    {"input": [2, 4, 4, 4], "weight": [4, 4, 3, 3], "stride": [2, 2], "transposed": True},
    {"input": [2, 4, 8, 8], "weight": [6, 2, 3, 3], "groups": 2},
    {"input": [2, 4, 5, 5], "weight": [4, 3, 2, 2], "groups": 2, "transposed": True},
]

PRODUCTS = [
    {"operator": "mm", "a": [4, 5], "b": [5, 7]},
    {"operator": "addmm", "a": [4, 5], "b": [5, 7]},
    {"operator": "bmm", "a": [3, 4, 5], "b": [3, 5, 7]},
    {"operator": "baddbmm", "a": [3, 4, 5], "b": [3, 5, 7]},
    {"operator": "matmul", "a": [2, 3, 4, 5], "b": [5, 7]},
    {"operator": "matmul", "a": [2, 3, 4, 5], "b": [2, 3, 5, 7]},
    {"operator": "linear", "a": [2, 4, 5], "b": [7, 5]},
]

ATTENTION = [
    {"query": [2, 3, 8, 4], "key": [2, 3, 8, 4], "value": [2, 3, 8, 4]},
    {"query": [1, 2, 5, 8], "key": [1, 2, 9, 8], "value": [1, 2, 9, 6]},
]


def count(body) -> int:
    with FlopCounterMode(display=False) as counter:
        body()
    return counter.get_total_flops()


def forward_and_backward(forward) -> dict:
    kept = []
    result = {"forward": count(lambda: kept.append(forward()))}
    result["backward"] = count(lambda: kept[0].sum().backward())
    return result


def variable(shape: list) -> torch.Tensor:
    return table(shape, 40, 0).requires_grad_()


def convolution(case: dict) -> dict:
    spatial = len(case["input"]) - 2
    full = {
        "stride": [1] * spatial,
        "padding": [0] * spatial,
        "dilation": [1] * spatial,
        "transposed": False,
        "groups": 1,
    } | case
    x, w = variable(full["input"]), variable(full["weight"])

    def forward():
        return torch.convolution(
            x, w, None, full["stride"], full["padding"], full["dilation"], full["transposed"],
            [0] * spatial, full["groups"],
        )

    counted = forward_and_backward(forward)
    if full["groups"] != 1:
        del counted["backward"]
    return full | counted


def product(case: dict) -> dict:
    a, b = variable(case["a"]), variable(case["b"])
    if case["operator"] == "linear":
        return case | forward_and_backward(lambda: torch.nn.functional.linear(a, b, torch.zeros(7)))
    if case["operator"] in ("addmm", "baddbmm"):
        return case | forward_and_backward(lambda: getattr(torch, case["operator"])(torch.zeros(7), a, b))
    return case | forward_and_backward(lambda: getattr(torch, case["operator"])(a, b))


def attention(case: dict) -> dict:
    shapes = case["query"], case["key"], case["value"]
    output = [*case["query"][:3], case["value"][3]]
    return case | {
        "forward": sdpa_flop_count(*shapes),
        "backward": sdpa_backward_flop_count(output, *shapes),
    }


def network() -> dict:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3)
    )
    data, target = table([5, 1, 6, 6], 41, 0), torch.tensor([0, 1, 2, 0, 1])
    return {
        "network": "Conv2d(1, 4, 3), ReLU, Flatten, Linear(64, 3); data [5, 1, 6, 6]; cross entropy",
        "step": count(lambda: cross_entropy(net(data), target).backward()),
    }


def main() -> None:
    deterministic()
    write(
        "flops.json",
        "make_flops.py",
        {
            "counted_by": "torch.utils.flop_counter.FlopCounterMode; attention by its "
            "sdpa_flop_count and sdpa_backward_flop_count",
            "backward": "of the sum of the output, both inputs with gradients",
            "products": [product(case) for case in PRODUCTS],
            "convolutions": [convolution(case) for case in CONVOLUTIONS],
            "attention": [attention(case) for case in ATTENTION],
            "training": network(),
        },
    )


if __name__ == "__main__":
    main()
