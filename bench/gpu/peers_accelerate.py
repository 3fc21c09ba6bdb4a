# SPDX-License-Identifier: Apache-2.0
"""Rival: the plain loop with its model, fused AdamW and DataLoader prepared by Accelerate."""

from common_gpu import F, LEARNING_RATE, Clock, Job, answer, arguments, not_run, torch, train

try:
    from accelerate import Accelerator
except ImportError:
    not_run("accelerate is not installed")

from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        yield from loader


def main() -> None:
    args = arguments(["accelerate"], ["mlp"])
    job, clock = Job(args.job), Clock(args)
    on_gpu = args.device.type == "cuda"
    accelerator = Accelerator(cpu=not on_gpu)
    loader = DataLoader(
        TensorDataset(job.data, job.target),
        batch_size=job.batch,
        shuffle=True,
        drop_last=True,
        pin_memory=on_gpu,
    )
    optimizer = torch.optim.AdamW(job.net.parameters(), lr=LEARNING_RATE, fused=True)
    net, optimizer, loader = accelerator.prepare(job.net, optimizer, loader)
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
