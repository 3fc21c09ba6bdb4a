# SPDX-License-Identifier: Apache-2.0
"""Rival: the plain loop with its model, fused AdamW and DataLoader prepared by Accelerate."""

from common_gpu import (
    F,
    LEARNING_RATE,
    Clock,
    Job,
    answer,
    arguments,
    loader_of,
    not_run,
    torch,
    train,
)

try:
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration
except ImportError:
    not_run("accelerate is not installed")


def endless(loader):
    while True:
        yield from loader


def main() -> None:
    args = arguments(["accelerate"], ["mlp"])
    job, clock = Job(args.job), Clock(args)
    on_gpu = args.device.type == "cuda"
    loading = DataLoaderConfiguration(non_blocking=on_gpu)
    accelerator = Accelerator(cpu=not on_gpu, dataloader_config=loading)
    optimizer = torch.optim.AdamW(job.net.parameters(), lr=LEARNING_RATE, fused=True)
    net, optimizer, loader = accelerator.prepare(
        job.net, optimizer, loader_of(job, args.device)
    )
    batches = endless(loader)

    def step() -> None:
        data, target = next(batches)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data), target)
        accelerator.backward(loss)
        optimizer.step()

    train(clock, step)
    answer(args, "accelerate", "accelerate", job, clock)


if __name__ == "__main__":
    main()
