# SPDX-License-Identifier: Apache-2.0
"""Python's side of bench/store.py: store_python.py HOW FILE [SOURCE]

HOW is torch_save or save_file (the tensors of the safetensors file SOURCE, fsynced), or open, touch,
copy (safetensors.torch.load_file; then every page touched, or every tensor cloned). Prints seconds,
without imports and without creating the tensors.
"""

import json
import os
import sys
import time

import safetensors.torch
import torch


def clones(path: str) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in safetensors.torch.load_file(path).items()}


def torch_save(path: str, source: str) -> int:
    tensors = clones(source)
    begun = time.perf_counter()
    with open(path, "wb") as file:
        torch.save(tensors, file)
        file.flush()
        os.fsync(file.fileno())
    return answer(begun, 0)


def save_file(path: str, source: str) -> int:
    tensors = clones(source)
    begun = time.perf_counter()
    safetensors.torch.save_file(tensors, path)
    descriptor = os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)
    return answer(begun, 0)


def load(how: str, path: str) -> int:
    # The first use of torch's operators has a cost unrelated to the file.
    torch.zeros(8192, dtype=torch.uint8)[::4096].sum().item()
    torch.zeros(8192).clone()
    begun = time.perf_counter()
    tensors = safetensors.torch.load_file(path)
    check = 0
    kept = []
    for tensor in tensors.values():
        check += tensor.numel() * tensor.element_size()
        if how == "touch":
            check += int(tensor.view(torch.uint8)[::4096].sum())
        elif how == "copy":
            kept.append(tensor.clone())
    return answer(begun, check)


def answer(begun: float, check: int) -> int:
    print(json.dumps({"seconds": time.perf_counter() - begun, "check": check}))
    return 0


def main() -> int:
    how, path, *source = sys.argv[1:]
    if how in ("torch_save", "save_file"):
        return globals()[how](path, source[0])
    return load(how, path)


if __name__ == "__main__":
    sys.exit(main())
