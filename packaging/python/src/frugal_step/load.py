# SPDX-License-Identifier: Apache-2.0
"""Loads a program of a package into Python, for comparisons."""

from __future__ import annotations

import ctypes
import os

import torch


def load(path: str, device: str = "cpu"):
    """A compiled program as a function of tensors.

    A program names no library of LibTorch that it needs, because the process has it: Python's, too, once it
    shows its symbols.
    """
    folder = os.path.join(torch.__path__[0], "lib")
    for name in ("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so"):
        library = os.path.join(folder, name)
        if os.path.exists(library) and (name != "libtorch_cuda.so" or torch.cuda.is_available()):
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    if device == "cpu":
        loaded = torch._C._aoti.AOTIModelContainerRunnerCpu(path, 1)
    else:
        loaded = torch._C._aoti.AOTIModelContainerRunnerCuda(path, 1, device)
    return lambda *tensors: loaded.run(list(tensors))
