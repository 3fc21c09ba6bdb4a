#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's tar shards with the Python package webdataset: tar_shards.py PROGRAM

PROGRAM is interop_tar_shards, built from tar_shards.cpp in this folder. Each reads what the other
writes, and both group the same odd names. Needs webdataset and numpy of requirements/data.txt.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

os.environ.setdefault("WDS_VERBOSE_CACHE", "0")

import numpy as np  # noqa: E402
import webdataset as wds  # noqa: E402

program = ""


def run(*arguments) -> str:
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return done.stdout


def described(shards) -> list:
    """The samples that frugal reads: (key, {extension: bytes}) of each."""
    samples = []
    for line in run("describe", shards).splitlines():
        key, *fields = line.split(" ")
        pairs = [field.split(":") for field in fields]
        samples.append((bytes.fromhex(key).decode(errors="surrogateescape"),
                        {bytes.fromhex(name).decode(): bytes.fromhex(content) for name, content in pairs}))
    return samples


def read(shards) -> list:
    """The same by webdataset."""
    source = wds.WebDataset(str(shards), shardshuffle=False, empty_check=False)
    return [(sample["__key__"], {k: v for k, v in sample.items() if not k.startswith("__")})
            for sample in source]


def members(names: list, form: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as file:
        for n, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = n * 97 % 1200
            file.addfile(member, io.BytesIO(bytes(n * 31 % 256 for _ in range(member.size))))
    return out.getvalue()


NAMES = [
    "a/0001.jpg", "a/0001.cls", "a/0001.seg.png", "b.c/0002.JPG", "b.c/0002.Json", "README", "a/README",
    "__meta__/shard.json", "__MACOSX__/._x.jpg", "./dot.txt", "0003.txt", "0004.txt", "0003.txt", "0005.",
    "__key.txt", "\u00e9t\u00e9/mod\u00e8le.txt", "deep/" * 12 + "x.txt", "x y.txt", "a..b", "...", "z.tar.gz",
]  # fmt: skip


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_frugal_reads_the_shards_of_webdataset(self):
        arrays = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "y": np.int64(7)}
        with wds.ShardWriter(str(self.folder / "s-%06d.tar"), maxcount=4, verbose=0) as writer:
            for i in range(10):
                writer.write({"__key__": f"d/{i:06d}", "jpg": bytes([i] * (100 * i)), "cls": i, "txt": f"t\u00e9xt {i}",
                              "json": {"n": i}, "x.npy": arrays["x"] + i})
        shards = self.folder / "s-{000000..000002}.tar"
        samples = described(shards)
        self.assertEqual(samples, read(shards))
        self.assertEqual(len(samples), 10)
        self.assertEqual(samples[7][1]["cls"], b"7")

    def test_frugal_reads_every_form_of_tar(self):
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            long = [] if form == tarfile.USTAR_FORMAT else ["n" * 300 + ".txt", "m" * 300 + ".\u00e9"]
            path = self.folder / f"{form}.tar"
            path.write_bytes(members(NAMES + long, form))
            self.assertEqual(described(path), read(path), form)
            self.assertGreater(len(read(path)), 12)

    def test_webdataset_reads_the_shards_of_frugal(self):
        # What a reader reads otherwise is not written, such as "0005.".
        names = [name for name in NAMES if name not in ("0005.", "a..b")] + ["n" * 300 + ".txt", "m" * 300 + ".\u00e9"]
        path = self.folder / "in.tar"
        path.write_bytes(members(names, tarfile.GNU_FORMAT))
        run("rewrite", path, self.folder / "out")
        written = sorted((self.folder / "out").glob("*.tar"))
        self.assertGreater(len(written), 3)
        samples = [sample for each in written for sample in read(each)]
        self.assertEqual(samples, read(path))
        for each in written:
            with tarfile.open(each) as file:
                self.assertTrue(all(member.isreg() and member.mode == 0o444 for member in file))

    def test_arrays_of_numpy_are_read_and_written_alike(self):
        names = {"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "F16": np.float16,
                 "U32": np.uint32, "I32": np.int32, "F32": np.float32, "C64": np.complex64, "U64": np.uint64,
                 "I64": np.int64, "F64": np.float64}  # fmt: skip
        for name, dtype in names.items():
            for shape in ((), (5,), (2, 3), (4, 0, 2), (1, 2, 3, 4)):
                array = np.arange(int(np.prod(shape)), dtype=np.int64).astype(dtype).reshape(shape)
                path = self.folder / "x.npy"
                np.save(path, array)
                kind, elements, header = run("npy", path).split("\n")[:3]
                self.assertEqual(kind.split(" "), [name, *map(str, shape)])
                self.assertEqual(bytes.fromhex(elements), array.tobytes())
                self.assertEqual(header, "same header")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
