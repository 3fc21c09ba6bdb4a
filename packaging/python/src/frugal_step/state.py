# SPDX-License-Identifier: Apache-2.0
"""The tensors of a module, and the module called with other tensors in their place."""

from __future__ import annotations

import contextlib
import dataclasses

import torch
from torch import nn

from .errors import ExportError

_TABLES = ("_parameters", "_buffers", "_modules")


@dataclasses.dataclass
class State:
    """The tensors of a module, in the order in which programs take them."""

    trained: dict[str, nn.Parameter]
    frozen: dict[str, nn.Parameter]
    buffers: dict[str, torch.Tensor]
    constants: dict[str, torch.Tensor]  # no part of the state_dict: a package has their values of now
    tied: dict[str, str]  # another name of a parameter or buffer -> its first name

    @staticmethod
    def of(module: nn.Module) -> State:
        parameters = dict(module.named_parameters())
        transient = {f"{path}.{name}" if path else name for path, part in module.named_modules()
                     for name in part._non_persistent_buffers_set}
        buffers = {name: tensor for name, tensor in module.named_buffers() if name not in transient}
        kept = {id(tensor): name for name, tensor in [*parameters.items(), *buffers.items()]}
        both = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
        tied = {name: kept[id(tensor)] for name, tensor in both
                if name not in transient and kept.get(id(tensor), name) != name}
        constants = {}
        for path, part in module.named_modules():
            for name, tensor in _attributes(part):
                if id(tensor) not in kept:
                    kept[id(tensor)] = name
                    constants[f"{path}.{name}" if path else name] = tensor
        return State(
            {name: p for name, p in parameters.items() if p.requires_grad},
            {name: p for name, p in parameters.items() if not p.requires_grad},
            buffers,
            constants,
            tied,
        )

    def tensors(self) -> list[torch.Tensor]:
        return [*self.trained.values(), *self.frozen.values(), *self.buffers.values()]

    def detached(self) -> list[torch.Tensor]:
        return [tensor.detach() for tensor in self.tensors()]

    def names(self) -> list[str]:
        return [*self.trained, *self.frozen, *self.buffers]

    def fixed(self) -> list[torch.Tensor]:
        return [tensor.detach() for tensor in self.constants.values()]


def _attributes(part: nn.Module):
    """The tensors that a module has outside of its state_dict, with their names: buffers that are not
    persistent, and attributes, also in lists."""
    for name in part._non_persistent_buffers_set:
        if part._buffers.get(name) is not None:
            yield name, part._buffers[name]
    for name, value in part.__dict__.items():
        if name not in _TABLES:
            yield from _inside(name, value)


def _inside(name, value):
    if isinstance(value, torch.Tensor):
        yield name, value
    elif type(value) in (list, tuple):
        for number, entry in enumerate(value):
            yield from _inside(f"{name}[{number}]", entry)
    elif type(value) is dict:
        for key, entry in value.items():
            yield from _inside(f"{name}[{key!r}]", entry)


def _replaced(value, others):
    """A value of an attribute with other tensors in the place of its own."""
    if isinstance(value, torch.Tensor):
        return others.get(id(value), value)
    if type(value) in (list, tuple):
        made = type(value)(_replaced(entry, others) for entry in value)
    elif type(value) is dict:
        made = {key: _replaced(entry, others) for key, entry in value.items()}
    else:
        return value
    return made if any(True for _ in _inside("", value)) else value


class Replaced:
    """A module that computes with given tensors in the place of its own, as long as `with` lasts.

    Every reference to a tensor is followed: tied weights, and lists such as those of nn.LSTM.
    """

    def __init__(self, module: nn.Module, state: State, tensors, constants):
        self._module, self._state = module, state
        own = [*state.tensors(), *state.constants.values()]
        self._others = {id(tensor): other for tensor, other in zip(own, [*tensors, *constants])}
        self._back = {id(other): tensor for tensor, other in zip(own, [*tensors, *constants])}
        self._kept = {id(tensor) for tensor in state.tensors()}
        self._given = dict(zip(state.names(), tensors))
        self._memory = {name: tensor.untyped_storage()._cdata for name, tensor in self._given.items()}

    def __enter__(self):
        self._slots = [(values, name, value) for part in self._module.modules()
                       for values in (part._parameters, part._buffers) for name, value in values.items()
                       if value is not None]
        for values, name, value in self._slots:
            values[name] = self._others.get(id(value), value)
        for part in self._module.modules():
            for name, value in list(part.__dict__.items()):
                if name not in _TABLES:
                    other = _replaced(value, self._others)
                    if other is not value:
                        part.__dict__[name] = other
        return self

    def __exit__(self, *_):
        """Puts the module's own tensors back. What it assigned to other attributes stays."""
        for values, name, value in self._slots:
            # A constant that was replaced is seen by the next call; parameters and buffers are the package's.
            if id(value) in self._kept or values.get(name) is self._others.get(id(value)):
                values[name] = value
        for part in self._module.modules():
            for name, value in list(part.__dict__.items()):
                if name not in _TABLES:
                    part.__dict__[name] = _replaced(value, self._back)

    def buffers(self) -> list[torch.Tensor]:
        """The buffers as the module has left them. A module may assign another tensor to one."""
        now = dict(self._module.named_buffers(remove_duplicate=False))
        made = []
        for name, before in self._state.buffers.items():
            tensor = now.get(name)
            if tensor is None or tensor.shape != before.shape or tensor.dtype != before.dtype:
                raise ExportError(
                    f"the module replaces its buffer '{name}' by "
                    + ("nothing" if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"),
                    where=type(self._module).__name__,
                    why=f"the package has room for {tuple(before.shape)} of {before.dtype}",
                    fix="Change the buffer in place, or keep its shape and type.",
                )
            made.append(tensor)
        return made

    def check_parameters(self) -> None:
        """Refuses a module that has given another tensor, or other memory, to a parameter."""
        for name in [*self._state.trained, *self._state.frozen]:
            path, _, last = name.rpartition(".")
            now = self._module.get_submodule(path)._parameters.get(last)
            if now is not self._given[name] or now.untyped_storage()._cdata != self._memory[name]:
                raise ExportError(
                    f"the module replaces its parameter '{name}' when it is called",
                    where=type(self._module).__name__,
                    why="the optimizer trains the parameter that was there before",
                    fix="Compute with the parameter, and assign the result to another attribute.",
                )


@contextlib.contextmanager
def modes(module: nn.Module, training: bool):
    """The module in training or evaluation mode. A module in training mode keeps the modes of its parts."""
    before = {part: part.training for part in module.modules()}
    try:
        if not training or not module.training:
            module.train(training)
        yield
    finally:
        for part, mode in before.items():
            part.training = mode
