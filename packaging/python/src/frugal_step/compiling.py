# SPDX-License-Identifier: Apache-2.0
"""A program as a library of machine code: torch's AOTInductor compiles it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zipfile

import torch

from .errors import ExportError
from .program import Program
from .refusal import describe


def compile_program(program: Program, path: str, settings: dict, threads: int | None, device: torch.device) -> None:
    """Compiles a program into the library `path`, with inductor's `settings` for the machine."""
    options = {
        **settings,
        # The program that runs it has LibTorch already; libtorch.so would bring the libraries of CUDA with it.
        "aot_inductor.link_libtorch": False,
        # Torch's own generators: the same seed draws the same numbers as in eager PyTorch, and can be compared.
        "fallback_random": True,
    }
    if threads is None:
        options["cpp.dynamic_threads"] = True
    else:
        options["cpp.threads"] = threads
    if program.recomputes:
        # Inductor would compute again at once, next to the first time, and keep both.
        options["reorder_for_locality"] = False
    if device.type == "cuda":
        options["aot_inductor.embed_kernel_binary"] = True
    if shutil.which("openssl") is None:
        # Inductor names precompiled headers by a sum that it has openssl compute.
        options["aot_inductor.precompile_headers"] = False
    archive = f"{path}.pt2"
    try:
        with _kernels_of_libtorch() if device.type == "cpu" else contextlib.nullcontext():
            torch._inductor.aoti_compile_and_package(program.exported, package_path=archive, inductor_configs=options)
        _unpack(archive, path)
    except (ExportError, OSError):
        raise
    except Exception as error:
        raise ExportError(
            "torch cannot compile the traced module",
            where=f"the program '{program.kind}'",
            why=f"{type(error).__name__}: {describe(error)}",
            fix="Run it under torch.compile to find the operator; TORCH_LOGS=+inductor says more.",
        ) from error
    finally:
        if os.path.exists(archive):
            os.remove(archive)


@contextlib.contextmanager
def _kernels_of_libtorch():
    """On a CPU max pooling's backward pass is LibTorch's kernel, which adds each gradient to one place. Inductor's looks
    for every place through all windows, and takes several times as long."""
    from torch._inductor import lowering

    operator = torch.ops.aten.max_pool2d_with_indices_backward.default
    own = lowering.lowerings[operator]
    lowering.lowerings[operator] = lowering.fallback_max_pool2d_with_indices_backward
    try:
        yield
    finally:
        lowering.lowerings[operator] = own


def _unpack(archive: str, path: str) -> None:
    """Takes the library out of torch's archive, whose own loader would leave copies of it in /tmp.

    Operators that a library has no direct call for are in a table, which torch looks for beside the library.
    """
    with zipfile.ZipFile(archive) as packed:
        (library,) = [name for name in packed.namelist() if name.endswith(".so")]
        with packed.open(library) as source, open(path, "wb") as file:
            shutil.copyfileobj(source, file)
        for name in packed.namelist():
            if name.endswith(".json") and not name.endswith("_metadata.json"):
                table = packed.read(name)
                _check_operators(json.loads(table))
                with open(f"{os.path.splitext(path)[0]}.json", "wb") as file:
                    file.write(table)


def _check_operators(table: dict) -> None:
    for entry in table["nodes"]:
        target = entry["node"]["target"]
        if not target.removeprefix("torch.ops.").replace("::", ".").startswith(("aten.", "prims.")):
            raise ExportError(
                f"the module calls the operator {target}",
                where="the graph of the module",
                why="it is not an operator of LibTorch, and the C++ program does not have it",
                fix="Compute the same with operators of torch.",
            )
