#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed files of the safetensors fuzzer: seeds.py FOLDER

Small files of every kind in the format, and one with each kind of damage, so that the fuzzer starts on
both sides of every check. Needs nothing but Python.
"""

import json
import struct
import sys
from pathlib import Path

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


def file_of(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def entry(dtype: str, shape: list, begin: int, end: int) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def packed(tree: dict) -> bytes:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


def seeds() -> dict[str, bytes]:
    files = {
        "empty": b"",
        "no_tensors": file_of(b"{}"),
        "padded": file_of(b"{}      "),
        "metadata": file_of(packed({"__metadata__": {"format": "pt", "": "\u00e9\n"}})),
    }
    for dtype, bits in BITS.items():
        files[f"dtype_{dtype}"] = file_of(packed({"t": entry(dtype, [4], 0, bits // 2)}), bytes(bits // 2))
    pair = {"a": entry("F32", [2], 0, 8), "b": entry("U8", [3], 8, 11)}
    whole = file_of(packed(pair), bytes(range(11)))
    files |= {
        "pair": whole,
        "pair_turned": file_of(packed(dict(reversed(pair.items()))), bytes(range(11))),
        "pair_with_metadata": file_of(packed({"__metadata__": {"k": "v"}, **pair}), bytes(11)),
        "spaced": file_of(json.dumps(pair, indent=1).encode(), bytes(11)),
        "escaped": file_of(json.dumps({"\u00e9\n\x00\U0001f600": entry("U8", [], 0, 1)}).encode(), b"x"),
        "scalar": file_of(packed({"t": entry("I64", [], 0, 8)}), bytes(8)),
        "no_elements": file_of(packed({"s": entry("F64", [0, 3], 0, 0), "t": entry("U8", [1], 0, 1)}), b"x"),
        "cut": whole[:-1],
        "too_long": whole + b"x",
        "hole": file_of(packed({"t": entry("U8", [1], 1, 2)}), b"xx"),
        "overlap": file_of(packed({"s": entry("U8", [2], 0, 2), "t": entry("U8", [2], 1, 3)}), b"xxx"),
        "backwards": file_of(packed({"t": entry("U8", [1], 1, 0)}), b"x"),
        "overflow": file_of(packed({"t": entry("U8", [2**32, 2**32], 0, 0)})),
        "beyond": file_of(packed({"t": entry("U8", [2**64], 0, 0)})),
        "negative": file_of(packed({"t": entry("U8", [-1], 0, 1)}), b"x"),
        "fraction": file_of(packed({"t": entry("U8", [1.5], 0, 1)}), b"x"),
        "within_a_byte": file_of(packed({"t": entry("F4", [3], 0, 1)}), b"x"),
        "twice": file_of(b"{" + packed({"t": entry("U8", [0], 0, 0)})[1:-1] + b"," + packed({"t": entry("U8", [0], 0, 0)})[1:]),
        "nested": file_of(b'{"t":' + b"[" * 60),
        "not_utf8": file_of(b'{"\xff":{}}'),
        "nul_behind": file_of(b"{}\0x"),
        "header_too_large": struct.pack("<Q", 100_000_001) + b"{}",
        "length_of_all_ones": b"\xff" * 8 + b"{}",
    }
    return files


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds().items():
        (folder / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
