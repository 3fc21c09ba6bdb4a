# SPDX-License-Identifier: Apache-2.0
"""What a loss function may return."""

from __future__ import annotations

import dataclasses

import torch

from .errors import ExportError


@dataclasses.dataclass
class Loss:
    """The loss of a batch, and what frugal needs beside it.

    value   a scalar tensor, the mean over what `weight` counts
    weight  a scalar tensor or a number: samples, tokens or labels averaged over; None: the samples
    output  what the module predicted, a tensor, for metrics and predict(); None: none
    """

    value: torch.Tensor
    weight: torch.Tensor | float | None = None
    output: torch.Tensor | None = None


def as_loss(returned) -> Loss:
    """A Loss of what a loss function returned."""
    if isinstance(returned, torch.Tensor):
        returned = Loss(returned)
    if not isinstance(returned, Loss):
        raise ExportError(
            f"the loss function returned {type(returned).__name__}",
            where="loss(module, batch)",
            why="a step needs the loss as a scalar tensor",
            fix="Return the tensor, or frugal_step.Loss(value, weight, output).",
        )
    if not isinstance(returned.value, torch.Tensor) or returned.value.numel() != 1:
        found = f"shape {tuple(returned.value.shape)}" if isinstance(returned.value, torch.Tensor) else "no tensor"
        raise ExportError(
            f"the loss is not one number, but {found}",
            where="loss(module, batch)",
            why="gradients are those of one number",
            fix="Return the mean over the batch.",
        )
    if not returned.value.is_floating_point():
        raise ExportError(
            f"the loss is of type {returned.value.dtype}",
            where="loss(module, batch)",
            why="only floating-point numbers have gradients",
            fix="Return a floating-point tensor.",
        )
    if returned.output is not None and not isinstance(returned.output, torch.Tensor):
        raise ExportError(
            f"Loss.output is a {type(returned.output).__name__}",
            where="loss(module, batch)",
            why="metrics and predict() read one tensor",
            fix="Give the tensor of it, such as `output.logits`.",
        )
    return returned
