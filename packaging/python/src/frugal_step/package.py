# SPDX-License-Identifier: Apache-2.0
"""The files of a package: manifest, weights, and the folder that they are put into."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import zlib

import torch

from . import machine
from .errors import ExportError
from .program import Program
from .state import State
from .tensor_file import write_tensors

VERSION = 1
PRECISIONS = {None: "FP32", torch.bfloat16: "BF16", torch.float16: "FP16"}


def write_package(made, module, state: State, layout, programs: list[tuple[Program, str]], device, march,
                  autocast) -> None:
    """Writes the manifest and the weights of compiled programs, which are files of the folder `made`."""
    write_tensors(dict(zip(state.names(), state.tensors())), os.path.join(made, "model.safetensors"))
    fields = {name: _type_name(tensor) for name, tensor in zip(layout.names, layout.tensors(layout.example))}
    manifest = {
        "format": "frugal step package",
        "version": VERSION,
        "torch": torch.__version__.split("+")[0],
        "architecture": platform.machine(),
        "device": machine.device_name(device),
        "instructions": machine.instructions_of(march, machine.compiler()) if device.type == "cpu" else [],
        "precision": PRECISIONS[autocast],
        "module": f"{type(module).__module__}.{type(module).__qualname__}",
        "parameters": [{**_tensor(name, tensor), "trained": tensor.requires_grad}
                       for name, tensor in [*state.trained.items(), *state.frozen.items()]],
        "buffers": [_tensor(name, tensor) for name, tensor in state.buffers.items()],
        "statistics": _statistics(module, programs),
        "tied": [{"name": name, "of": first} for name, first in state.tied.items()],
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
        "weights": _file(made, "model.safetensors"),
        "programs": [_entry(program, made, name) for program, name in programs],
    }
    with open(os.path.join(made, "manifest.json"), "w") as file:
        file.write(_sealed(manifest))


def _statistics(module, programs) -> list[dict]:
    """The running statistics of BatchNorm layers that a step changes: processes that train together join them."""
    changed = {name.removeprefix("buffer:") for program, _ in programs for name in program.outputs}
    layers = []
    for name, part in module.named_modules():
        buffers = [f"{name}.{buffer}".lstrip(".") for buffer in ("running_mean", "running_var", "num_batches_tracked")]
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and changed.issuperset(buffers):
            layers.append({"mean": buffers[0], "variance": buffers[1], "tracked": buffers[2], "momentum": part.momentum})
    return layers


def _file(made, name) -> dict:
    path = os.path.join(made, name)
    return {"file": name, "bytes": os.path.getsize(path), "crc32": _crc32(path)}


def _entry(program: Program, made, name) -> dict:
    return {
        "kind": program.kind,
        **_file(made, name),
        "table": _table(made, name),
        "graph": program.graph,
        "fields": [{"name": field, "shape": program.shapes[field]} for field in program.fields],
        "dimensions": [{"name": name, "min": low, "max": high} for name, (low, high) in program.dimensions.items()],
        "outputs": program.outputs,
        "indices": [dataclasses.asdict(check) for check in program.indices],
    }


def _table(made, name) -> dict | None:
    """The operators that LibTorch looks up for the code, if there are any."""
    table = f"{os.path.splitext(name)[0]}.json"
    return _file(made, table) if os.path.exists(os.path.join(made, table)) else None


def _crc32(path) -> int:
    value = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def _type_name(tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _tensor(name, tensor) -> dict:
    return {"name": name, "type": _type_name(tensor), "shape": list(tensor.shape), "stride": list(tensor.stride())}


def _sealed(manifest) -> str:
    """A manifest's text, whose last member is the sum of what is before it."""
    body = json.dumps(manifest, indent=1).removesuffix("\n}")
    return f'{body},\n "crc32": {zlib.crc32(body.encode())}\n}}\n'


def check_folder(folder) -> None:
    """Refuses a folder in which something else is than a package."""
    parent = os.path.dirname(folder)
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent) or not os.access(parent, os.W_OK):
        raise ExportError(
            "the folder cannot be made",
            where=folder,
            why=f"{parent} is {'read-only' if os.path.isdir(parent) else 'a file'}",
            fix="Name another folder.",
        )
    if not os.path.lexists(folder) or _is_package(folder):
        return
    raise ExportError(
        "there is something else than a package",
        where=folder,
        why="the exporter would delete it",
        fix="Name another folder, or an empty one.",
    )


def _is_package(folder) -> bool:
    """Whether a folder is empty or has the files of a package alone."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return False
    names = os.listdir(folder)
    ours = all(name.endswith((".so", ".json", ".safetensors")) for name in names)
    return not names or ours and "manifest.json" in names


def replace(made, folder) -> None:
    """Puts the finished package in place of an older one: a program that opens it finds one or the other."""
    os.chmod(made, 0o755)
    if os.path.exists(folder):
        old = f"{made}.old"
        os.rename(folder, old)
        try:
            os.rename(made, folder)
        except BaseException:
            os.rename(old, folder)
            raise
        shutil.rmtree(old)
    else:
        os.rename(made, folder)
    os.mkdir(made)  # what the temporary folder's owner deletes
