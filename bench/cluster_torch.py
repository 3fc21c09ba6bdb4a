# SPDX-License-Identifier: Apache-2.0
"""One rank of the rival of bench/cluster.py: PyTorch's DistributedDataParallel over Gloo.

Fused AdamW, gradients that are views of the buckets, a static graph, rows that are there already, no data loader: every
setting that frugal's program has.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "gpu"))
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from common_gpu import Block, Embedding, Head  # noqa: E402


def job_named(name: str) -> tuple:
    """The jobs of bench/programs/cluster.cpp."""
    torch.manual_seed(1)
    if name == "small":
        net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
        rows = torch.randn(4096, 64)
        return net, rows, rows[:, :10].argmax(1), 32
    blocks = [Block(384, 6) for _ in range(6)]
    net = torch.nn.Sequential(Embedding(512, 128, 384), *blocks, Head(512, 384))
    text = torch.randint(0, 512, (512, 129))
    return net, text[:, :128].contiguous(), text[:, 1:].contiguous(), 4


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=["small", "gpt"], default="small")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net, x, y, batch = job_named(args.job)
    parallel = torch.nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    batches = len(x) // batch
    order = torch.randperm(batches, generator=torch.Generator().manual_seed(2)).tolist()
    seconds, last = [], 0.0
    for step in range(args.steps + args.warmup):
        at = order[(step * size + rank) % batches] * batch
        loss = F.cross_entropy(parallel(x[at : at + batch]), y[at : at + batch])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        now = time.perf_counter()
        if step >= args.warmup:
            seconds.append(now - last)
        last = now
    if rank == 0:
        with torch.no_grad():
            found = F.cross_entropy(net(x[:64]), y[:64]).item()
        print(json.dumps({"seconds": seconds, "loss": found}), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
