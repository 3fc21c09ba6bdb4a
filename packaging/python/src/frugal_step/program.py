# SPDX-License-Identifier: Apache-2.0
"""Graphs made ready for the compiler: without side effects, every output a tensor of its own."""

from __future__ import annotations

import dataclasses
import hashlib

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from .draws import Draws
from .errors import ExportError
from .indices import Checked, Index
from .memory import memory_of
from .recompute import with_recomputation
from .refusal import refusing
from .repair import repair
from .sizes import MOST, Sizes, any_size
from .tensor_file import bytes_of
from .trace import Job, Traced


@dataclasses.dataclass
class Program:
    """A graph that can be compiled, and what its inputs and outputs are."""

    kind: str  # step, evaluate, predict
    exported: torch.export.ExportedProgram
    fields: list[str]
    shapes: dict[str, list[int | str]]  # of each field: a number, or the name of a dimension
    dimensions: dict[str, list[int]]  # name -> the smallest and largest size
    ones: set[str]  # dimensions whose size may be 1 if the numbers are right then
    outputs: list[str]  # value, weight, output, index, buffer:NAME, gradient:NAME
    indices: list[Index]  # what `index` tells of
    graph: str  # a hash of what it computes
    recomputes: bool = False  # the backward pass computes activations again


class _Holder(nn.Module):
    """A graph as a module without parameters: the weights stay inputs, and the constants are its own."""

    def __init__(self, graph, constants, first, equal):
        super().__init__()
        self.__dict__["graph"], self._first, self._equal = graph, first, equal
        self._names = [f"constant_{number}" for number in range(len(constants))]
        for name, tensor in zip(self._names, constants):
            self.register_buffer(name, tensor.detach().clone(), persistent=False)

    def forward(self, *inputs):
        for (number, axis), (other, of_other) in self._equal:
            torch._check(inputs[number].shape[axis] == inputs[other].shape[of_other])
        constants = [getattr(self, name) for name in self._names]
        return self.graph(*inputs[:self._first], *constants, *inputs[self._first:])


def program_of(job: Job, kind: str, traced: Traced, memory_budget: float | None = None) -> Program:
    """The program of a step or of an evaluation."""
    graph, outputs = _functional(job, kind, traced), traced.outputs
    keep = _changed(job, kind, graph, outputs)
    _keep_outputs(graph, keep)
    outputs = [outputs[number] for number in keep]
    graph, outputs, checks = _checked(job, graph, outputs, job.layout.names, traced.inputs[-1:] if kind == "step" else [])
    if memory_budget is not None and kind == "step":
        forward = sum(not name.startswith("gradient:") for name in outputs)
        smaller = with_recomputation(graph, forward, memory_budget)
        with refusing(job.module), any_size():
            graph = make_fx(smaller, tracing_mode="symbolic")(*_fakes(job, job.layout.names, traced.inputs[-1:]))
    program = _program(job, kind, graph, traced, list(job.layout.names), outputs, checks)
    return dataclasses.replace(program, recomputes=memory_budget is not None)


def prediction_of(job: Job, evaluation: Traced) -> Program:
    """The part of an evaluation that computes Loss.output, of the fields that it needs for this."""
    graph = _functional(job, "predict", evaluation)
    _keep_outputs(graph, [evaluation.outputs.index("output")])
    first = len(job.state.names()) + len(job.state.constants)
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"][first:]
    used = [name for name, node in zip(job.layout.names, inputs) if node.users]
    for name, node in zip(job.layout.names, inputs):
        if name not in used:
            graph.graph.erase_node(node)
    graph.recompile()
    graph, outputs, checks = _checked(job, graph, ["output"], used)
    return _program(job, "predict", graph, evaluation, used, outputs, checks)


def _fakes(job: Job, names, others=()):
    sizes = Sizes()
    made = [sizes.fixed(tensor) for tensor in [*job.state.detached(), *job.state.fixed()]]
    made += [sizes.field(name, tensor, job.dynamic.get(name, {}))
             for name, tensor in zip(job.layout.names, job.fields) if name in names]
    return [*made, *[sizes.fixed(tensor) for tensor in others]]


def _functional(job: Job, kind: str, traced: Traced) -> torch.fx.GraphModule:
    """The graph with operators that change nothing in place. Refuses one that changes its inputs: C++ keeps
    the weights and the batch."""
    seed = traced.inputs[-1:] if kind == "step" else []
    with refusing(job.module), any_size():
        graph = make_fx(torch.func.functionalize(traced.graph), Draws().table, tracing_mode="symbolic",
                        _error_on_data_dependent_ops=True)(*_fakes(job, job.layout.names, seed))
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node in list(graph.graph.nodes):
        if node.op == "call_function" and node.target is torch.ops.aten.copy_.default and node.args[0] in placeholders:
            _refuse_change(job, placeholders.index(node.args[0]))
            graph.graph.erase_node(node)
    repair(graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def _checked(job: Job, graph: torch.fx.GraphModule, outputs: list[str], names, others=()):
    """The graph with an output `index` if it has indices, the names of its outputs, and the checks of its indices.

    On a GPU the driver's own assertion tells of them, as in eager PyTorch.
    """
    if job.fields[0].device.type != "cpu":
        return graph, outputs, []
    first = len(job.state.names()) + len(job.state.constants)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    place = sum(name in ("value", "weight", "output") for name in outputs)
    checked = Checked(graph, dict(zip(placeholders[first:], names)), place)
    with refusing(job.module), any_size():
        made = make_fx(checked.run, tracing_mode="symbolic")(*_fakes(job, names, others))
    if not checked.checks:
        return graph, outputs, []
    return made, [*outputs[:place], "index", *outputs[place:]], checked.checks


def _refuse_change(job: Job, number: int) -> None:
    """Refuses a change of a tensor of the module in place. One of a field is forgotten: C++ keeps the batch."""
    state = job.state
    names = [*state.names(), *state.constants]
    if number >= len(names):
        return
    name = names[number]
    parameter = name in state.trained or name in state.frozen
    raise ExportError(
        f"the module changes its {'parameter' if parameter else 'tensor'} '{name}' when it is called",
        where=type(job.module).__name__,
        why="parameters change in the optimizer alone" if parameter else "it is no part of the module's state_dict, "
            "of which a package keeps the changes",
        fix="Change it outside of the module and the loss." if parameter else
            "Register it with register_buffer(..., persistent=True).",
    )


def _changed(job: Job, kind: str, graph: torch.fx.GraphModule, names: list[str]) -> list[int]:
    """The outputs that a program returns: of the buffers those that the graph changes."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    own = dict(zip(job.state.names(), placeholders))
    kept = []
    for number, (name, node) in enumerate(zip(names, _results(graph))):
        if name.startswith("buffer:"):
            if _source(node) is own[name.removeprefix("buffer:")]:
                continue
            if kind != "step":
                raise ExportError(
                    f"the module changes its buffer '{name.removeprefix('buffer:')}' in evaluation mode",
                    where=type(job.module).__name__,
                    why="an evaluation leaves the module as it is",
                    fix="Change it in training mode only: if self.training.",
                )
        kept.append(number)
    return kept


_SAME = {torch.ops.aten.clone.default, torch.ops.aten.detach.default, torch.ops.aten.alias.default,
         torch.ops.aten.lift_fresh_copy.default}


def _source(node):
    """What a node is a copy of."""
    while node.op == "call_function" and node.target in _SAME:
        node = node.args[0]
    return node


def _results(graph: torch.fx.GraphModule) -> list:
    return list(next(node for node in graph.graph.nodes if node.op == "output").args[0])


def _keep_outputs(graph: torch.fx.GraphModule, numbers: list[int]) -> None:
    output = next(node for node in graph.graph.nodes if node.op == "output")
    output.args = ([output.args[0][number] for number in numbers],)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _separate(graph: torch.fx.GraphModule) -> None:
    """Copies every output that may share memory with another one or with an input: C++ changes gradients in
    place."""
    output = next(node for node in graph.graph.nodes if node.op == "output")
    seen, made = set(), []
    for node in output.args[0]:
        base = memory_of(node)
        if base is None or base in seen:
            with graph.graph.inserting_before(output):
                copy = graph.graph.call_function(torch.ops.aten.clone.default, (node,))
                copy.meta = dict(node.meta)
                node = copy
        seen.add(base)
        made.append(node)
    output.args = (made,)


def _program(job, kind, graph, traced, names, outputs, checks) -> Program:
    _separate(graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    state = job.state
    first = len(state.names())
    fields = [tensor for name, tensor in zip(job.layout.names, job.fields) if name in names]
    seed = traced.inputs[-1:] if kind == "step" else []
    dims = [{axis: torch.export.Dim.DYNAMIC for axis in job.dynamic[name]} if job.dynamic.get(name) else None
            for name in names]
    dims = [None] * first + dims + [None] * len(seed)
    holder = _Holder(graph, list(state.constants.values()), first, list(_equal_sizes(names, first, job.dynamic)))
    with refusing(job.module), any_size():
        exported = torch.export.export(holder, (*state.detached(), *fields, *seed), strict=False,
                                       dynamic_shapes=(tuple(dims),))
    shapes, dimensions, ones = _read_shapes(exported, names, first, job.dynamic, traced.ranges)
    return Program(kind, exported, names, shapes, dimensions, ones, outputs, checks, _digest(exported))


def _equal_sizes(names, first, dynamic):
    """Pairs of (input, dimension) that have the same name."""
    seen: dict[str, tuple[int, int]] = {}
    for number, name in enumerate(names, first):
        for axis, called in dynamic.get(name, {}).items():
            if seen.setdefault(called, (number, axis)) != (number, axis):
                yield (number, axis), seen[called]


def _digest(exported) -> str:
    """A hash of what a program computes: its operators and its constants."""
    digest = hashlib.sha256(str(exported.graph).encode())
    for name, constant in sorted(exported.constants.items()):
        if isinstance(constant, torch.Tensor):
            digest.update(name.encode())
            digest.update(bytes_of(constant))
    return digest.hexdigest()


def _read_shapes(exported, names, first, dynamic, ranges):
    """The shapes that an exported program takes: of each field a list of numbers and names of dimensions, and
    the smallest and largest size of each name."""
    arguments = {spec.arg.name for spec in exported.graph_signature.input_specs
                 if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT}
    placeholders = [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in arguments]
    tensors = [node.meta["val"] for node in placeholders][first:first + len(names)]
    shapes, dimensions, name_of, ones = {}, {}, {}, set()
    for name, tensor in zip(names, tensors):
        shape: list[int | str] = []
        for axis, size in enumerate(tensor.shape):
            if isinstance(size, int):
                shape.append(size)
                continue
            symbol = size.node.expr
            own = dynamic.get(name, {}).get(axis, str(symbol))
            given = name_of.setdefault(symbol, own)
            if not symbol.is_Symbol:
                raise ExportError(
                    f"the dimension '{given}' must be {symbol}",
                    where=f"field '{name}', dimension {axis}",
                    why="its size follows from another dimension, which C++ does not check",
                    fix="Give `dynamic` without that dimension, and an example of each of its sizes in `shapes`.",
                )
            bounds = exported.range_constraints.get(symbol)
            lower = int(bounds.lower) if bounds is not None else 1
            upper = int(bounds.upper) if bounds is not None and bounds.upper.is_Integer else MOST
            if lower <= 1 and ranges.get(own, [1])[0] == 2:
                ones.add(given)
            for limits in (ranges.get(own, [1, MOST]), dimensions.get(given, [1, MOST])):
                lower, upper = max(lower, limits[0]), min(upper, limits[1])
            dimensions[given] = [lower, upper]
            shape.append(given)
        shapes[name] = shape
    return shapes, dimensions, ones
