# SPDX-License-Identifier: Apache-2.0
"""Shared by the Python rivals of bench/peers.py: the job, the data, the output.

A rival is a program called as `--data DIR --batch B --steps N --warmup W`. It trains W steps, then
starts the clock, trains N more, and prints one JSON line. The C++ program has the same contract.
"""

import argparse
import gzip
import json
import pathlib

import numpy as np
import torch
from torch import nn

IMAGES = "train-images-idx3-ubyte.gz"
LABELS = "train-labels-idx1-ubyte.gz"
IMAGE_HEADER, LABEL_HEADER = 16, 8  # bytes before the first value of an IDX file

LEARNING_RATE = 1e-3
JUDGED = 10_000  # images for the final loss


def arguments(parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    return parser.parse_args()


def prepare() -> None:
    """What frugal's side sets as well: one thread, and denormal numbers are zero."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)


def scaled(images: torch.Tensor) -> torch.Tensor:
    """Bytes to float32 in [0, 1], as frugal's ScaleBytes does batch by batch."""
    return images.to(torch.float32).div_(255)


def fashion_mnist(folder: pathlib.Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Images [60000, 784] uint8 and labels [60000] int64."""
    with gzip.open(folder / IMAGES) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=IMAGE_HEADER).reshape(-1, 784)
    with gzip.open(folder / LABELS) as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=LABEL_HEADER)
    return torch.from_numpy(pixels.copy()), torch.from_numpy(labels.astype(np.int64))


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def endless(loader):
    """Endless epochs: a run of fixed length rarely ends with one."""
    while True:
        yield from loader


@torch.no_grad()
def answer(args, seconds: float, net: nn.Module, images, labels) -> None:
    """Prints the line. The loss is evaluated after the clock has stopped, on the same images for all,
    so that different shuffles can be compared."""
    loss = nn.functional.cross_entropy(net(scaled(images[:JUDGED])), labels[:JUDGED])
    print(
        json.dumps(
            {
                "samples_per_second": args.steps * args.batch / seconds,
                "loss": loss.item(),
                "steps": args.steps,
                "batch": args.batch,
            }
        )
    )
