# SPDX-License-Identifier: Apache-2.0
"""Rival: tuned PyTorch. Fused AdamW, resident tensors gathered one batch at a time by a permutation,
kept as bytes and scaled per batch, gradients set to none, no host sync in a step; --compile adds
torch.compile."""

import argparse
import time

import torch
from torch.nn.functional import cross_entropy

from peers_common import LEARNING_RATE, answer, arguments, fashion_mnist, network, prepare, scaled


def permuted(images, labels, batch: int):
    """Batches of a fresh permutation in every epoch; drops the incomplete last batch."""
    while True:
        for rows in torch.randperm(len(images)).split(batch):
            if len(rows) == batch:
                yield images.index_select(0, rows), labels.index_select(0, rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    args = arguments(parser)
    prepare()
    images, labels = fashion_mnist(args.data)
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, fused=True)

    def objective(data, target):
        return cross_entropy(net(scaled(data)), target)

    if args.compile:
        objective = torch.compile(objective, fullgraph=True, dynamic=False)
    batches = permuted(images, labels, args.batch)

    def train(steps: int) -> None:
        for _, (data, target) in zip(range(steps), batches):
            objective(data, target).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    train(args.warmup)
    start = time.perf_counter()
    train(args.steps)
    answer(args, time.perf_counter() - start, net, images, labels)


if __name__ == "__main__":
    main()
