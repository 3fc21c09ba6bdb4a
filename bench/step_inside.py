# SPDX-License-Identifier: Apache-2.0
"""Whether a compiled step gains from an optimizer inside of it: AdamW with clipped gradients, on the network of peers.py.

outside is what a step package and frugal do: the code returns gradients, and LibTorch's fused kernel updates. inside is one
graph, which changes parameters and moments in place. Both are compiled by AOTInductor with the exporter's settings, have
one thread, flushed denormals and the same batches of Fashion-MNIST. Prints one JSON line with the seconds of both.
"""

import json
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import cross_entropy, linear

from peers_common import LEARNING_RATE, fashion_mnist, network, prepare, scaled
from peers_tuned import permuted

EXPORTER = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "python" / "src"
BETA1, BETA2, EPS, DECAY, MOST = 0.9, 0.999, 1e-8, 0.01, 1.0
TURNS, STEPS, WARMUP = 40, 50, 20


def gradients(parameters, x, y):
    with torch.enable_grad():
        leaves = [each.detach().requires_grad_() for each in parameters]
        hidden = torch.relu(linear(x, leaves[0], leaves[1]))
        loss = cross_entropy(linear(hidden, leaves[2], leaves[3]), y)
        return loss.detach(), torch.autograd.grad(loss, leaves)


def outside(x, y, *parameters):
    loss, made = gradients(parameters, x, y)
    return [loss, *made]


def inside(x, y, rate, correction1, correction2, *tensors):
    """rate; 1 - beta1^t; the root of 1 - beta2^t; then parameters, first and second moments."""
    parameters, firsts, seconds = tensors[:4], tensors[4:8], tensors[8:]
    loss, made = gradients(parameters, x, y)
    norm = torch.stack([each.square().sum() for each in made]).sum().sqrt()
    factor = torch.clamp(MOST / (norm + 1e-6), max=1.0)
    for parameter, gradient, first, second in zip(parameters, made, firsts, seconds):
        gradient = gradient * factor
        first.copy_(torch.lerp(first, gradient, 1 - BETA1))
        second.copy_(second * BETA2 + gradient * gradient * (1 - BETA2))
        step = rate / correction1 * first / (second.sqrt() / correction2 + EPS)
        parameter.copy_(parameter * (1 - rate * DECAY) - step)
    return [loss]


class Graph(nn.Module):
    def __init__(self, graph):
        super().__init__()
        self.__dict__["graph"] = graph

    def forward(self, *inputs):
        return self.graph(*inputs)


def compiled(function, inputs, path: pathlib.Path):
    """The function as a program of AOTInductor."""
    from frugal_step.load import load
    from frugal_step import compiling, machine

    class Program:
        kind, recomputes = path.stem, False
        exported = torch.export.export(Graph(make_fx(function)(*inputs)), inputs, strict=False)

    compiling.compile_program(Program, str(path), machine.compiler_for(machine.DEFAULT), None, torch.device("cpu"))
    return load(str(path))


class Adam:
    """Parameters and moments, and what both ways do in a step."""

    def __init__(self, program):
        self.program, self.step = program, 0
        self.parameters = [each.detach().clone() for each in network().parameters()]
        self.firsts = [torch.zeros_like(each) for each in self.parameters]
        self.seconds = [torch.zeros_like(each) for each in self.parameters]
        self.count = torch.zeros(())
        self.numbers = [torch.tensor(LEARNING_RATE), torch.zeros(()), torch.zeros(())]

    def by_fused_kernel(self, x, y) -> torch.Tensor:
        loss, *made = self.program(x, y, *self.parameters)
        norm = torch.stack(torch._foreach_norm(made)).norm().item()
        if norm > MOST:
            torch._foreach_mul_(made, MOST / (norm + 1e-6))
        self.count += 1
        counts = [self.count] * len(made)
        torch._fused_adamw_(self.parameters, made, self.firsts, self.seconds, [], counts, lr=LEARNING_RATE, beta1=BETA1,
                            beta2=BETA2, weight_decay=DECAY, eps=EPS, amsgrad=False, maximize=False)
        return loss

    def by_the_code(self, x, y) -> torch.Tensor:
        self.step += 1
        self.numbers[1].fill_(1 - BETA1**self.step)
        self.numbers[2].fill_((1 - BETA2**self.step) ** 0.5)
        return self.program(x, y, *self.numbers, *self.parameters, *self.firsts, *self.seconds)[0]


def measure(data, target, batch: int, folder: pathlib.Path) -> dict:
    torch.manual_seed(1)
    tensors = [each.detach().clone() for each in network().parameters()]
    example = scaled(data[:batch]), target[:batch]
    numbers = [torch.tensor(LEARNING_RATE), torch.tensor(0.1), torch.tensor(0.03)]
    moments = [torch.zeros_like(each) for each in tensors * 2]
    ways = {"outside": compiled(outside, (*example, *tensors), folder / f"outside-{batch}.so"),
            "inside": compiled(inside, (*example, *numbers, *tensors, *moments), folder / f"inside-{batch}.so")}
    steps, sources, losses = {}, {}, {}
    for way, program in ways.items():
        torch.manual_seed(1)
        state = Adam(program)
        steps[way] = state.by_the_code if way == "inside" else state.by_fused_kernel
        sources[way] = permuted(data, target, batch)
    found: dict = {way: [] for way in ways}
    for turn in range(WARMUP + TURNS):
        for way in [*ways][turn % 2:] + [*ways][:turn % 2]:
            torch.manual_seed(turn)  # both get the same permutation, if one begins
            pairs = [(scaled(x), y) for _, (x, y) in zip(range(STEPS), sources[way])]
            start = time.perf_counter()
            for x, y in pairs:
                loss = steps[way](x, y)
            seconds = (time.perf_counter() - start) / STEPS
            losses[way] = loss.item()
            if turn >= WARMUP:
                found[way].append(seconds)
    return {"batch": batch, "seconds_per_step": found, "loss": losses}


def main() -> None:
    sys.path[:0] = [str(EXPORTER)]
    prepare()
    data, target = fashion_mnist(pathlib.Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        blocks = [measure(data, target, batch, pathlib.Path(folder)) for batch in (32, 128)]
    for block in blocks:
        block["median"] = {way: statistics.median(times) for way, times in block["seconds_per_step"].items()}
    print(json.dumps(blocks))


if __name__ == "__main__":
    main()
