# SPDX-License-Identifier: Apache-2.0
"""Shared by the make_*.py scripts: the number formula and the JSON output."""

import json
import math
import pathlib

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parent

FORMULA = (
    "number(words...) in [-1, 1), exact in float32. All arithmetic is modulo 2^32. "
    "h = 0x9E3779B9; for each word w in order: h = mix(h ^ w); "
    "number = (int32(h >> 8) - 2^23) / 2^23. "
    "mix(h): h ^= h >> 16; h *= 0x85EBCA6B; h ^= h >> 13; h *= 0xC2B2AE35; h ^= h >> 16."
)


def _mix(h: int) -> int:
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def number(*words: int) -> float:
    """FORMULA: a number that every language with 32-bit integers reproduces bit by bit."""
    h = 0x9E3779B9
    for word in words:
        h = _mix(h ^ word)
    return ((h >> 8) - 2**23) / 2**23


def table(shape, *words: int) -> torch.Tensor:
    """Row-major float32 tensor whose element i is number(*words, i)."""
    first = 0x9E3779B9
    for word in words:
        first = _mix(first ^ word)
    h = np.uint32(first) ^ np.arange(math.prod(shape), dtype=np.uint32)
    h ^= h >> 16
    h *= np.uint32(0x85EBCA6B)  # modulo 2^32
    h ^= h >> 13
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> 16
    values = ((h >> 8).astype(np.float64) - 2**23) / 2**23
    return torch.from_numpy(values.astype(np.float32)).reshape(list(shape))


def values(tensor: torch.Tensor) -> list:
    """Row-major values. A float32 is rounded to the fewest digits that still give the same float32
    when they are read as a double and narrowed, as a JSON reader does."""
    flat = tensor.detach().reshape(-1)
    if flat.dtype == torch.float64:
        return flat.tolist()
    short = []
    for x in flat.to(torch.float32).numpy():
        value = float(str(x))
        assert np.float32(value) == x, f"{value} does not read back as {x!r}"
        short.append(value)
    return short


def write(name: str, script: str, content: dict) -> None:
    """One case per line: small, and a diff shows where a regeneration changed something."""
    head = {"made_by": f"tests/reference/{script}", "torch": torch.__version__.split("+")[0]}
    lines = []
    for key, value in (head | content).items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join("    " + _dump(row) for row in value)
            lines.append(f"  {_dump(key)}: [\n{rows}\n  ]")
        else:
            lines.append(f"  {_dump(key)}: {_dump(value)}")
    path = FOLDER / name
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def _dump(value) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def deterministic() -> None:
    """One thread and no run-time choice of algorithm: the same bytes in every run."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
