# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors: a header in JSON, and the bytes of the tensors. Torch is all that this needs."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping

import torch

from .errors import ExportError

# Types of tensors, as safetensors names them.
TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
         torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8",
         torch.bool: "BOOL"}


def bytes_of(tensor: torch.Tensor) -> bytes:
    """A tensor's numbers as dense host memory. Without NumPy, which torch does not need."""
    dense = tensor.detach().cpu().contiguous()
    return ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size()) if dense.numel() else b""


def write_tensors(tensors: Mapping[str, torch.Tensor], path: str | os.PathLike) -> None:
    """Writes tensors by name, in their order, as dense host memory."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPES:
            raise ExportError(
                f"the tensor '{name}' is of type {tensor.dtype}",
                where=os.fspath(path),
                why=f"a file of tensors has {', '.join(sorted(TYPES.values()))}",
                fix="Convert it with Tensor.to().",
            )
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            file.write(bytes_of(tensor))


def read_tensors(path: str | os.PathLike) -> dict[str, torch.Tensor]:
    """The tensors of a file that write_tensors() or frugal has written."""
    types = {name: kind for kind, name in TYPES.items()}
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = bytearray(file.read())
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        kind = types[entry["dtype"]]
        flat = torch.frombuffer(body, dtype=torch.uint8, count=end - begin, offset=begin) if end > begin else \
            torch.empty(0, dtype=torch.uint8)
        found[name] = flat.clone().view(kind).reshape(entry["shape"])
    return found
