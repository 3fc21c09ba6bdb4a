# SPDX-License-Identifier: Apache-2.0
"""Batches as lists of named tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from .errors import ExportError

PAIR = ("data", "target")


class Layout:
    """The names of a batch's tensors, and how to build the batch from them.

    A mapping has its keys. A tensor is "data", a pair "data" and "target", as frugal::Batch. A longer
    tuple has no names that C++ knows.
    """

    def __init__(self, example):
        self.example, self._kind = example, type(example)
        if isinstance(example, torch.Tensor):
            self.names = PAIR[:1]
        elif isinstance(example, Mapping):
            self.names = tuple(str(key) for key in example)
            self._keys = tuple(example)
        elif isinstance(example, Sequence) and 1 <= len(example) <= 2:
            self.names = PAIR[: len(example)]
        else:
            raise ExportError(
                f"the example batch is a {self._describe(example)}",
                where="example_batch",
                why="the C++ program finds the tensors of a batch by their names",
                fix="Give a dictionary of tensors, or a pair of data and target.",
            )
        for name, tensor in zip(self.names, self.tensors(example)):
            if not isinstance(tensor, torch.Tensor):
                raise ExportError(
                    f"the field '{name}' of the example batch is a {type(tensor).__name__}",
                    where="example_batch",
                    why="a package reads tensors only",
                    fix="Give a tensor, or set the value inside of the loss function.",
                )
        if not self.names:
            raise ExportError(
                "the example batch is empty",
                where="example_batch",
                why="the step is traced with it",
                fix="Give a batch as the data set yields it.",
            )

    @staticmethod
    def _describe(example) -> str:
        if isinstance(example, Sequence) and not isinstance(example, str):
            return f"{type(example).__name__} of {len(example)}"
        return type(example).__name__

    def tensors(self, batch) -> tuple:
        """The tensors of a batch of this layout, in the order of `names`."""
        if isinstance(batch, torch.Tensor):
            return (batch,)
        if isinstance(batch, Mapping):
            if tuple(str(key) for key in batch) != self.names and set(map(str, batch)) != set(self.names):
                raise ExportError(
                    f"a batch has the fields {', '.join(map(str, batch))}",
                    where="shapes",
                    why=f"the example batch has {', '.join(self.names)}",
                    fix="Give every batch the same fields.",
                )
            return tuple(batch[key] for key in self._keys)
        return tuple(batch)

    def batch(self, tensors):
        """The batch that the loss function gets."""
        if issubclass(self._kind, torch.Tensor):
            return tensors[0]
        if issubclass(self._kind, Mapping):
            return dict(zip(self._keys, tensors))
        return list(tensors) if issubclass(self._kind, list) else tuple(tensors)
