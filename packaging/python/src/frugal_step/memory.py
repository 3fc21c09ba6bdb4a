# SPDX-License-Identifier: Apache-2.0
"""The memory behind the nodes of a graph: which share it, and how much is in use at once."""

from __future__ import annotations

import operator

import torch


def memory_of(node):
    """The node that made the memory of another one; None for memory of the caller or of a constant."""
    while True:
        if node.op != "call_function":
            return None
        if node.target is operator.getitem:
            several = node.args[0]
            if not _is_view(several):
                return node
            node = several
        elif not _is_view(node):
            return node
        node = node.args[0]


def _is_view(node) -> bool:
    """Whether an operator may return the memory of its first argument."""
    schema = getattr(node.target, "_schema", None)
    return schema is None or any(value.alias_info is not None for value in schema.returns) or \
        any(word in str(node.target) for word in ("_unsafe_view", "reshape", "contiguous", "aten.to.", "_to_copy",
                                                  "lift_fresh", "expand", "flatten"))


def peak_of(graphs, outputs) -> int:
    """The largest number of bytes in use at once when graphs run one after the other, without their inputs.

    The output of a graph is the input of the same name of the next one. Of the tensors that they return, those
    in `outputs`, by name, are in use until the end.
    """
    made: dict[str, tuple] = {}  # a name that a later graph reads -> whose memory it is
    steps, last = [], {}
    for number, graph in enumerate(graphs):
        owner = {}
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                owner[node] = made.get(node.target)
            elif node.op == "call_function":
                base = memory_of(node)
                owner[node] = (number, node) if base is node else owner.get(base if base is not None else _first(node))
                steps.append((number, node) if base is node and isinstance(node.meta.get("val"), torch.Tensor) else None)
                for read in node.all_input_nodes:
                    last[owner.get(read)] = len(steps) - 1
        results = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        for node in results:
            if isinstance(node, torch.fx.Node):
                made[node.name] = owner.get(node)
                if node.name in outputs:
                    last[owner.get(node)] = 1 << 60
    ends: dict[int, list] = {}
    for key, step in last.items():
        ends.setdefault(step, []).append(key)
    alive: dict = {}
    most = now = 0
    for step, key in enumerate(steps):
        if key is not None:
            alive[key] = _bytes(key[1])
            now += alive[key]
            most = max(most, now)
        for ended in ends.get(step, ()):
            now -= alive.pop(ended, 0)
    return most


def _first(node):
    """The node of whose memory another one is a view."""
    while node.op == "call_function":
        node = node.args[0]
    return node


def _bytes(node) -> int:
    tensor = node.meta["val"]
    number = tensor.numel()
    return int(number if isinstance(number, int) else number.node.hint) * tensor.element_size()
