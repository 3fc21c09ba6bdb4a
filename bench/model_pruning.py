# SPDX-License-Identifier: Apache-2.0
"""The rival of bench/model.py for channels: torch-pruning on the same trained network.

    model_pruning.py WEIGHTS IMAGES THREADS

WEIGHTS is what `model_parts cut` saved. The same share of channels goes, rounded to the same widths, and the
same images tune what remains.
"""

import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch_pruning as tp
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import cross_entropy


def convolution(inputs: int, outputs: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv1, self.bn1 = convolution(width, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, 1), nn.BatchNorm2d(width)

    def forward(self, x):
        return (x + self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))).relu()


class ResNet(nn.Module):
    """That of bench/programs/model_parts.cpp."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.first = convolution(1, 128, 2), nn.BatchNorm2d(128), Block(128)
        self.conv2, self.bn2, self.second = convolution(128, 256, 2), nn.BatchNorm2d(256), Block(256)
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        half = self.bn1(self.conv1(x)).relu()
        quarter = self.bn2(self.conv2(self.first(half))).relu()
        return self.head(self.second(quarter).mean((2, 3)))


def read(folder: Path, split: str, count: int):
    def of(kind: str, header: int):
        name = f"{split}-{kind}-ubyte"
        path = next(each for each in (folder / name, folder / f"{name}.gz") if each.exists())
        opened = gzip.open(path) if path.suffix == ".gz" else path.open("rb")
        with opened as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)

    images = of("images-idx3", 16).reshape(-1, 1, 28, 28)[:count]
    return torch.tensor(images).float() / 255, torch.tensor(of("labels-idx1", 8)[:count]).long()


def main() -> None:
    weights, folder, threads = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    images, labels = read(folder, "train", 4000)
    test, answers = read(folder, "t10k", 2000)
    net = ResNet()
    net.load_state_dict(load_file(weights / "model.safetensors"))

    def accuracy() -> float:
        net.eval()
        with torch.no_grad():
            return (net(test).argmax(1) == answers).float().mean().item()

    def seconds() -> float:
        net.eval()
        best = 1e9
        with torch.no_grad():
            for _ in range(30):
                begun = time.perf_counter()
                net(test[:64])
                best = min(best, time.perf_counter() - begun)
        return best

    made = {"accuracy": accuracy(), "seconds": seconds()}
    example = test[:2]
    before, _ = tp.utils.count_ops_and_params(net, example)
    tp.pruner.MagnitudePruner(net, example, importance=tp.importance.MagnitudeImportance(p=2),
                              pruning_ratio=0.25, round_to=16, ignored_layers=[net.head]).step()  # fmt: skip
    after, _ = tp.utils.count_ops_and_params(net, example)
    made |= {"operations": after / before, "cut_accuracy": accuracy(), "cut_seconds": seconds()}
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    steps = (len(images) + 63) // 64
    # frugal's Schedule<Warmup<10>, LinearDecay<>>.
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 10, max(steps - step, 0) / max(steps - 10, 1)))  # fmt: skip
    for part in torch.randperm(len(images)).split(64):
        cross_entropy(net(images[part]), labels[part]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        rate.step()
    made["tuned_accuracy"] = accuracy()
    print(json.dumps(made))


if __name__ == "__main__":
    main()
