# SPDX-License-Identifier: Apache-2.0
"""Writes structured.json: which channels torch-pruning removes from small networks, and what the networks
give afterwards."""

import torch
import torch_pruning as tp
from torch import nn

from reference import deterministic, table, values, write

IMAGE = [2, 3, 8, 8]


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        if inputs != outputs:
            self.short = nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (self.short(x) if hasattr(self, "short") else x)).relu()


class ResNet(nn.Module):
    """A residual network that is flattened, not averaged."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 1, 1)
        self.norm = nn.BatchNorm2d(8)
        self.first = Block(8, 8, 1)
        self.second = Block(8, 16, 2)
        self.head = nn.Linear(16 * 4 * 4, 5)

    def forward(self, x):
        x = self.second(self.first(self.norm(self.stem(x)).relu()))
        return self.head(x.flatten(1))


class Mobile(nn.Module):
    """Inverted residuals: 1x1, depthwise, 1x1."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.wide = nn.Conv2d(8, 24, 1)
        self.wide_norm = nn.BatchNorm2d(24)
        self.depth = nn.Conv2d(24, 24, 3, 1, 1, groups=24)
        self.depth_norm = nn.BatchNorm2d(24)
        self.narrow = nn.Conv2d(24, 8, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        y = nn.functional.relu6(self.wide_norm(self.wide(x)))
        y = nn.functional.relu6(self.depth_norm(self.depth(y)))
        x = x + self.narrow(y)
        return self.head(x.mean((2, 3)))


def filled(net: nn.Module, stream: int) -> nn.Module:
    """Parameter number n is number(stream, n, i) times 0.5, 1 + 0.25 of it for the weights of norms; the means
    of norms number n are number(stream, 100 + n, i) times 0.25, their variances 1 + 0.5 of number(stream, 200 + n, i)."""
    norms = {f"{name}.weight" for name, part in net.named_modules() if isinstance(part, nn.BatchNorm2d)}
    with torch.no_grad():
        for n, (name, p) in enumerate(net.named_parameters()):
            value = table(list(p.shape), stream, n)
            p.copy_(1 + 0.25 * value if name in norms else 0.5 * value)
        means = [b for name, b in net.named_buffers() if name.endswith("mean")]
        variances = [b for name, b in net.named_buffers() if name.endswith("var")]
        for n, (mean, variance) in enumerate(zip(means, variances)):
            mean.copy_(0.25 * table(list(mean.shape), stream, 100 + n))
            variance.copy_(1 + 0.5 * table(list(variance.shape), stream, 200 + n))
    return net.eval()


RANKS = {
    "l2": lambda: tp.importance.GroupMagnitudeImportance(p=2),
    "l1": lambda: tp.importance.GroupMagnitudeImportance(p=1),
    "batch_norm_scale": lambda: tp.importance.BNScaleImportance(),
}


ROOTS = {ResNet: ["stem", "first.conv1", "second.conv1", "second.conv2"], Mobile: ["stem", "wide"]}


def case(name: str, make, stream: int, rank: str, keep: float) -> dict:
    net = filled(make(), stream).double()
    image = table(IMAGE, 80, 0).double()
    graph = tp.DependencyGraph().build_dependency(net, image)

    def group(root: str, channels: list[int]):
        return graph.get_pruning_group(net.get_submodule(root), tp.prune_conv_out_channels, idxs=channels)

    # All are ranked before one is cut, so that their order has no effect.
    removed = {}
    for root in ROOTS[make]:
        width = net.get_submodule(root).out_channels
        importance = RANKS[rank]()(group(root, list(range(width))))
        removed[root] = torch.argsort(importance)[: width - int(width * keep)].tolist()
    for root, channels in removed.items():
        group(root, channels).prune()
    with torch.no_grad():
        output = net(image)
    return {
        "name": name, "network": make.__name__, "stream": stream, "rank": rank, "keep": keep,
        "shapes": {n: list(p.shape) for n, p in net.named_parameters()},
        "sums": {n: p.sum().item() for n, p in net.named_parameters()},
        "output": values(output),
    }  # fmt: skip


def main() -> None:
    deterministic()
    write(
        "structured.json",
        "make_structured.py",
        {
            "torch_pruning": "1.6.0",
            "weights": filled.__doc__,
            "image": "number(80, 0, i), of shape " + str(IMAGE),
            "cases": [
                case("residual, l2", ResNet, 81, "l2", 0.75),
                case("residual, l1, half", ResNet, 82, "l1", 0.5),
                case("residual, BatchNorm", ResNet, 83, "batch_norm_scale", 0.625),
                case("depthwise, l2", Mobile, 84, "l2", 0.5),
                case("depthwise, l1", Mobile, 85, "l1", 0.75),
            ],
        },
    )


if __name__ == "__main__":
    main()
