# SPDX-License-Identifier: Apache-2.0
"""A module and its loss as graphs of tensors: a step with its gradients, an evaluation, a prediction."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from .batch import Layout
from .errors import ExportError
from .loss import Loss, as_loss
from .refusal import refusing
from .sizes import Sizes, any_size
from .state import Replaced, State, modes
from .steady import Steady


@dataclasses.dataclass
class Job:
    """What is exported, with an example of its batches."""

    module: nn.Module
    loss: Callable
    layout: Layout
    state: State
    fields: tuple[torch.Tensor, ...]
    dynamic: dict[str, dict[int, str]]  # field -> dimension -> its name
    context: Callable[[], contextlib.AbstractContextManager]

    def loss_of(self, fields) -> Loss:
        with self.context():
            return as_loss(self.loss(self.module, self.layout.batch(fields)))


@dataclasses.dataclass
class Traced:
    """A graph, the names of what it returns, and for which sizes it is right.

    Inputs of the graph: the tensors of the state, its constants, the fields, and for a step the gradient of
    the loss that backward starts from.
    """

    graph: torch.fx.GraphModule
    inputs: list[torch.Tensor]
    outputs: list[str]  # value, weight, output, buffer:NAME, gradient:NAME
    ranges: dict[str, list[int]]


def step_of(job: Job, outputs: bool) -> Traced:
    """The loss of a batch with the gradients of what is trained."""
    state = job.state
    frozen, trained = len(state.frozen), list(state.trained)
    made: list[str] = []

    def step(*inputs):
        tensors, constants, fields = _split(state, inputs[:-1])
        with torch.enable_grad():
            leaves = [weight.detach().requires_grad_() for weight in tensors[:len(trained)]]
            kept = tensors[len(trained):len(trained) + frozen]
            own = [buffer.clone() for buffer in tensors[len(trained) + frozen:]]
            # Until after backward: checkpointed parts and hooks read the parameters then.
            with Replaced(job.module, state, [*leaves, *kept, *own], constants) as replaced:
                loss = job.loss_of(fields)
                value = loss.value.reshape(())
                if not value.requires_grad:
                    _refuse_constant_loss()
                seed = inputs[-1].to(value.dtype)
                with _NoDraws():
                    gradients = torch.autograd.grad(value, leaves, grad_outputs=seed, allow_unused=True)
                replaced.check_parameters()
                buffers = replaced.buffers()
        if all(gradient is None for gradient in gradients):
            _refuse_constant_loss()
        parts = _parts(loss, outputs)
        parts |= {f"buffer:{name}": buffer for name, buffer in zip(state.buffers, buffers)}
        parts |= {f"gradient:{name}": _like(name, gradient, leaf)
                  for name, gradient, leaf in zip(trained, gradients, leaves) if gradient is not None}
        made[:] = parts
        return [tensor.detach() for tensor in parts.values()]

    seed = torch.ones((), dtype=torch.float32, device=job.fields[0].device)
    with modes(job.module, True):
        graph, ranges = _traced_twice(job, step, [seed])
    return Traced(graph, [*state.detached(), *state.fixed(), *job.fields, seed], made, ranges)


def evaluation_of(job: Job) -> Traced:
    """The loss of a batch and what the module predicts, in evaluation mode."""
    state = job.state
    made: list[str] = []

    def evaluation(*inputs):
        tensors, constants, fields = _split(state, inputs)
        first = len(tensors) - len(state.buffers)
        own = [buffer.clone() for buffer in tensors[first:]]
        with torch.no_grad():
            with Replaced(job.module, state, [*tensors[:first], *own], constants) as replaced:
                loss = job.loss_of(fields)
                replaced.check_parameters()
                buffers = replaced.buffers()
            parts = _parts(loss, outputs=True)
            parts |= {f"buffer:{name}": buffer for name, buffer in zip(state.buffers, buffers)}
            made[:] = parts
            return [tensor.detach() for tensor in parts.values()]

    with modes(job.module, False):
        graph, ranges = _traced_twice(job, evaluation, [])
    return Traced(graph, [*state.detached(), *state.fixed(), *job.fields], made, ranges)


class _NoDraws(TorchDispatchMode):
    """Refuses random numbers in a backward pass: in eager PyTorch a checkpointed part draws those of the forward pass
    again, and a graph has no state of a generator that it could go back to."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise ExportError(
                "random numbers are drawn in the backward pass",
                where=f"the operator {func}",
                why="torch.utils.checkpoint computes dropout again there, which would drop other numbers than in the forward pass",
                fix="Export without torch.utils.checkpoint, with memory_budget in its place.",
            )
        return func(*args, **(kwargs or {}))


def _split(state: State, inputs):
    tensors = len(state.names())
    fields = tensors + len(state.constants)
    return list(inputs[:tensors]), list(inputs[tensors:fields]), inputs[fields:]


def _traced_twice(job: Job, function, others):
    """The graph of a function of (the state's tensors, its constants, the fields, others), and its ranges.

    It is traced twice: what Python computes from call to call is no part of a graph.
    """
    with Steady(job.module) as steady, refusing(job.module):
        for _ in range(2):
            sizes = Sizes()
            inputs = [sizes.fixed(tensor) for tensor in [*job.state.detached(), *job.state.fixed()]]
            inputs += [sizes.field(name, tensor, job.dynamic.get(name, {}))
                       for name, tensor in zip(job.layout.names, job.fields)]
            inputs += [sizes.fixed(tensor) for tensor in others]
            with steady.call():
                graph = _graph(function, inputs)
            steady.made(graph)
        return graph, sizes.ranges()


def _graph(function, inputs) -> torch.fx.GraphModule:
    """A graph of ATen's operators. Modules are told that torch.export calls them: many have a path for that
    without decisions by values."""
    before = torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag, torch._C._get_mkldnn_enabled()
    torch.compiler._is_compiling_flag = torch.compiler._is_exporting_flag = True
    # The LSTM of oneDNN cannot be called from a package; without it, an LSTM is made of other operators.
    torch._C._set_mkldnn_enabled(False)
    try:
        with any_size():
            return make_fx(function, tracing_mode="symbolic", _error_on_data_dependent_ops=True)(*inputs)
    finally:
        torch.compiler._is_compiling_flag, torch.compiler._is_exporting_flag = before[:2]
        torch._C._set_mkldnn_enabled(before[2])


def _parts(loss: Loss, outputs: bool) -> dict[str, torch.Tensor]:
    """What a program returns of a Loss, by name."""
    parts = {"value": loss.value.reshape(()).float()}
    if loss.weight is not None:
        parts["weight"] = loss.weight_tensor()
    if outputs and loss.output is not None:
        parts["output"] = loss.output
    return parts


def _like(name, gradient, weight):
    """A gradient in the layout of its weight, as autograd's own."""
    if gradient.layout != torch.strided:
        raise ExportError(
            f"the gradient of '{name}' is sparse",
            where=f"parameter '{name}'",
            why="a package returns dense gradients",
            fix="Make the layer with sparse=False.",
        )
    if gradient.stride() == weight.stride():
        return gradient
    return torch.empty_strided(weight.size(), weight.stride(), dtype=gradient.dtype,
                               device=gradient.device).copy_(gradient)


def _refuse_constant_loss():
    raise ExportError(
        "the loss depends on no parameter that is trained",
        where="loss(module, batch)",
        why="every gradient would be missing",
        fix="Return a loss of the module's output, without detach() or no_grad().",
    )
