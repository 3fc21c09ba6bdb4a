# SPDX-License-Identifier: Apache-2.0
"""The larger jobs of bench/step.py, a convolutional network and a GPT: exported as packages, or trained by PyTorch.

step_models.py JOB export FOLDER
step_models.py JOB eager|compiled STEPS

JOB is cnn, gpt, cnn-bf16 or gpt-bf16; with -bf16 forward and backward run under autocast. A training prints one JSON line. Both
sides compile for this CPU, and have one thread, a fused AdamW, flushed denormals, and gather a batch of resident noise by a permutation.
"""

import contextlib
import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from peers_common import LEARNING_RATE, prepare
from peers_tuned import permuted

EXPORTER = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "python" / "src"
BATCHES = 8  # that the noise has
WARMUP = 3


class Cnn(nn.Sequential):
    """The network of examples/fashion_mnist.cpp, without dropout."""

    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        batch, tokens, channels = x.shape
        parts = self.qkv(self.before(x)).view(batch, tokens, 3, self.heads, channels // self.heads).unbind(2)
        query, key, value = (part.transpose(1, 2) for part in parts)
        made = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(made.transpose(1, 2).reshape(batch, tokens, channels))
        return x + self.down(nn.functional.gelu(self.up(self.between(x))))


class Gpt(nn.Module):
    """10.9 million parameters: 6 layers, 384 channels, 6 heads, 128 learned positions, bytes."""

    def __init__(self):
        super().__init__()
        self.word, self.position = nn.Embedding(256, 384), nn.Parameter(0.02 * torch.randn(128, 384))
        self.blocks = nn.Sequential(*[Block(384, 6) for _ in range(6)])
        self.last, self.head = nn.LayerNorm(384), nn.Linear(384, 256, bias=False)

    def forward(self, tokens):
        return self.head(self.last(self.blocks(self.word(tokens) + self.position)))


def job(name: str):
    """The module, its noise and the batch."""
    torch.manual_seed(1)
    if name.startswith("cnn"):
        rows = 128 * BATCHES
        return Cnn(), torch.rand(rows, 1, 28, 28), torch.randint(0, 10, (rows,)), 128
    rows = 8 * BATCHES
    return Gpt(), torch.randint(0, 256, (rows, 128)), torch.randint(0, 256, (rows, 128)), 8


def objective(module, data, target):
    logits = module(data)
    return cross_entropy(logits.reshape(-1, logits.size(-1)).float(), target.reshape(-1))


def export(name: str, folder: str) -> None:
    from frugal_step import export_step

    module, data, target, batch = job(name)
    export_step(module, lambda net, fields: objective(net, fields["data"], fields["target"]),
                {"data": data[:batch], "target": target[:batch]}, folder,
                autocast=torch.bfloat16 if name.endswith("-bf16") else None, march="native")


def train(name: str, compiles: bool, steps: int) -> None:
    prepare()
    module, data, target, batch = job(name)
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE, fused=True)
    loss = torch.compile(objective, fullgraph=True, dynamic=False) if compiles else objective
    batches = permuted(data, target, batch)
    context = (lambda: torch.autocast("cpu", torch.bfloat16)) if name.endswith("-bf16") else contextlib.nullcontext

    def run(count: int) -> float:
        for _, pair in zip(range(count), batches):
            with context():
                value = loss(module, *pair)
            value.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return value.item()

    run(WARMUP)
    start = time.perf_counter()
    final = run(steps)
    print(json.dumps({"seconds_per_step": (time.perf_counter() - start) / steps, "loss": final}))


if __name__ == "__main__":
    if sys.argv[2] == "export":
        sys.path.insert(0, str(EXPORTER))
        export(sys.argv[1], sys.argv[3])
    else:
        train(sys.argv[1], sys.argv[2] == "compiled", int(sys.argv[3]))
