# SPDX-License-Identifier: Apache-2.0
"""Rows as the programs of tests/interop print them (support/rows.hpp)."""

import subprocess

import numpy as np

DTYPES = {np.dtype(t): name for t, name in (
    (np.bool_, "BOOL"), (np.uint8, "U8"), (np.int8, "I8"), (np.uint16, "U16"), (np.int16, "I16"),
    (np.float16, "F16"), (np.uint32, "U32"), (np.int32, "I32"), (np.float32, "F32"),
    (np.uint64, "U64"), (np.int64, "I64"), (np.float64, "F64"))}  # fmt: skip


def run(program, *arguments) -> str:
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments[0]} failed with {done.returncode}: {done.stderr}")
    return done.stdout


def number(value: float) -> str:
    return f"float {value:.17g}"


def cell(value, dtype=None) -> str:
    """One cell; lists of numbers have a dtype of numpy."""
    if value is None:
        return "null"
    if isinstance(value, (bool, np.bool_)):
        return f"bool {int(value)}"
    if isinstance(value, (int, np.integer)):
        return f"int {value}"
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    if isinstance(value, str):
        return f"text {value.encode().hex()}"
    if isinstance(value, bytes):
        return f"text {value.hex()}"
    if dtype is not None:
        array = np.asarray(value, dtype)
        return f"list {DTYPES[array.dtype]} {array.tobytes().hex()}"
    texts = [each.encode() if isinstance(each, str) else each for each in value]
    return "texts" + "".join(f" {each.hex()}." for each in texts)


def rows(text: str) -> list[dict[str, str]]:
    """The rows of a program's output."""
    return [dict(line.split("\t") for line in row.splitlines()) for row in text.split("\n\n") if row]
