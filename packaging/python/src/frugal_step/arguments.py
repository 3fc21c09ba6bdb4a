# SPDX-License-Identifier: Apache-2.0
"""What export_step() was given, checked before anything is traced."""

from __future__ import annotations

import torch
from torch import nn

from .errors import ExportError
from .package import PRECISIONS
from .state import State
from .tensor_file import TYPES


def _refuse(what, where, why, fix):
    raise ExportError(what, where=where, why=why, fix=fix)


def check_module(module) -> None:
    """Refuses what is no module that Python runs as it is written."""
    if not isinstance(module, nn.Module):
        _refuse(f"the module is a {type(module).__name__}", "module", "a package is made of an nn.Module",
                "Give the module itself.")
    for path, part in module.named_modules():
        where = path or type(module).__name__
        if isinstance(part, torch.jit.ScriptModule):
            _refuse("the module has a part in TorchScript", where, "its operators cannot be traced with gradients",
                    "Give the Python module that was scripted.")
        if isinstance(part, (torch._dynamo.OptimizedModule, nn.parallel.DistributedDataParallel, nn.DataParallel)):
            _refuse(f"the module has a wrapper, {type(part).__name__}", where,
                    "the package compiles it, and frugal spreads it over devices",
                    "Give what is inside: module._orig_mod of torch.compile, module.module of the others.")
        drops = isinstance(part, nn.RNNBase) and part.dropout > 0 and part.num_layers > 1
        if drops and (part.training or not module.training):
            _refuse(f"a {type(part).__name__} has dropout between its layers", where,
                    "torch leaves it out when it traces the layers", "Make a module per layer, with nn.Dropout between them.")


def device_of(module: nn.Module) -> torch.device:
    devices = {tensor.device for tensor in [*module.parameters(), *module.buffers()]}
    if len(devices) != 1 or next(iter(devices)).type not in ("cpu", "cuda"):
        _refuse("the module is on " + (", ".join(sorted(map(str, devices))) or "no device"), type(module).__name__,
                "a package is compiled for one CPU or one GPU",
                "Move the module with Module.to(), one of the meta device with Module.to_empty().")
    return next(iter(devices))


def check_numbers(autocast, memory_budget, threads) -> None:
    if autocast not in PRECISIONS:
        _refuse(f"autocast is {autocast}", "autocast", "a step runs in FP32, BF16 or FP16",
                "Give torch.bfloat16, torch.float16 or None.")
    if memory_budget is not None and not 0 <= memory_budget <= 1:
        _refuse(f"memory_budget is {memory_budget}", "memory_budget", "it is a part of the activations",
                "Give a number from 0 to 1.")
    if threads is not None and (type(threads) is not int or threads < 1):
        _refuse(f"threads is {threads}", "threads", "kernels run in one thread or more", "Give 1 or more, or None.")


def batches_of(layout, shapes, device) -> list[tuple[torch.Tensor, ...]]:
    """The example batches, on the device and as C++ lays them out."""
    made = []
    for number, batch in enumerate([layout.example, *shapes]):
        where = "example_batch" if number == 0 else f"shapes[{number - 1}]"
        tensors = layout.tensors(batch)
        for name, tensor, first in zip(layout.names, tensors, layout.tensors(layout.example)):
            if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.dtype not in TYPES:
                kind = f"of type {tensor.dtype}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
                _refuse(f"the field '{name}' is {kind}", where,
                        "a package reads dense tensors of numbers", f"Give one of {', '.join(map(str, TYPES))}.")
            if tensor.numel() == 0:
                _refuse(f"the field '{name}' is empty, of shape {tuple(tensor.shape)}", where,
                        "the step is traced with it", "Give a batch as the data set yields it.")
            if tensor.is_meta:
                _refuse(f"the field '{name}' is on the device meta", where, "the package is compared with its numbers",
                        "Give a batch as the data set yields it.")
            if tensor.dtype != first.dtype or tensor.dim() != first.dim():
                _refuse(f"the field '{name}' is {tensor.dim()}-dimensional of {tensor.dtype}", where,
                        f"that of the example batch is {first.dim()}-dimensional of {first.dtype}",
                        "Give every batch the same types and numbers of dimensions.")
        made.append(tuple(tensor.detach().to(device).contiguous() for tensor in tensors))
    return made


def dynamic_of(layout, batches, given) -> dict[str, dict[int, str]]:
    """The dimensions that vary, checked with every batch: those of the same name have the same size."""
    fields = dict(zip(layout.names, batches[0]))
    if given is None:
        given = {name: {0: "batch"} for name, tensor in fields.items() if tensor.dim() > 0}
    made = {}
    for name, axes in given.items():
        if name not in fields:
            _refuse(f"there is no field '{name}'", "dynamic", f"the batch has {', '.join(layout.names)}",
                    "Name a field of the batch.")
        made[name] = {}
        for axis, called in dict(axes or {}).items():
            if not isinstance(called, str) or not called.isidentifier():
                _refuse(f"the dimension {axis} of '{name}' is called {called!r}", "dynamic",
                        "the same name says that sizes are equal", 'Give a name such as "batch".')
            if type(axis) is not int or not -fields[name].dim() <= axis < fields[name].dim():
                _refuse(f"'{name}' has no dimension {axis}", "dynamic",
                        f"it has the shape {tuple(fields[name].shape)}", "Name one of its dimensions.")
            made[name][axis % fields[name].dim()] = called
    for number, batch in enumerate(batches):
        _check_sizes(layout, batch, made, "example_batch" if number == 0 else f"shapes[{number - 1}]")
    _check_different(layout, batches, made)
    return made


def _check_sizes(layout, batch, dynamic, where) -> None:
    sizes: dict[str, tuple[int, str]] = {}
    for name, tensor in zip(layout.names, batch):
        for axis, called in dynamic.get(name, {}).items():
            size = tensor.size(axis)
            if size < 2:
                _refuse(f"the example has size {size} in the dimension '{called}'", f"{where}, field '{name}'",
                        "torch takes a size of 0 or 1 for a constant",
                        "Give an example of two samples or more. One compiled program then takes one as well.")
            if sizes.setdefault(called, (size, name))[0] != size:
                _refuse(f"the dimension '{called}' is {sizes[called][0]} in '{sizes[called][1]}' and {size} in '{name}'",
                        where, "the same name says that sizes are equal",
                        "Give `dynamic` with a name of its own for each size that varies.")


def _check_different(layout, batches, dynamic) -> None:
    seen: dict[tuple, int] = {}
    for number, batch in enumerate(batches):
        shape = tuple(tuple(dynamic.get(name, {}).get(axis, size) for axis, size in enumerate(tensor.shape))
                      for name, tensor in zip(layout.names, batch))
        if shape in seen:
            _refuse("two of the batches have the same shape", f"shapes[{number - 1}]",
                    "each gets programs of its own, and C++ could not choose",
                    "Give batches that differ in a dimension that does not vary.")
        seen[shape] = number


def check_state(module: nn.Module, state: State) -> None:
    where = type(module).__name__
    if not state.trained:
        _refuse("the module has nothing to train", where, "none of its parameters requires gradients",
                "Call requires_grad_() on the parameters that should be trained.")
    for name, tensor in [*zip(state.names(), state.tensors()), *state.constants.items()]:
        if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
            _refuse(f"the tensor '{name}' has no shape yet", where, "a lazy layer makes it in its first call",
                    "Call the module once before the export.")
        if tensor.layout != torch.strided or tensor.dtype not in TYPES or type(tensor.data) is not torch.Tensor:
            _refuse(f"the tensor '{name}' is of type {tensor.dtype}, {tensor.layout}, {type(tensor.data).__name__}", where,
                    f"a package has dense tensors of {', '.join(sorted(TYPES.values()))}",
                    "Convert it with Module.to().")
    for name, tensor in state.trained.items():
        if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
            _refuse(f"the parameter '{name}' has a hook on its gradient", where, "no code of Python runs in a package",
                    "Remove the hook; frugal's policies clip and scale gradients.")
    _check_memory(where, state)


def _check_memory(where, state: State) -> None:
    """Refuses tensors that share memory: the package has each for itself, and one would no longer follow the
    other."""
    spans = []
    for name, tensor in zip(state.names(), state.tensors()):
        if tensor.numel() == 0:
            continue
        if torch._debug_has_internal_overlap(tensor) == 1:
            _refuse(f"the elements of '{name}' share memory", where, "an optimizer would change one several times",
                    "Give it memory of its own: contiguous() or clone().")
        first = tensor.data_ptr()
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        spans.append((first, first + extent * tensor.element_size(), name, tensor.device))
    spans.sort(key=lambda span: (str(span[3]), span[0]))
    for before, after in zip(spans, spans[1:]):
        if before[3] == after[3] and after[0] < before[1]:
            _refuse(f"'{before[2]}' and '{after[2]}' share memory, and are two tensors", where,
                    "a package has each for itself, so a change of one would not be seen in the other",
                    "Tie weights as one parameter under two names, or clone() one of them.")
