# SPDX-License-Identifier: Apache-2.0
"""Writes prune.json: masks of torch.nn.utils.prune and torch.ao.pruning, weights after training under
masks, and movement scores by numpy."""

import torch
from torch.ao.pruning import WeightNormSparsifier
from torch.nn.functional import cross_entropy
from torch.nn.utils import prune

from reference import deterministic, table, values, write

# Shapes: 40 rows, F = 6 features, H = 8 hidden units, C = 3 classes.
ROWS, F, H, C = 40, 6, 8, 3
BATCH = 8
EPOCHS = 3

SHAPES = {"first": [H, F], "second": [C, H], "conv": [6, 4, 3, 3]}
DATA = table([ROWS, F], 71, 0)
TARGET = (DATA @ table([F, C], 71, 1)).argmax(dim=1)


def layers() -> dict[str, torch.nn.Module]:
    made = {"first": torch.nn.Linear(F, H), "second": torch.nn.Linear(H, C), "conv": torch.nn.Conv2d(4, 6, 3)}
    with torch.no_grad():
        for n, layer in enumerate(made.values()):
            layer.weight.copy_(table(list(layer.weight.shape), 70, n))
            layer.bias.copy_(table(list(layer.bias.shape), 70, 10 + n))
    return made


def bits(mask: torch.Tensor) -> str:
    return "".join("1" if kept else "0" for kept in mask.reshape(-1).tolist())


def magnitude(amount: float) -> dict:
    made = layers()
    for layer in made.values():
        prune.l1_unstructured(layer, "weight", amount=amount)
    return {"sparsity": amount, "global": False, "masks": {n: bits(layer.weight_mask) for n, layer in made.items()}}


def everywhere(amount: float) -> dict:
    made = layers()
    prune.global_unstructured([(layer, "weight") for layer in made.values()], prune.L1Unstructured, amount=amount)
    return {"sparsity": amount, "global": True, "masks": {n: bits(layer.weight_mask) for n, layer in made.items()}}


def two_of_four() -> dict:
    """Of the second layer, and of the convolution with its inputs last."""
    made = layers()
    rows = made["conv"].weight.detach().movedim(1, -1)
    flat = torch.nn.Linear(4, rows.numel() // 4)
    with torch.no_grad():
        flat.weight.copy_(rows.reshape(-1, 4))
    net = torch.nn.ModuleDict({"second": made["second"], "conv": flat})
    sparsifier = WeightNormSparsifier(sparsity_level=1.0, sparse_block_shape=(1, 4), zeros_per_block=2)
    sparsifier.prepare(net, [{"tensor_fqn": "second.weight"}, {"tensor_fqn": "conv.weight"}])
    sparsifier.step()
    masks = {name: net[name].parametrizations.weight[0].mask.bool() for name in net}
    return {"second": bits(masks["second"]), "conv": bits(masks["conv"].reshape(rows.shape).movedim(-1, 1))}


def training(dtype: torch.dtype) -> dict:
    """SGD with momentum and weight decay under l1_unstructured masks: what is pruned stays zero."""
    made = layers()
    net = torch.nn.Sequential(made["first"], torch.nn.ReLU(), made["second"]).to(dtype)
    for layer in (net[0], net[2]):
        prune.l1_unstructured(layer, "weight", amount=0.5)
    optim = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, foreach=False, fused=False)
    losses = []
    for _ in range(EPOCHS):
        for first in range(0, ROWS, BATCH):
            rows = slice(first, first + BATCH)
            optim.zero_grad()
            loss = cross_entropy(net(DATA[rows].to(dtype)), TARGET[rows])
            loss.backward()
            optim.step()
            losses.append(loss.item())
    for layer in (net[0], net[2]):
        prune.remove(layer, "weight")
    return {"losses": losses, "final": {name: values(p) for name, p in net.named_parameters()}}


def movement() -> dict:
    """The scores of a plain loop: minus the sum of gradient times weight, at the weights before each step
    (Sanh, Wolf and Rush, "Movement pruning", 2020, equation 3, without its constant factor)."""
    made = layers()
    net = torch.nn.Sequential(made["first"], torch.nn.ReLU(), made["second"]).double()
    optim = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False, fused=False)
    scores = {"0.weight": torch.zeros(H, F).double(), "2.weight": torch.zeros(C, H).double()}
    for first in range(0, ROWS, BATCH):
        rows = slice(first, first + BATCH)
        optim.zero_grad()
        cross_entropy(net(DATA[rows].double()), TARGET[rows]).backward()
        for name, score in scores.items():
            score -= net.get_parameter(name).grad * net.get_parameter(name).detach()
        optim.step()
    masks = {}
    for name, score in scores.items():
        mask = torch.ones_like(score)
        mask.view(-1)[torch.topk(score.view(-1), k=score.numel() // 2, largest=False).indices] = 0
        masks[name] = bits(mask)
    return {"sparsity": 0.5, "masks": masks, "scores": {name: values(score) for name, score in scores.items()}}


def main() -> None:
    deterministic()
    write(
        "prune.json",
        "make_prune.py",
        {
            "layers": "weight of number n is number(70, n, i), bias number(70, 10 + n, i); masks are 1 where a weight "
            "is kept",
            "shapes": SHAPES,
            "data": {"shape": [ROWS, F], "values": values(DATA)},
            "target": TARGET.tolist(),
            "batch": BATCH,
            "epochs": EPOCHS,
            "magnitude": [magnitude(0.5), magnitude(0.9), magnitude(0.33), everywhere(0.5), everywhere(0.9)],
            "two_of_four": two_of_four(),
            "training": {"float32": training(torch.float32), "float64": training(torch.float64)},
            "movement": movement(),
        },
    )


if __name__ == "__main__":
    main()
