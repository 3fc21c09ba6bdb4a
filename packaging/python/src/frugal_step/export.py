# SPDX-License-Identifier: Apache-2.0
"""export_step(): a module and its loss become a folder that frugal::StepPackage opens."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from . import check, machine, trace
from .batch import Layout
from .errors import ExportError
from .loss import Loss

VERSION = 1
FORMATS = {None: "FP32", torch.bfloat16: "BF16", torch.float16: "FP16"}


def export_step(
    module: nn.Module,
    loss: Callable[[nn.Module, object], torch.Tensor | Loss],
    example_batch,
    folder: str | os.PathLike,
    *,
    shapes: Sequence = (),
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    autocast: torch.dtype | None = None,
    memory_budget: float | None = None,
    train_outputs: bool = False,
    march: str = "x86-64-v3",
    threads: int | None = None,
    compare: bool = True,
    progress: bool = True,
) -> None:
    """Exports a training step, an evaluation and a prediction of a module, for frugal::StepPackage.

    module         any nn.Module, on the device of the package. Its parameters that require gradients are
                   trained; its modes and tensors are as before afterwards. A module in evaluation mode is
                   exported as if train() had been called; one in training mode keeps the modes of its parts.
    loss           loss(module, batch) -> a scalar tensor, or a Loss with weight and output
    example_batch  a dictionary of tensors, or a pair of data and target, of two samples or more
    folder         is made, or replaced if a package is there
    shapes         further example batches, each of which gets programs of its own: bucketed lengths
    dynamic        dimensions that vary, by field: {"data": {0: "batch"}}. Default: the first of every field
    autocast       torch.bfloat16 or torch.float16: the step runs under torch.autocast
    memory_budget  0 to 1: the part of the activations that the forward pass keeps; the rest is computed again
    train_outputs  the training step returns Loss.output as well, for TrainMetrics
    march          x86-64-v3 (AVX2, default), x86-64-v4 (AVX-512) or native, on x86-64
    threads        a fixed number of threads for kernels; default: those of the program that runs the package
    compare        compares the package with eager PyTorch before it is written
    """
    device = _device_of(module)
    layout = Layout(example_batch)
    _check_arguments(module, autocast, memory_budget, threads, layout, dynamic)
    dynamic = _dynamic(layout, example_batch, dynamic)
    state = trace.State.of(module)
    if not state.trained:
        raise ExportError(
            "the module has nothing to train",
            where=type(module).__name__,
            why="none of its parameters requires gradients",
            fix="Call requires_grad_() on the parameters that should be trained.",
        )
    context = contextlib.nullcontext if autocast is None else _autocast(device, autocast)
    say = _printer(progress)
    folder = os.path.abspath(os.fspath(folder))
    _check_folder(folder)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder), prefix=".frugal-step-") as made:
        programs = []
        with machine.compiler_for(march) if device.type == "cpu" else contextlib.nullcontext({}) as settings:
            for number, batch in enumerate([example_batch, *shapes]):
                fields = tuple(tensor.detach().to(device) for tensor in layout.tensors(batch))
                job = trace.Job(module, loss, layout, state, fields, dynamic, context)
                for traced in _trace_all(job, train_outputs, memory_budget):
                    name = f"{traced.kind}-{number}.so"
                    say(f"compiling {name}: {_shape_words(traced)}")
                    path = os.path.join(made, name)
                    _compile(traced, path, settings, threads, device)
                    if compare:
                        say(f"comparing {name} with eager PyTorch")
                        check.compare(job, traced, path)
                    programs.append(_entry(traced, name, path))
        _write_weights(state, os.path.join(made, "weights.safetensors"))
        manifest = _manifest(module, state, layout, programs, device, march, autocast, made)
        with open(os.path.join(made, "manifest.json"), "w") as file:
            file.write(_sealed(manifest))
        _replace(made, folder)
    say(f"wrote {folder}")


def _trace_all(job, train_outputs, memory_budget):
    yield trace.step_of(job, outputs=train_outputs, memory_budget=memory_budget)
    evaluation = trace.evaluation_of(job)
    yield evaluation
    if "output" in evaluation.outputs:
        yield trace.prediction_of(job)


def _shape_words(traced) -> str:
    return ", ".join(f"{name} {'x'.join(map(str, shape)) or 'scalar'}" for name, shape in traced.shapes.items())


def _compile(traced, path, settings, threads, device):
    # The program has LibTorch already; libtorch.so would bring the libraries of CUDA with it.
    options = {**settings, "aot_inductor.link_libtorch": False}
    if threads is None:
        options["cpp.dynamic_threads"] = True
    else:
        options["cpp.threads"] = threads
    if device.type == "cuda":
        options["aot_inductor.embed_kernel_binary"] = True
    archive = f"{path}.pt2"
    try:
        torch._inductor.aoti_compile_and_package(traced.exported, package_path=archive, inductor_configs=options)
        # Of torch's archive a program needs the library alone. The archive's own loader copies it into /tmp,
        # where a killed program would leave it.
        with zipfile.ZipFile(archive) as packed:
            (library,) = [name for name in packed.namelist() if name.endswith(".so")]
            with packed.open(library) as source, open(path, "wb") as file:
                shutil.copyfileobj(source, file)
        os.remove(archive)
    except Exception as error:
        raise ExportError(
            "torch cannot compile the traced module",
            where=f"the program '{traced.kind}'",
            why=f"{type(error).__name__}: {trace.describe(error)}",
            fix="Run it under torch.compile to find the operator; TORCH_LOGS=+inductor says more.",
        ) from error


def _entry(traced, name, path) -> dict:
    return {
        "kind": traced.kind,
        "file": name,
        "bytes": os.path.getsize(path),
        "crc32": _crc32(path),
        "graph": traced.graph,
        "fields": [{"name": field, "shape": traced.shapes[field]} for field in traced.fields],
        "dimensions": [{"name": name, "min": low, "max": high} for name, (low, high) in traced.dimensions.items()],
        "outputs": traced.outputs,
    }


def _crc32(path) -> int:
    value = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def _tensor(name, tensor) -> dict:
    return {"name": name, "type": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
            "stride": list(tensor.stride())}


def _manifest(module, state, layout, programs, device, march, autocast, made) -> dict:
    weights = os.path.join(made, "weights.safetensors")
    fields = {name: str(tensor.dtype).removeprefix("torch.") for name, tensor in
              zip(layout.names, layout.tensors(layout.example))}
    return {
        "format": "frugal step package",
        "version": VERSION,
        "torch": torch.__version__.split("+")[0],
        "architecture": platform.machine(),
        "device": machine.device_name(device),
        "instructions": machine.instructions_of(march, machine.compiler()) if device.type == "cpu" else [],
        "precision": FORMATS[autocast],
        "module": f"{type(module).__module__}.{type(module).__qualname__}",
        "parameters": [{**_tensor(name, tensor), "trained": tensor.requires_grad}
                       for name, tensor in [*state.trained.items(), *state.frozen.items()]],
        "buffers": [_tensor(name, tensor) for name, tensor in state.buffers.items()],
        "tied": [{"name": name, "of": first} for name, first in state.tied.items()],
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
        "weights": {"file": "weights.safetensors", "bytes": os.path.getsize(weights), "crc32": _crc32(weights)},
        "programs": programs,
    }


def _sealed(manifest) -> str:
    """A manifest's text, whose last member is the sum of what is before it."""
    body = json.dumps(manifest, indent=1).removesuffix("\n}")
    return f'{body},\n "crc32": {zlib.crc32(body.encode())}\n}}\n'


def _write_weights(state: trace.State, path: str) -> None:
    """A safetensors file: its header is JSON, and torch knows the bytes of a tensor."""
    tensors = {name: tensor.detach().cpu().contiguous()
               for name, tensor in zip(state.names(), state.tensors())}
    kinds = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
             torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
             torch.bool: "BOOL"}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        if tensor.dtype not in kinds:
            raise ExportError(
                f"the tensor '{name}' is of type {tensor.dtype}",
                where="the module's state_dict",
                why=f"a file of weights has {', '.join(sorted(kinds.values()))}",
                fix="Convert it with Module.to().",
            )
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": kinds[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())


def _device_of(module) -> torch.device:
    devices = {tensor.device for tensor in [*module.parameters(), *module.buffers()]}
    if len(devices) != 1 or next(iter(devices)).type not in ("cpu", "cuda"):
        raise ExportError(
            "the module is on " + (", ".join(sorted(map(str, devices))) or "no device"),
            where=type(module).__name__,
            why="a package is compiled for one CPU or one GPU",
            fix="Move the module with Module.to().",
        )
    return next(iter(devices))


def _autocast(device, dtype):
    # Without the cache: a cast that is kept from another trace would be a constant of the graph.
    return lambda: torch.autocast(device.type, dtype, cache_enabled=False)


def _check_arguments(module, autocast, memory_budget, threads, layout, dynamic) -> None:
    def refuse(what, where, why, fix):
        raise ExportError(what, where=where, why=why, fix=fix)

    if autocast not in FORMATS:
        refuse(f"autocast is {autocast}", "autocast", "a step runs in FP32, BF16 or FP16",
               "Give torch.bfloat16, torch.float16 or None.")
    if memory_budget is not None and not 0 <= memory_budget <= 1:
        refuse(f"memory_budget is {memory_budget}", "memory_budget", "it is a part of the activations",
               "Give a number from 0 to 1.")
    if threads is not None and threads < 1:
        refuse(f"threads is {threads}", "threads", "kernels run in one thread or more", "Give 1 or more, or None.")
    for name, axes in (dynamic or {}).items():
        if name not in layout.names:
            refuse(f"there is no field '{name}'", "dynamic", f"the batch has {', '.join(layout.names)}",
                   "Name a field of the batch.")
        for axis, given in axes.items():
            if not isinstance(given, str) or not given.isidentifier():
                refuse(f"the dimension {axis} of '{name}' is called {given!r}", "dynamic",
                       "the same name says that sizes are equal", 'Give a name such as "batch".')
    for name, parameter in module.named_parameters():
        if parameter.dtype not in (torch.float32, torch.bfloat16, torch.float16, torch.float64) and \
                parameter.requires_grad:
            refuse(f"the parameter '{name}' is of type {parameter.dtype}", type(module).__name__,
                   "only floating-point numbers are trained", "Call requires_grad_(False) on it.")


def _dynamic(layout, example, given) -> dict[str, dict[int, str]]:
    if given is not None:
        return {name: dict(axes) for name, axes in given.items()}
    return {name: {0: "batch"} for name, tensor in zip(layout.names, layout.tensors(example)) if tensor.dim() > 0}


def _check_folder(folder) -> None:
    if os.path.exists(folder) and not os.path.exists(os.path.join(folder, "manifest.json")) and \
            (not os.path.isdir(folder) or os.listdir(folder)):
        raise ExportError(
            "there is something else than a package",
            where=folder,
            why="the exporter would delete it",
            fix="Name another folder, or an empty one.",
        )


def _replace(made, folder) -> None:
    """Puts the finished package in place of an older one: a program that opens it finds one or the other."""
    os.chmod(made, 0o755)
    if os.path.exists(folder):
        old = f"{made}.old"
        os.rename(folder, old)
        os.rename(made, folder)
        shutil.rmtree(old)
    else:
        os.rename(made, folder)
    os.mkdir(made)  # what the temporary folder's owner deletes


def _printer(progress):
    def say(text):
        if progress:
            print(f"frugal_step: {text}", file=sys.stderr, flush=True)

    return say
