# SPDX-License-Identifier: Apache-2.0
"""Operators that inductor compiles wrongly or not at all, written in another way."""

from __future__ import annotations

import torch

_aten = torch.ops.aten


def repair(graph: torch.fx.GraphModule) -> None:
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is _aten.cat.default:
            _without_empty_parts(graph.graph, node)


def _without_empty_parts(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Leaves empty tensors out of aten.cat, as key-value caches begin with them. Inductor takes such a cat for
    its only other part, with the strides of that part, of which the operators after it are not told."""
    parts = [part for part in node.args[0] if tuple(part.meta["val"].shape) != (0,)]
    if len(parts) == len(node.args[0]) or not parts:
        return
    node.args = (parts, *node.args[1:])
    if len(parts) == 1:
        with graph.inserting_before(node):
            copy = graph.call_function(_aten.clone.default, (parts[0],), {"memory_format": torch.contiguous_format})
        copy.meta = dict(node.meta)
        node.replace_all_uses_with(copy)
