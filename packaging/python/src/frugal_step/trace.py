# SPDX-License-Identifier: Apache-2.0
"""A module and its loss as graphs of tensors: a step with its gradients, an evaluation, a prediction."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import operator
import os
import traceback
from collections.abc import Callable

import torch
from torch import nn
from torch.fx.experimental import _config as symbolic_config
from torch.fx.experimental.proxy_tensor import make_fx

from .batch import Layout
from .errors import ExportError
from .loss import as_loss
from .recompute import with_recomputation

_HERE = os.path.dirname(__file__)

@dataclasses.dataclass
class State:
    """The tensors of a module, in the order in which programs take them."""

    trained: dict[str, nn.Parameter]
    frozen: dict[str, nn.Parameter]
    buffers: dict[str, torch.Tensor]
    tied: dict[str, str]  # another name of a parameter or buffer -> its first name

    @staticmethod
    def of(module: nn.Module) -> State:
        parameters = dict(module.named_parameters())
        kept = module.state_dict(keep_vars=True)
        buffers = {name: tensor for name, tensor in module.named_buffers() if name in kept}
        first = {id(tensor): name for name, tensor in [*parameters.items(), *buffers.items()]}
        tied = {name: first[id(tensor)] for name, tensor in kept.items()
                if isinstance(tensor, torch.Tensor) and first.get(id(tensor), name) != name}
        return State(
            {name: p for name, p in parameters.items() if p.requires_grad},
            {name: p for name, p in parameters.items() if not p.requires_grad},
            buffers,
            tied,
        )

    def tensors(self) -> list[torch.Tensor]:
        return [*self.trained.values(), *self.frozen.values(), *self.buffers.values()]

    def detached(self) -> list[torch.Tensor]:
        return [tensor.detach() for tensor in self.tensors()]

    def names(self) -> list[str]:
        return [*self.trained, *self.frozen, *self.buffers]


@dataclasses.dataclass
class Job:
    """What is exported, with an example of its batches."""

    module: nn.Module
    loss: Callable
    layout: Layout
    state: State
    fields: tuple[torch.Tensor, ...]
    dynamic: dict[str, dict[int, str]]  # field -> dimension -> its name
    context: Callable  # of the forward pass: autocast


@dataclasses.dataclass
class Program:
    """A graph that can be compiled, and what its inputs and outputs are."""

    kind: str  # step, evaluate, predict
    exported: torch.export.ExportedProgram
    fields: list[str]
    shapes: dict[str, list[int | str]]  # of each field: a number, or the name of a dimension
    dimensions: dict[str, list[int]]  # name -> the smallest and largest size
    outputs: list[str]  # value, weight, output, buffer:NAME, gradient:NAME
    graph: str  # a hash of what it computes


class _Called(nn.Module):
    """The module with its loss, as one module whose inputs are the tensors of a batch."""

    def __init__(self, job: Job, wants):
        super().__init__()
        self.module = job.module
        self.__dict__["job"], self.__dict__["wants"] = job, wants

    def forward(self, *fields):
        return self.wants(as_loss(self.job.loss(self.module, self.job.layout.batch(fields))))


class _Holder(nn.Module):
    """A graph as a module without parameters: the weights stay inputs."""

    def __init__(self, graph):
        super().__init__()
        self.__dict__["graph"] = graph

    def forward(self, *inputs):
        return self.graph(*inputs)


@contextlib.contextmanager
def modes(module: nn.Module, training: bool):
    """The module in training or evaluation mode. A module in training mode keeps the modes of its parts."""
    before = {part: part.training for part in module.modules()}
    try:
        if not training or not module.training:
            module.train(training)
        yield
    finally:
        for part, mode in before.items():
            part.training = mode


def describe(error: BaseException) -> str:
    """The first sentence of an error of torch, on one line."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _place(error: BaseException | None, module: nn.Module) -> str:
    """The line of the module or of the loss in which an error arose."""
    while error is not None:
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if not frame.filename.startswith((*torch.__path__, _HERE, "<")) and "contextlib" not in frame.filename:
                return f"{frame.filename}:{frame.lineno}, in {frame.name}"
        error = error.__cause__ or error.__context__
    return type(module).__name__


@contextlib.contextmanager
def _refusing(module: nn.Module):
    """Turns errors of torch, which have no class of their own, into ExportErrors."""
    try:
        # A size of 1 is then a size as any other, and one compiled program takes it.
        with symbolic_config.patch(backed_size_oblivious=True):
            yield
    except ExportError:
        raise
    except Exception as error:
        raise _refusal(error, module) from error


def _captured(job: Job, wants, training: bool):
    """The job as a graph of torch's operators, which make_fx can trace: Python's control flow is gone."""
    dims = {"fields": tuple(_dims(job.layout.names, job.fields, job.dynamic))}
    with modes(job.module, training), _refusing(job.module), job.context():
        program = torch.export.export(_Called(job, wants), job.fields, dynamic_shapes=dims, strict=False)
    # The guards of the graph are those of the example's sizes; the package has its own.
    guards = {"check_guards": False} if "check_guards" in inspect.signature(program.module).parameters else {}
    return program.module(**guards)


def _refusal(error: Exception, module: nn.Module) -> ExportError:
    text = str(error)
    if "data-dependent" in text or "GuardOnDataDependent" in type(error).__name__:
        return ExportError(
            "the module decides by the values of tensors what it computes",
            where=_place(error, module),
            why=describe(error),
            fix="Write the choice with torch.where or a mask, so that the same operators run for every batch.",
        )
    if "Constraints violated" in text or "dynamic" in text and "specialized" in text.lower():
        return ExportError(
            "the module fixes a dimension that should vary",
            where=_place(error, module),
            why=describe(error),
            fix="Give `dynamic` without that dimension, and an example of each of its sizes in `shapes`.",
        )
    return ExportError(
        "torch.export cannot trace the module",
        where=_place(error, module),
        why=f"{type(error).__name__}: {describe(error)}",
        fix="Change the line so that it has only operators on tensors, or leave that part out.",
    )


def _dims(names, fields, dynamic) -> list[dict | None]:
    """What torch.export is told of each field: which of its dimensions vary."""
    for name, tensor in zip(names, fields):
        for axis, given in dynamic.get(name, {}).items():
            if tensor.size(axis) < 2:
                raise ExportError(
                    f"the example has size {tensor.size(axis)} in the dimension '{given}'",
                    where=f"field '{name}', dimension {axis}",
                    why="torch.export takes sizes of 0 and 1 for constants",
                    fix="Give an example batch of two samples or more.",
                )
    return [{axis: torch.export.Dim.DYNAMIC for axis in dynamic[name]} if dynamic.get(name) else None
            for name in names]


def _read_shapes(exported, names, first, dynamic):
    """The shapes that an exported program takes: of each field a list of numbers and names of dimensions, and
    the smallest and largest size of each name."""
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder"]
    tensors = [node.meta["val"] for node in placeholders][first:first + len(names)]
    shapes, dimensions, name_of = {}, {}, {}
    for name, tensor in zip(names, tensors):
        shape: list[int | str] = []
        for axis, size in enumerate(tensor.shape):
            if isinstance(size, int):
                shape.append(size)
                continue
            symbol = size.node.expr
            given = name_of.setdefault(symbol, dynamic.get(name, {}).get(axis, str(symbol)))
            if not symbol.is_Symbol:
                raise ExportError(
                    f"the dimension '{given}' must be {symbol}",
                    where=f"field '{name}', dimension {axis}",
                    why="its size follows from another dimension, which C++ does not check",
                    fix="Give `dynamic` without that dimension, and an example of each of its sizes in `shapes`.",
                )
            bounds = exported.range_constraints.get(symbol)
            lower = int(bounds.lower) if bounds is not None else 1
            upper = int(bounds.upper) if bounds is not None and bounds.upper.is_Integer else 1 << 40
            dimensions[given] = [max(lower, 1), min(upper, 1 << 40)]
            shape.append(given)
        shapes[name] = shape
    return shapes, dimensions


def step_of(job: Job, *, outputs: bool, memory_budget: float | None) -> Program:
    """The loss of a batch with the gradients of what is trained: what a training step needs.

    Inputs: the tensors of the state, the fields, and the gradient of the loss that backward starts from.
    """
    state = job.state
    has: dict[str, bool] = {}
    traced = _captured(job, _wants(has, outputs), training=True)
    names, trained = state.names(), list(state.trained)
    first_buffer = len(names) - len(state.buffers)
    changed: list[str] = []
    reached: list[str] = []

    def step(*inputs, note=None):
        weights, buffers = inputs[:len(trained)], inputs[first_buffer:len(names)]
        batch, seed = inputs[len(names):-1], inputs[-1]
        with torch.enable_grad():
            leaves = [weight.detach().requires_grad_() for weight in weights]
            own = [buffer.clone() for buffer in buffers]
            tensors = [*leaves, *inputs[len(trained):first_buffer], *own]
            with job.context():
                made = torch.func.functional_call(
                    traced, {f"module.{name}": tensor for name, tensor in zip(names, tensors)}, tuple(batch))
            value = made[0].reshape(())
            gradients = torch.autograd.grad(value, leaves, grad_outputs=seed.to(value.dtype), allow_unused=True)
        if note is not None:
            return note(own, buffers, gradients)
        return [value.detach().float(), *[part.detach() for part in made[1:]],
                *[buffer for name, buffer in zip(state.buffers, own) if name in changed],
                *[_like(gradient, weight) for gradient, weight in zip(gradients, weights) if gradient is not None]]

    def note(own, buffers, gradients):
        # BatchNorm changes its buffers without counting a version.
        changed.extend(name for name, now, before in zip(state.buffers, own, buffers)
                       if now._version > 0 or not torch.equal(now, before))
        reached.extend(name for name, gradient in zip(trained, gradients) if gradient is not None)

    inputs = [*state.detached(), *job.fields, torch.ones((), device=job.fields[0].device)]
    with _refusing(job.module):
        with torch.random.fork_rng():
            step(*inputs, note=note)
        if not reached:
            raise ExportError(
                "the loss depends on no parameter",
                where="loss(module, batch)",
                why="every gradient would be missing",
                fix="Return a loss of the module's output, without detach() or no_grad().",
            )
        graph = _graph(step, inputs)
        made = _made(has)
        if memory_budget is not None:
            graph = _graph(with_recomputation(graph, len(made) + len(changed), memory_budget), inputs)
    made += [f"buffer:{name}" for name in changed] + [f"gradient:{name}" for name in reached]
    return _program(job, "step", graph, inputs, list(job.layout.names), made)


def evaluation_of(job: Job) -> Program:
    """The loss of a batch and what the module predicts, in evaluation mode.

    Inputs: the tensors of the state and the fields.
    """
    has: dict[str, bool] = {}
    graph, inputs = _forward(job, _wants(has, outputs=True))
    return _program(job, "evaluate", graph, inputs, list(job.layout.names), _made(has))


def prediction_of(job: Job) -> Program:
    """What the module predicts, of the fields that it needs for this.

    Inputs: the tensors of the state, and those fields.
    """
    graph, inputs = _forward(job, lambda made: (made.output,))
    graph.graph.eliminate_dead_code()
    first = len(job.state.names())
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"][first:]
    used = [name for name, node in zip(job.layout.names, placeholders) if node.users]
    for name, node in zip(job.layout.names, placeholders):
        if name not in used:
            graph.graph.erase_node(node)
    graph.recompile()
    fields = [tensor for name, tensor in zip(job.layout.names, job.fields) if name in used]
    return _program(job, "predict", graph, inputs[:first] + fields, used, ["output"])


def _wants(has: dict[str, bool], outputs: bool):
    """What a program returns of a Loss, noted in `has`."""

    def wants(loss):
        has["weight"] = loss.weight is not None
        has["output"] = outputs and loss.output is not None
        made = [loss.value.float().reshape(())]
        if has["weight"]:
            made.append(torch.as_tensor(loss.weight, device=loss.value.device).reshape(()))
        return (*made, loss.output) if has["output"] else tuple(made)

    return wants


def _made(has: dict[str, bool]) -> list[str]:
    return ["value"] + [name for name in ("weight", "output") if has[name]]


def _forward(job: Job, wants):
    with torch.no_grad():
        traced = _captured(job, wants, training=False)
    names = job.state.names()

    def forward(*inputs):
        with torch.no_grad(), job.context():
            named = {f"module.{name}": tensor for name, tensor in zip(names, inputs)}
            return [part.detach() for part in torch.func.functional_call(traced, named, inputs[len(names):])]

    inputs = [*job.state.detached(), *job.fields]
    with _refusing(job.module):
        return _graph(forward, inputs), inputs


def _graph(function, inputs) -> torch.fx.GraphModule:
    return make_fx(function, tracing_mode="symbolic", _error_on_data_dependent_ops=True)(*inputs)


def _like(gradient, weight):
    """A gradient in the layout of its weight, as autograd's own."""
    if gradient.stride() == weight.stride():
        return gradient
    return torch.empty_strided(weight.size(), weight.stride(), dtype=gradient.dtype,
                               device=gradient.device).copy_(gradient)


def _separate(graph: torch.fx.GraphModule) -> None:
    """Copies every output that may share memory with another one or with an input: C++ changes gradients in
    place."""

    def root(node):
        """What a node may be a view of; itself if it is none."""
        while node.op == "call_function":
            if node.target is operator.getitem:
                node = node.args[0]
                continue
            schema = getattr(node.target, "_schema", None)
            viewed = schema is not None and any(value.alias_info is not None for value in schema.returns)
            if not viewed and "_unsafe_view" not in str(node.target) and "reshape" not in str(node.target):
                break
            node = node.args[0]
        return node

    output = next(node for node in graph.graph.nodes if node.op == "output")
    seen, made = set(), []
    for node in output.args[0]:
        base = root(node)
        many = base.op == "call_function" and node is not base and node.target is operator.getitem
        if base.op != "call_function" or (base in seen and not (many and node not in made)):
            with graph.graph.inserting_before(output):
                copy = graph.graph.call_function(torch.ops.aten.clone.default, (node,))
                copy.meta = dict(node.meta)
                node = copy
        seen.add(base)
        made.append(node)
    output.args = (made,)


def _program(job, kind, graph, inputs, names, outputs) -> Program:
    _separate(graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    first = len(job.state.names())
    fields = inputs[first:first + len(names)]
    dims = [None] * first + _dims(names, fields, job.dynamic) + [None] * (kind == "step")
    with _refusing(job.module):
        exported = torch.export.export(_Holder(graph), tuple(inputs), strict=False, dynamic_shapes=(tuple(dims),))
    shapes, dimensions = _read_shapes(exported, names, first, job.dynamic)
    digest = hashlib.sha256(str(exported.graph).encode()).hexdigest()
    return Program(kind, exported, names, shapes, dimensions, outputs, digest)
