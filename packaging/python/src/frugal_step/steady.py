# SPDX-License-Identifier: Apache-2.0
"""Python state of a module: a package has none, so it must not change from call to call."""

from __future__ import annotations

import collections
import contextlib
import copy
import random
import sys

import torch
from torch import nn

from .errors import ExportError
from .refusal import place

_CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict)


class Steady:
    """Refuses a module whose Python state changes what it computes, or that counts its calls.

    Puts the attributes of the module back at the end of `with`.
    """

    def __init__(self, module: nn.Module):
        self._module = module
        self._graph = None
        self._kept = contextlib.ExitStack()

    def __enter__(self):
        self._kept.enter_context(untouched(self._module))
        self._before = self._numbers()
        return self

    def __exit__(self, *error):
        return self._kept.__exit__(*error)

    @contextlib.contextmanager
    def call(self):
        """One call of the module. What fails in the second one alone was left by the first one."""
        try:
            yield
        except Exception as error:
            if self._graph is None:
                raise
            self._refuse("the second call reads what the first one has left", place(error, self._module))

    def made(self, graph: torch.fx.GraphModule) -> None:
        """Notes the graph that came of a call."""
        now, text = self._numbers(), _text(graph)
        if self._graph is not None:
            for name, value in now.items():
                if name in self._before and self._before[name] != value:
                    self._refuse(f"the attribute '{name}' is {self._before[name]!r} before the second call and "
                                 f"{value!r} after it")
            if text != self._graph:
                self._refuse("the second call computes something else than the first one")
        self._graph, self._before = text, now

    def _numbers(self) -> dict[str, object]:
        """The attributes of the module that are numbers or words."""
        return {f"{path}.{name}".lstrip("."): value for path, part in self._module.named_modules()
                for name, value in part.__dict__.items() if type(value) in (int, float, bool, str)}

    def _refuse(self, why, where=None):
        raise ExportError(
            "the module or the loss keeps state in Python from call to call",
            where=where or type(self._module).__name__,
            why=f"{why}; a package does what the traced call did, for ever",
            fix="Keep what changes in a buffer (register_buffer), draw random numbers with torch, and run the module "
                "once before the export if it fills a cache in its first call.",
        )


def _text(graph: torch.fx.GraphModule) -> str:
    constants = [(node.target, getattr(graph, node.target)) for node in graph.graph.nodes if node.op == "get_attr"]
    words = []
    for name, value in constants:
        known = isinstance(value, torch.Tensor) and not isinstance(value, torch._subclasses.FakeTensor)
        words.append(f"{name} = {value.tolist() if known else value}")
    return "\n".join([str(graph.graph), *words])


@contextlib.contextmanager
def untouched(module: nn.Module):
    """Puts back what a call of the module may change in Python: attributes, modes, gradients, generators."""
    parts = list(module.modules())
    tables = [(part.__dict__, dict(part.__dict__)) for part in parts]
    contents = [(value, copy.copy(value)) for part in parts for value in part.__dict__.values()
                if type(value) in _CONTAINERS]
    gradients = [(tensor, tensor.grad, tensor.requires_grad) for tensor in module.parameters()]
    generators = random.getstate(), sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None
    devices = sorted({tensor.device.index for tensor in module.parameters() if tensor.is_cuda})
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        for now, before in tables:
            now.clear()
            now.update(before)
        for now, before in contents:
            now.clear()
            (now.extend if isinstance(now, (list, collections.deque)) else now.update)(before)
        for tensor, gradient, wanted in gradients:
            tensor.grad = gradient
            if tensor.requires_grad != wanted:
                tensor.requires_grad_(wanted)
        random.setstate(generators[0])
        if generators[1] is not None:
            sys.modules["numpy"].random.set_state(generators[1])
