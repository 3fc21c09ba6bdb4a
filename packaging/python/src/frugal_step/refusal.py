# SPDX-License-Identifier: Apache-2.0
"""Errors of torch as ExportErrors: torch has no classes for what a user can change."""

from __future__ import annotations

import contextlib
import os
import traceback

import torch
from torch import nn

from .errors import ExportError

_HERE = os.path.dirname(__file__)


@contextlib.contextmanager
def refusing(module: nn.Module):
    try:
        yield
    except ExportError:
        raise
    except Exception as error:
        raise _refusal(error, module) from error


def describe(error: BaseException) -> str:
    """The first sentence of an error of torch, on one line."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text.split(". ")[0].rstrip(".:")[:300]


def is_users(filename: str) -> bool:
    """Whether a file has code of the module or of the loss, not of torch."""
    return not filename.startswith((*torch.__path__, _HERE, "<")) and "contextlib" not in filename


def is_ours(filename: str) -> bool:
    return filename.startswith(_HERE)


def place(error: BaseException | None, module: nn.Module) -> str:
    """The line of the module or of the loss in which an error arose."""
    while error is not None:
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if is_users(frame.filename):
                line = f": {frame.line}" if frame.line else ""
                return f"{frame.filename}:{frame.lineno}, in {frame.name}{line}"
        error = error.__cause__ or error.__context__
    return type(module).__name__


def _refusal(error: Exception, module: nn.Module) -> ExportError:
    text, kind = str(error), type(error).__name__
    if kind in ("DataDependentOutputException", "GuardOnDataDependentSymNode") or "data-dependent" in text:
        return ExportError(
            "the module decides by the values of tensors what it computes",
            where=place(error, module),
            why="a package has one list of operators, and the values of a batch are not known when it is made",
            fix="Write the choice with torch.where or a mask, so that the same operators run for every batch.",
        )
    if kind == "DynamicOutputShapeException":
        return ExportError(
            "the size of a tensor follows from the values of another one",
            where=place(error, module),
            why=f"{describe(error)} has as many elements as there are such values, and a package knows its sizes",
            fix="Keep every element and mask those that do not count, for example with torch.where or weights of 0.",
        )
    if "to FakeTensors first" in text or "Mixing fake modes" in text or "fake mode" in text and kind == "AssertionError":
        return ExportError(
            "the loss or the module reads a tensor that belongs to neither the module nor the batch",
            where=place(error, module),
            why="the package would have its present value for ever, and would not train it",
            fix="Register it in the module: another module or a parameter as a part of it, a constant by "
                "register_buffer(); or make it inside of the function with torch.tensor([...]).",
        )
    if kind == "UnsupportedOperatorException":
        return ExportError(
            f"the operator {describe(error)} cannot be traced",
            where=place(error, module),
            why="it has no implementation that computes shapes alone",
            fix="Register one with torch.library.register_fake, or use other operators.",
        )
    return ExportError(
        "the module cannot be traced",
        where=place(error, module),
        why=f"{kind}: {describe(error)}",
        fix="Change the line so that it has only operators on tensors, or leave that part out.",
    )
