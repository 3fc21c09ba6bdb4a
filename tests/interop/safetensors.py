#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's safetensors with the Python package of that name: safetensors.py PROGRAM

PROGRAM is interop_safetensors, built from safetensors.cpp in this folder. Each writes what the other
reads, and both judge the same damaged files. Needs the packages of requirements/data.txt.
"""

import random
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# This file has the name of the package that it tests, and Python looks in its folder first.
here = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if str(Path(place or ".").resolve()) != here]

import numpy as np  # noqa: E402
from safetensors import SafetensorError, TensorSpec, deserialize, safe_open, serialize  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

sys.path.append(str(Path(here).parent / "fuzz"))
from seeds import BITS, seeds  # noqa: E402

program = ""

NUMPY = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16,
    "F16": np.float16, "U32": np.uint32, "I32": np.int32, "F32": np.float32, "C64": np.complex64,
    "U64": np.uint64, "I64": np.int64, "F64": np.float64,
}  # fmt: skip

# The types that the package writes, by its names; BITS has the rest, which it only reads.
WORDS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16",
    "BF16": "bfloat16", "U32": "uint32", "I32": "int32", "F32": "float32", "C64": "complex64",
    "U64": "uint64", "I64": "int64", "F64": "float64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu", "F4": "float4_e2m1fn_x2",
}  # fmt: skip

# Files that frugal refuses and the package accepts; docs/checkpoint/safetensors.md describes them.
STRICTER = (
    "the tensor has a field that the format does not know",
    "the header has two tensors of one name",
    "a key stands twice in the metadata",
    "the header's object is followed by more than spaces",
    "this is not a safetensors file: a header begins with {",
    "the tensor is too large",
    "the header has something else than it should: expected an object, found an array",
    "the header has something else than it should: expected an object, found null",
)


def run(*arguments) -> str:
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments[0]} failed with {done.returncode}: {done.stderr}")
    return done.stdout


def described(path) -> tuple[dict, dict]:
    """Contents that frugal reads: {name: (dtype, shape, bytes)}, {key: value}."""
    tensors, metadata = {}, {}
    for line in run("describe", path).splitlines():
        what, name, *rest = line.split(" ")
        name = bytes.fromhex(name).decode()
        if what == "metadata":
            metadata[name] = bytes.fromhex(rest[0]).decode()
        else:
            shape = [int(extent) for extent in rest[1].strip("[]").split(",") if extent]
            tensors[name] = (rest[0], shape, bytes.fromhex(rest[2]))
    return tensors, metadata


def content(n: int, size: int, boolean: bool = False) -> bytes:
    return bytes((31 * i + 7 * n) & (1 if boolean else 255) for i in range(size))


def arrays() -> dict[str, np.ndarray]:
    made = {}
    for n, (name, dtype) in enumerate(NUMPY.items()):
        for shape in ([], [5], [2, 3, 4], [3, 0]):
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            array = np.frombuffer(content(n, size, name == "BOOL"), dtype=dtype).reshape(shape)
            made[f"layer.{name}.{len(shape)}.{size}"] = array
    made["Stra\u00dfe \U0001f600 \"\\/\n\t\x01\x7f"] = np.arange(3, dtype=np.float32)
    made[""] = np.zeros((), np.uint8)
    return made


def judged_by_python(file: bytes) -> bool:
    try:
        deserialize(file)
    except (SafetensorError, OverflowError, ValueError):
        return False
    return True


def damaged(count: int) -> dict[str, bytes]:
    """Seeds of the fuzzer, and `count` files that differ from one of them by a few changes."""
    chance, files = random.Random(20), {f"seed_{name}": file for name, file in seeds().items()}
    whole = [file for file in seeds().values() if judged_by_python(file) and len(file) > 16]
    words = [b"0", b"1", b"8", b"-0", b"1.0", b"18446744073709551616", b"4294967296", b"null", b"[]",
             b"{}", b'"U8"', b'"t"', b"[0,0]", b",", b":", b" ", b"\n", b"\0", b"\xff", b'"shape"',
             b'"__metadata__":{"k":"v"},', b'"x":1,', b"\\u0000", b"\\ud800"]  # fmt: skip
    for number in range(count):
        file = chance.choice(whole)
        end = 8 + struct.unpack("<Q", file[:8])[0]
        header, data = bytearray(file[8:end]), file[end:]
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            at, kind = chance.randrange(len(header) + 1), chance.randrange(6)
            if kind == 0 and at < len(header):
                header[at] = chance.randrange(256)
            elif kind == 1:
                header[at:at] = chance.choice(words)
            elif kind == 2:
                del header[at : at + chance.choice((1, 1, 2, 8))]
            elif kind == 3:
                digits = [i for i, byte in enumerate(header) if byte in b"0123456789"]
                if digits:
                    header[chance.choice(digits)] = chance.choice(b"0123456789")
            elif kind == 4:
                header += chance.choice((b" ", b"\n", b"\0", b"}"))
            else:
                data = chance.choice((data[:-1], data + b"x", data * 2))
        length = len(header) + chance.choice((0,) * 20 + (-1, 1, 8, 1 << 40))
        files[f"damaged_{number:05}"] = struct.pack("<Q", length % 2**64) + bytes(header) + data
    return files


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_frugal_reads_the_files_of_numpy(self):
        path, metadata = self.folder / "numpy.safetensors", {"format": "np", "\u00e9\n": "\"\\", "": ""}
        save_file(arrays(), path, metadata)
        tensors, read = described(path)
        names = {np.dtype(dtype): name for name, dtype in NUMPY.items()}
        expected = {k: (names[a.dtype], list(a.shape), a.tobytes()) for k, a in arrays().items()}
        self.assertEqual(tensors, expected)
        self.assertEqual(read, metadata)

    def test_numpy_reads_the_files_of_frugal(self):
        save_file(arrays(), self.folder / "in", {"format": "np", "b": "2", "a": "\u00e9"})
        run("rewrite", self.folder / "in", self.folder / "out")
        read = load_file(self.folder / "out")
        self.assertEqual(read.keys(), arrays().keys())
        for name, array in arrays().items():
            self.assertEqual(read[name].dtype, array.dtype, name)
            self.assertEqual(read[name].shape, array.shape, name)
            self.assertEqual(read[name].tobytes(), array.tobytes(), name)
        with safe_open(self.folder / "out", framework="np") as file:
            self.assertEqual(file.metadata(), {"format": "np", "b": "2", "a": "\u00e9"})

    def serialized(self, chance: random.Random) -> bytes:
        buffers, specs = [], {}
        for n, (name, word) in enumerate(WORDS.items()):
            for shape in ([2, 4], [0]):
                logical = [2, 8] if name == "F4" and shape == [2, 4] else shape
                size = int(np.prod(logical)) * BITS[name] // 8
                buffer = np.frombuffer(content(n, size, name == "BOOL"), np.uint8).copy()
                buffers.append(buffer)
                specs[f"{chance.random()}.{name}"] = TensorSpec(
                    dtype=word, shape=shape, data_ptr=buffer.ctypes.data, data_len=size
                )
        return serialize(specs, {"only": "one"} if chance.random() < 0.5 else None)

    def test_frugal_writes_byte_by_byte_what_the_package_writes(self):
        for seed in range(20):
            file = self.serialized(random.Random(seed))
            (self.folder / f"in{seed}").write_bytes(file)
            run("rewrite", self.folder / f"in{seed}", self.folder / f"out{seed}")
            self.assertEqual((self.folder / f"out{seed}").read_bytes(), file)

    def test_the_package_reads_every_type_that_frugal_writes(self):
        run("make", self.folder / "made")
        read = {name: tensor for name, tensor in deserialize((self.folder / "made").read_bytes())}
        n, types = 0, set()
        for dtype in ("BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0",
                      "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16", "BF16", "I32", "U32", "F32",
                      "C64", "F64", "I64", "U64"):  # fmt: skip
            for shape, ending in (([], "caf\u00e9 \"\\\n"), ([3, 8], "caf\u00e9 \"\\\n"), ([2, 0], "empty")):
                bits = int(np.prod(shape)) * BITS[dtype]
                if bits % 8 != 0:
                    continue
                tensor = read.pop(f"{dtype}/{len(shape)}/{ending}")
                self.assertEqual((tensor["dtype"], list(tensor["shape"])), (dtype, shape))
                self.assertEqual(bytes(tensor["data"]), content(n, bits // 8, dtype == "BOOL"))
                types.add(dtype)
                n += 1
        self.assertEqual(read, {})
        self.assertEqual(types, set(BITS))
        with safe_open(self.folder / "made", framework="np") as file:
            self.assertEqual(file.metadata(), {"format": "pt", "step": "500", "caf\u00e9": "\n\"\\"})

    def test_frugal_takes_no_damaged_file_that_the_package_refuses(self):
        files = damaged(6000)
        folder = self.folder / "judged"
        folder.mkdir()
        for name, file in files.items():
            (folder / name).write_bytes(file)
        judged = dict(line.split(" ", 1) for line in run("judge", folder).splitlines())
        self.assertEqual(judged.keys(), files.keys())
        taken = 0
        for name, file in files.items():
            python = judged_by_python(file)
            if judged[name] == "ok":
                taken += 1
                self.assertTrue(python, f"only frugal takes {file!r}")
            elif python:
                self.assertTrue(judged[name].startswith(STRICTER), f"{file!r} is refused: {judged[name]}")
        # Otherwise this would show nothing: there must be files of both kinds.
        self.assertGreater(taken, 200)
        self.assertLess(taken, 5000)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
