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

    def weight_tensor(self) -> torch.Tensor:
        """The weight as a scalar tensor. A number may be a size of the batch, which varies."""
        if isinstance(self.weight, torch.Tensor):
            return self.weight.detach().reshape(())
        kind = torch.int64 if isinstance(self.weight, (int, torch.SymInt)) else torch.float64
        return torch.full((), self.weight, dtype=kind, device=self.value.device)


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
    if returned.weight is not None and not _is_number(returned.weight):
        raise ExportError(
            f"Loss.weight is {_words(returned.weight)}",
            where="loss(module, batch)",
            why="it says how many samples, tokens or labels the loss is the mean of",
            fix="Give a number or a scalar tensor.",
        )
    if returned.output is not None and not isinstance(returned.output, torch.Tensor):
        raise ExportError(
            f"Loss.output is a {type(returned.output).__name__}",
            where="loss(module, batch)",
            why="metrics and predict() read one tensor",
            fix="Give the tensor of it, such as `output.logits`.",
        )
    return returned


def _is_number(value) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1 and not value.is_complex()
    return isinstance(value, (int, float, torch.SymInt, torch.SymFloat)) and not isinstance(value, bool)


def _words(value) -> str:
    return f"of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
