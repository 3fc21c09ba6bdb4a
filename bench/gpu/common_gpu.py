# SPDX-License-Identifier: Apache-2.0
"""Shared by the Python rivals of bench/gpu.py: the jobs, the clock, the output.

A rival is called as `--job mlp --how eager --steps N --warmup W --device cuda` and prints one JSON
line, as bench/gpu/rounds.cpp does. Exit code 77, with {"not_run": reason}: it cannot be measured
here. Data, networks and initial weights are those of rounds.cpp. No NumPy is needed.

Shapes: B samples, T tokens, C channels.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

NOT_RUN = 77

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, TensorDataset
except ImportError as error:
    print(json.dumps({"not_run": f"torch cannot be imported: {error}"}))
    sys.exit(NOT_RUN)

LEARNING_RATE = 1e-3
# As in rounds.cpp. One step: in a second one, a copy from pageable memory would wait for the first
# one's kernels.
BURST, BURSTS = 1, 100


def not_run(reason: str) -> NoReturn:
    print(json.dumps({"not_run": reason}))
    sys.exit(NOT_RUN)


def arguments(hows: list[str], jobs: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=jobs, default="mlp")
    parser.add_argument("--how", choices=hows, default=hows[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        not_run("no GPU found")
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")  # TF32
    torch.backends.cudnn.allow_tf32 = True
    args.device = torch.device("cuda:0" if args.device == "cuda" else "cpu")
    return args


# ---- jobs ----------------------------------------------------------------------------------------


class Block(nn.Module):
    """BlockImpl of bench/transformer.hpp."""

    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.between = nn.LayerNorm(channels)
        self.up = nn.Linear(channels, 4 * channels)
        self.down = nn.Linear(4 * channels, channels)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, self.heads, c // self.heads).unbind(2)
        attended = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Embedding(nn.Module):
    def __init__(self, words: int, tokens: int, channels: int):
        super().__init__()
        self.word = nn.Embedding(words, channels)
        self.position = nn.Parameter(torch.randn(tokens, channels).mul_(0.02))

    def forward(self, words):
        return self.word(words) + self.position[: words.shape[1]]


class Head(nn.Module):
    def __init__(self, words: int, channels: int):
        super().__init__()
        self.before = nn.LayerNorm(channels)
        self.words = nn.Linear(channels, words)

    def forward(self, x):
        return self.words(self.before(x)).transpose(1, 2)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(7)
    count = 60000
    label = torch.randint(0, 10, (count,))
    pixels = torch.rand(10, 784).index_select(0, label)
    noisy = pixels.add(torch.rand(count, 784)).mul_(0.5)
    random = torch.randint(0, 10, (count,))
    return noisy, torch.where(torch.rand(count) < 0.2, random, label)


SHAPES = {  # layers, batch, tokens, channels, heads, words
    "transformer": (6, 16, 128, 384, 6, 512),
    "large": (8, 8, 512, 2048, 16, 4096),
}


def sequences(tokens: int, vocabulary: int) -> torch.Tensor:
    """Each word follows from the one before, except for a fifth that are random: the loss has a floor,
    and falls only if training works."""
    torch.manual_seed(7)
    words = [torch.randint(0, vocabulary, (4096,))]
    for _ in range(tokens):
        noise = torch.rand(4096) < 0.2
        random = torch.randint(0, vocabulary, (4096,))
        words.append(torch.where(noise, random, (words[-1] * 5 + 1) % vocabulary))
    return torch.stack(words, 1)


class Job:
    """Data on the host, and a network on the CPU with its initial weights."""

    def __init__(self, name: str):
        self.name, self.judged = name, 4096
        if name in SHAPES:
            layers, batch, tokens, channels, heads, words = SHAPES[name]
            text = sequences(tokens, words)
            self.data, self.target = text[:, :tokens].contiguous(), text[:, 1:].contiguous()
        else:
            self.data, self.target = images()
        torch.manual_seed(1)
        if name == "mlp":
            self.batch = 32
            self.net = nn.Sequential(
                nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
            )
        elif name == "convnet":
            self.batch = 128
            self.data = self.data.view(-1, 1, 28, 28)
            self.net = nn.Sequential(
                nn.Conv2d(1, 32, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(32, 64, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(3136, 128),
                nn.ReLU(),
                nn.Linear(128, 10),
            )
        else:
            self.batch, self.judged = batch, 64
            blocks = [Block(channels, heads) for _ in range(layers)]
            self.net = nn.Sequential(
                Embedding(words, tokens, channels), *blocks, Head(words, channels)
            )


class Samples(TensorDataset):
    """Indexed once for a whole batch: otherwise the benchmark would measure indexing by sample."""

    def __getitems__(self, rows: list[int]) -> list[torch.Tensor]:
        index = torch.tensor(rows)
        return [each.index_select(0, index) for each in self.tensors]


def as_it_is(batch: list[torch.Tensor]) -> list[torch.Tensor]:
    return batch


def loader_of(job: Job, device: torch.device) -> DataLoader:
    # Not sampler=BatchSampler(...) and batch_size=None, which Accelerate 1.15 refuses in one process.
    return DataLoader(
        Samples(job.data, job.target),
        batch_size=job.batch,
        shuffle=True,
        drop_last=True,
        collate_fn=as_it_is,
        pin_memory=device.type == "cuda",
    )


class Feed:
    """Batches of a fresh permutation in every epoch, in page-locked memory on a machine with a GPU.
    A slot is refilled once the copy out of it is done: call sent() after that copy."""

    SLOTS = 4

    def __init__(self, job: Job, device: torch.device):
        self.job, self.on_gpu = job, device.type == "cuda"
        self.rows = self._permutations()
        self.turn = 0
        self.slots = [
            [
                torch.empty(
                    job.batch, *all_of.shape[1:], dtype=all_of.dtype, pin_memory=self.on_gpu
                )
                for all_of in (job.data, job.target)
            ]
            for _ in range(self.SLOTS)
        ]
        self.copied = [torch.cuda.Event() for _ in range(self.SLOTS)] if self.on_gpu else []

    def _permutations(self) -> Iterator[torch.Tensor]:
        while True:
            for rows in torch.randperm(len(self.job.data)).split(self.job.batch):
                if len(rows) == self.job.batch:
                    yield rows

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self.on_gpu:
            self.copied[self.turn].synchronize()
        data, target = self.slots[self.turn]
        rows = next(self.rows)
        torch.index_select(self.job.data, 0, rows, out=data)
        torch.index_select(self.job.target, 0, rows, out=target)
        return data, target

    def sent(self) -> None:
        if self.on_gpu:
            self.copied[self.turn].record()
        self.turn = (self.turn + 1) % self.SLOTS


# ---- the clock and the answer --------------------------------------------------------------------


class Clock:
    """Called after each step. After the timed steps it runs short bursts that begin with a
    synchronise: in them the host never waits for the device, so their median is the host's cost of a
    step."""

    def __init__(self, args: argparse.Namespace):
        self.warmup, self.steps, self.device = args.warmup, args.steps, args.device
        self.host = self.wall = self.begin = 0.0
        self.launches: list[float] = []

    def all_steps(self) -> int:
        return self.warmup + self.steps + BURST * BURSTS

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def done(self, step: int) -> None:
        if step < self.warmup:
            return
        if step == self.warmup:
            self.wait()
            self.begin = time.perf_counter()
        elif step == self.warmup + self.steps:
            self.host = time.perf_counter() - self.begin
            self.wait()
            self.wall = time.perf_counter() - self.begin
            self.begin = time.perf_counter()
        elif step > self.warmup + self.steps and (step - self.warmup - self.steps) % BURST == 0:
            self.launches.append((time.perf_counter() - self.begin) / BURST)
            self.wait()
            self.begin = time.perf_counter()


def train(clock: Clock, one_step: Callable[[], None]) -> None:
    for step in range(1, clock.all_steps() + 1):
        one_step()
        clock.done(step)


@torch.no_grad()
def answer(args: argparse.Namespace, by: str, how: str, job: Job, clock: Clock, **more) -> None:
    on_gpu = args.device.type == "cuda"
    line = {
        "job": job.name,
        "how": how,
        "by": by,
        "batch": job.batch,
        "tf32": True,
        "steps": clock.steps,
        "warmup": clock.warmup,
        "seconds": clock.wall,
        "seconds_per_step": clock.wall / clock.steps,
        "host_seconds_per_step": clock.host / clock.steps,
        "launch_seconds_per_step": statistics.median(clock.launches) if clock.launches else None,
        "peak_allocated": torch.cuda.max_memory_allocated() if on_gpu else None,
        "peak_reserved": torch.cuda.max_memory_reserved() if on_gpu else None,
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "device": torch.cuda.get_device_name(0) if on_gpu else "cpu",
        "advice": [],
    }
    net = job.net.to(args.device)
    data, target = job.data[: job.judged].to(args.device), job.target[: job.judged].to(args.device)
    line["loss"] = F.cross_entropy(net(data), target).item()
    print(json.dumps(line | more), flush=True)
