# SPDX-License-Identifier: Apache-2.0
"""export_step(): a module and its loss become a folder that frugal::StepPackage opens."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from . import arguments, check, machine, package, program, trace
from .batch import Layout
from .compiling import compile_program
from .loss import Loss
from .quiet import quiet
from .sizes import MOST
from .state import State
from .steady import untouched


def export_step(
    module: nn.Module,
    loss: Callable[[nn.Module, object], torch.Tensor | Loss],
    example_batch,
    folder: str | os.PathLike,
    *,
    shapes: Sequence = (),
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    autocast: torch.dtype | None = None,
    memory_budget: float | None = None,
    train_outputs: bool = False,
    march: str = machine.DEFAULT,
    threads: int | None = None,
    compare: bool = True,
    progress: bool = True,
) -> None:
    """Exports a training step, an evaluation and a prediction of a module, for frugal::StepPackage.

    module         any nn.Module, on the device of the package. Its parameters that require gradients are
                   trained; its modes and tensors are as before afterwards. A module in evaluation mode is
                   exported as if train() had been called; one in training mode keeps the modes of its parts.
    loss           loss(module, batch) -> a scalar tensor, or a Loss with weight and output
    example_batch  a dictionary of tensors, or a pair of data and target, of two samples or more
    folder         is made, or replaced if a package is there
    shapes         further example batches, each of which gets programs of its own: bucketed lengths
    dynamic        dimensions that vary, by field: {"data": {0: "batch"}}. Default: the first of every field
    autocast       torch.bfloat16 or torch.float16: the step runs under torch.autocast
    memory_budget  0 to 1: the part of the activations that the forward pass keeps; the rest is computed again
    train_outputs  the training step returns Loss.output as well, for TrainMetrics
    march          x86-64-v3 (AVX2, default), x86-64-v4 (AVX-512) or native, on x86-64
    threads        a fixed number of threads for kernels; default: those of the program that runs the package
    compare        compares the package with eager PyTorch before it is written
    """
    layout = Layout(example_batch)
    arguments.check_module(module)
    device = arguments.device_of(module)
    arguments.check_numbers(autocast, memory_budget, threads)
    batches = arguments.batches_of(layout, shapes, device)
    dynamic = arguments.dynamic_of(layout, batches, dynamic)
    state = State.of(module)
    arguments.check_state(module, state)
    folder = os.path.abspath(os.fspath(folder))
    package.check_folder(folder)
    settings = machine.compiler_for(march) if device.type == "cpu" else {}
    context = contextlib.nullcontext if autocast is None else _autocast(device, autocast)
    say = _printer(progress)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder), prefix=".frugal-step-") as made, \
            _plain(device), quiet(), untouched(module):
        programs = []
        for number, fields in enumerate(batches):
            job = trace.Job(module, loss, layout, state, fields, dynamic, context)
            for traced in _programs(job, train_outputs, memory_budget):
                name = f"{traced.kind}-{number}.so"
                say(f"compiling {name}: {_shape_words(traced)}")
                path = os.path.join(made, name)
                compile_program(traced, path, settings, threads, device)
                if compare:
                    say(f"comparing {name} with eager PyTorch")
                    check.compare(job, traced, path)
                for dimension, (low, high) in traced.dimensions.items():
                    if low > 1 or high < MOST:
                        say(f"{name} takes sizes of '{dimension}' from {low}" + (f" to {high}" if high < MOST else " on"))
                programs.append((traced, name))
        package.write_package(made, module, state, layout, programs, device, march, autocast)
        package.replace(made, folder)
    say(f"wrote {folder}")


def _programs(job, train_outputs, memory_budget):
    yield program.program_of(job, "step", trace.step_of(job, train_outputs), memory_budget)
    evaluation = trace.evaluation_of(job)
    yield program.program_of(job, "evaluate", evaluation)
    if "output" in evaluation.outputs:
        yield program.prediction_of(job, evaluation)


def _shape_words(traced) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in traced.shapes.items())


def _autocast(device, dtype):
    # Without the cache: a cast that is kept from another trace would be a constant of the graph.
    return lambda: torch.autocast(device.type, dtype, cache_enabled=False)


@contextlib.contextmanager
def _plain(device):
    """Torch as a training program has it, whatever the caller's contexts are."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device.type, enabled=False):
        yield


def _printer(progress):
    def say(text):
        if progress:
            print(f"frugal_step: {text}", file=sys.stderr, flush=True)

    return say
