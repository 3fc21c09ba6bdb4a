# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing in the graph of a step: the partitioner of AOTAutograd chooses what is kept."""

from __future__ import annotations

import copy

import torch
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

from .memory import peak_of

_BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def with_recomputation(graph: torch.fx.GraphModule, forward_outputs: int, budget: float):
    """A function as `graph`, whose backward pass computes activations again that it would have to keep.

    graph            a step without operators in place: its last input is the gradient of the loss, its first
                     `forward_outputs` outputs are of the forward pass
    budget           0 to 1: the part of the activations that may be kept

    A backward pass that has kept little computes everything again at its beginning, and then has it all in
    memory at once. So more is kept than the budget says where that needs less memory.
    """
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    # The partitioner knows inputs of the backward pass by their names.
    for number, node in enumerate(placeholders[:-1]):
        node.target = node.name = f"primals_{number + 1}"
    placeholders[-1].target = placeholders[-1].name = "tangents_1"
    for node in graph.graph.nodes:
        if is_random(node):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    graph.recompile()
    tried = [_parts(graph, forward_outputs, each) for each in {budget, *[b for b in _BUDGETS if b > budget]}]
    _, forward, backward = min((each for each in tried if each is not None), key=lambda each: each[0])
    return _joined([node.target for node in placeholders], forward, backward, forward_outputs)


def _parts(graph, forward_outputs: int, budget: float):
    """The forward and the backward pass of a step that keeps a part of its activations, with the bytes that it
    needs; None if random numbers would be drawn again."""
    # At 0 the partitioner would compute random numbers again.
    with config.patch(activation_memory_budget=max(budget, 1e-3)):
        forward, backward = min_cut_rematerialization_partition(
            copy.deepcopy(graph), None, num_fwd_outputs=forward_outputs)
    if any(is_random(node) for node in backward.graph.nodes):
        return None
    results = [node for part in (forward, backward) for node in _results(part)[:forward_outputs if part is forward else None]]
    outputs = {node.name for node in results if isinstance(node, torch.fx.Node)}
    return peak_of([forward, backward], outputs), forward, backward


def _joined(names, forward, backward, forward_outputs: int):
    kept = [node.name for node in _results(forward)]
    wanted = [node.target for node in backward.graph.nodes if node.op == "placeholder"]
    of_forward = [node.target for node in forward.graph.nodes if node.op == "placeholder"]

    def step(*inputs):
        given = dict(zip(names, inputs))
        made = forward(*[given[name] for name in of_forward])
        given |= dict(zip(kept, made))
        return [*made[:forward_outputs], *backward(*[given[name] for name in wanted])]

    return step


def _results(graph) -> list:
    return list(next(node for node in graph.graph.nodes if node.op == "output").args[0])


def is_random(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
