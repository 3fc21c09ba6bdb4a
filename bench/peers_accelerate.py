# SPDX-License-Identifier: Apache-2.0
"""Rival: the plain loop with its model, optimizer and loader prepared by Accelerate."""

import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from peers_common import LEARNING_RATE, answer, arguments, endless, fashion_mnist, network, prepare, scaled


def main() -> None:
    args = arguments()
    accelerator = Accelerator(cpu=True)
    prepare()
    images, labels = fashion_mnist(args.data)
    loader = DataLoader(
        TensorDataset(images, labels), batch_size=args.batch, shuffle=True, drop_last=True
    )
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    criterion = nn.CrossEntropyLoss()
    batches = endless(loader)

    def train(steps: int) -> None:
        for _, (data, target) in zip(range(steps), batches):
            optimizer.zero_grad()
            loss = criterion(net(scaled(data)), target)
            accelerator.backward(loss)
            optimizer.step()

    train(args.warmup)
    start = time.perf_counter()
    train(args.steps)
    answer(args, time.perf_counter() - start, net, images, labels)


if __name__ == "__main__":
    main()
