# SPDX-License-Identifier: Apache-2.0
"""What the tests of the exporter share: programs without a compiler, and their numbers beside eager PyTorch's."""

from __future__ import annotations

import contextlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "packaging", "python", "src"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from frugal_step import arguments, batch, check, compiling, load, machine, program, state, trace  # noqa: E402
from frugal_step.quiet import quiet  # noqa: E402
from torch import nn  # noqa: E402

CPU = torch.device("cpu")


def cross_entropy(module, batch):
    return F.cross_entropy(module(batch[0]), batch[1])


def pairs(samples=6, width=8, classes=4):
    numbers = torch.Generator().manual_seed(1)
    return torch.randn(samples, width, generator=numbers), torch.randint(0, classes, (samples,), generator=numbers)


def linear(*sizes) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(*sizes)


def job_of(module, loss, example, dynamic=None, autocast=None) -> trace.Job:
    layout = batch.Layout(example)
    arguments.check_module(module)
    batches = arguments.batches_of(layout, (), CPU)
    named = arguments.dynamic_of(layout, batches, dynamic)
    own = state.State.of(module)
    arguments.check_state(module, own)
    context = contextlib.nullcontext
    if autocast is not None:
        def context():
            return torch.autocast("cpu", autocast, cache_enabled=False)
    return trace.Job(module, loss, layout, own, batches[0], named, context)


def program_of(job, kind="step", outputs=False, budget=None):
    with quiet():
        traced = trace.step_of(job, outputs) if kind == "step" else trace.evaluation_of(job)
        return program.program_of(job, kind, traced, budget)


def inputs_of(job, made, fields):
    named = dict(zip(job.layout.names, fields))
    seed = [torch.ones(())] if made.kind == "step" else []
    return [*job.state.detached(), *[named[name] for name in made.fields], *seed]


def graph_numbers(job, made, fields) -> dict[str, torch.Tensor]:
    """What the graph of a program computes before it is compiled."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return dict(zip(made.outputs, made.exported.module(check_guards=False)(*inputs_of(job, made, fields))))


def compiled(job, made, path, budget=None):
    """A program as compiled code: a function of a batch's fields."""
    with quiet():
        compiling.compile_program(made, path, machine.compiler_for(machine.DEFAULT), None, CPU)
    run = load.load(path)
    return lambda fields, *seed: dict(zip(made.outputs, run(*inputs_of(job, made, fields)[:-1 if seed else None], *seed)))


def largest_error(found, expected) -> float:
    """The largest difference of the tensors of two dictionaries, each relative to the largest number of its
    tensor, or of all gradients where a tensor has only rounding errors."""
    most = max(float(tensor.double().abs().max()) for tensor in expected.values())
    assert found.keys() >= expected.keys(), expected.keys() - found.keys()
    return max(float((found[name].double() - tensor.double()).abs().max())
               / max(float(tensor.double().abs().max()), 1e-4 * most) for name, tensor in expected.items())


def eager(job, made, fields):
    return check._eager(job, made, fields)
