# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing in the graph of a step: the partitioner of AOTAutograd chooses what is kept."""

from __future__ import annotations

import torch
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy


def with_recomputation(graph: torch.fx.GraphModule, forward_outputs: int, budget: float):
    """A function as `graph`, whose backward pass computes activations again that it would have to keep.

    graph            a step without operators in place: its last input is the gradient of the loss, its first
                     `forward_outputs` outputs are of the forward pass
    budget           0 to 1: the part of the activations that may be kept
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
    with config.patch(activation_memory_budget=budget):
        forward, backward = min_cut_rematerialization_partition(graph, None, num_fwd_outputs=forward_outputs)
    kept = [node.name for node in next(iter(reversed(forward.graph.nodes))).args[0]]
    wanted = [node.target for node in backward.graph.nodes if node.op == "placeholder"]
    of_forward = [node.target for node in forward.graph.nodes if node.op == "placeholder"]
    names = [node.target for node in placeholders]

    def step(*inputs):
        given = dict(zip(names, inputs))
        made = forward(*[given[name] for name in of_forward])
        given |= dict(zip(kept, made))
        return [*made[:forward_outputs], *backward(*[given[name] for name in wanted])]

    return step


def is_random(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
