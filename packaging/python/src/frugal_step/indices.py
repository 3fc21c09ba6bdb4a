# SPDX-License-Identifier: Apache-2.0
"""Indices out of range: compiled code says which, where operators of PyTorch raise an error."""

from __future__ import annotations

import dataclasses

import torch


@dataclasses.dataclass
class Index:
    """A check of one operator's indices."""

    operator: str
    fields: list[str]  # of the batch, from which the indices are computed
    size: int | None  # indices are below it; None: it varies
    negative: bool  # they may count from the end: from -size on
    allowed: int | None  # one number besides: ignore_index


def rules_of(node: torch.fx.Node, arguments: dict) -> list[tuple]:
    """(index, its place in the arguments, size, whether it may be negative, one number besides) of each index of a call."""
    name = node.target._schema.name.removeprefix("aten::").removesuffix("_")
    if name == "embedding":
        return [(arguments["indices"], ("indices",), arguments["weight"].size(0), False, None)]
    if name == "embedding_dense_backward":
        return [(arguments["indices"], ("indices",), arguments["num_weights"], False, None)]
    if name in ("nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward"):
        classes = 1 if "2d" in name else -1
        return [(arguments["target"], ("target",), arguments["self"].size(classes), False, arguments["ignore_index"])]
    if name in ("gather", "index_select", "index_add", "index_copy", "index_fill", "scatter", "scatter_add",
                "scatter_reduce"):
        of = arguments["self"]
        size = of.size(arguments["dim"]) if of.dim() else 1
        return [(arguments["index"], ("index",), size, name == "index_fill", None)]
    if name in ("index", "index_put", "_index_put_impl", "_unsafe_index", "_unsafe_index_put"):
        given = enumerate(arguments["indices"])
        return [(index, ("indices", axis), arguments["self"].size(axis), True, None)
                for axis, index in given if index is not None and not index.dtype == torch.bool]
    return []


class Checked(torch.fx.Interpreter):
    """Runs a graph with 0 in place of indices that are out of range, and returns one number more: 0, or which check has
    failed, from 1 on. In compiled code an error that is raised in one of several threads would end the process.

    fields: the placeholders of the batch's fields, with their names.
    """

    def __init__(self, graph: torch.fx.GraphModule, fields: dict[torch.fx.Node, str], place: int):
        super().__init__(graph)
        self._fields, self._place = fields, place
        self.checks: list[Index] = []

    def run(self, *inputs):
        self.checks, self._failed, self._known = [], [], {}
        outputs = list(super().run(*inputs))
        if not self._failed:
            return outputs
        code = torch.zeros((), dtype=torch.int64)
        for number, failed in reversed(list(enumerate(self._failed, 1))):
            code = torch.where(failed, number, code)
        return [*outputs[:self._place], code, *outputs[self._place:]]

    def call_function(self, target, args, kwargs):
        # The graph has each operator's arguments in the order of its schema.
        node = self._node
        if not isinstance(target, torch._ops.OpOverload):
            return super().call_function(target, args, kwargs)
        names = [each.name for each in target._schema.arguments]
        arguments = dict(zip(names, args)) | dict(kwargs)
        nodes = dict(zip(names, node.args)) | dict(node.kwargs)
        rules = rules_of(node, arguments)
        if not rules:
            return super().call_function(target, args, kwargs)
        for index, place, size, negative, allowed in rules:
            of = nodes[place[0]] if len(place) == 1 else nodes[place[0]][place[1]]
            right = self._right(node, of, index, size, negative, allowed)
            if len(place) == 1:
                arguments[place[0]] = right
            else:
                arguments[place[0]] = [right if axis == place[1] else each for axis, each in enumerate(arguments[place[0]])]
        return super().call_function(
            target, tuple(arguments[name] for name in names[:len(args)]), {name: arguments[name] for name in kwargs})

    def run_node(self, node):
        self._node = node
        return super().run_node(node)

    def _right(self, node, of, index, size, negative, allowed):
        """The indices that are in range, and 0 in place of others."""
        key = (of, size.node.expr if isinstance(size, torch.SymInt) else size, negative, allowed)
        if key not in self._known:
            inside = (index >= (-size if negative else 0)) & (index < size)
            if allowed is not None:
                inside = inside | (index == allowed)
            self._known[key] = torch.where(inside, index, 0)
            self._failed.append(~inside.all())
            self.checks.append(Index(node.target._schema.name.removeprefix("aten::").removesuffix("_"),
                                     self._sources(of), size if isinstance(size, int) else None, negative, allowed))
        return self._known[key]

    def _sources(self, node) -> list[str]:
        """The fields of the batch that a node is computed from."""
        seen, waiting = {node}, [node]
        while waiting:
            for each in waiting.pop().all_input_nodes:
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
        return [name for field, name in self._fields.items() if field in seen]
