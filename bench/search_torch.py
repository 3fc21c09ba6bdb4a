# SPDX-License-Identifier: Apache-2.0
"""What the rivals of bench/search.py train: the network of its orchestration in a tuned plain PyTorch loop.

As frugal's trials do: one thread, float32 images in memory, batches of a permutation, AdamW with 20 steps of warm-up and a cosine, every
90 steps a validation with loss and accuracy and a checkpoint of weights and optimizer, and a validation at the end.
"""

import argparse
import gzip
import json
import math
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

BATCH, WARMUP, EVERY, TRAINED = 64, 20, 90, 50_000


def arguments(doc: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder of Fashion-MNIST")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="for what a trial writes")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--candidates", type=json.loads, required=True, help="a list of lr, channels and hidden")
    return parser.parse_args()


def answer(wall: float, loops: list[float], losses: list[float], **more) -> None:
    print(json.dumps({"wall": wall, "loops": loops, "losses": losses, **more}))


def fashion_mnist(folder: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Images [60000, 1, 28, 28] float32 and labels [60000] int64."""
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return pixels.astype(np.float32) / 255, labels.astype(np.int64)


def network(channels: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(2 * channels * 49, hidden), nn.ReLU(), nn.Dropout(0.0), nn.Linear(hidden, 10),
    )  # fmt: skip


def batches(images: torch.Tensor, labels: torch.Tensor):
    while True:
        for rows in torch.randperm(len(images)).split(BATCH):
            if len(rows) == BATCH:
                yield images.index_select(0, rows), labels.index_select(0, rows)


@torch.no_grad()
def validate(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
    net.eval()
    loss, right = 0.0, 0
    for data, target in zip(images.split(500), labels.split(500)):
        logits = net(data)
        loss += cross_entropy(logits, target, reduction="sum").item()
        right += (logits.argmax(1) == target).sum().item()
    net.train()
    return loss / len(images), right / len(images)


def train(candidate: dict, arrays, steps: int, folder: pathlib.Path) -> tuple[float, float]:
    """Loss of the validation, and seconds of the loop."""
    begin = time.perf_counter()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    images, labels = (torch.from_numpy(each) for each in arrays)
    held = images[TRAINED:], labels[TRAINED:]
    net = network(int(candidate["channels"]), int(candidate["hidden"]))
    optimizer = torch.optim.AdamW(net.parameters(), lr=candidate["lr"], fused=True)
    source = batches(images[:TRAINED], labels[:TRAINED])
    for step, (data, target) in zip(range(steps), source):
        done = (step - WARMUP) / max(1, steps - WARMUP)
        factor = (step + 1) / WARMUP if step < WARMUP else (1 + math.cos(math.pi * done)) / 2
        optimizer.param_groups[0]["lr"] = candidate["lr"] * factor
        cross_entropy(net(data), target).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (step + 1) % EVERY == 0:
            validate(net, *held)
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}, folder / "checkpoint.pt")
    loss, _ = validate(net, *held)
    return loss, time.perf_counter() - begin
