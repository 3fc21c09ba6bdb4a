#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's record shards with the Python package safetensors: records.py PROGRAM

PROGRAM is interop_records, built from records.cpp in this folder. Each reads what the other writes.
Needs safetensors and numpy of requirements/data.txt.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# This folder has files with the names of packages, and Python looks in it first.
here = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if str(Path(place or ".").resolve()) != here]

import numpy as np  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

program = ""


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


def tensors_of(path: Path) -> tuple[dict, dict]:
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def lines(self, *arguments) -> list[str]:
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_the_package_reads_every_shard_of_tensors(self):
        self.lines("write", self.folder)
        shards = json.loads((self.folder / "tensors/shards.json").read_text())["shards"]
        self.assertEqual([shard["records"] for shard in shards], [2, 2, 2, 1])
        sample = 0
        for shard in shards:
            tensors, metadata = tensors_of(self.folder / "tensors" / shard["name"])
            self.assertEqual(tensors.keys(), {"image", "label", "weight", "frugal.block_hashes"})
            self.assertEqual(json.loads(metadata["frugal.records"])["fields"], ["image", "label", "weight"])
            count = shard["records"]
            self.assertEqual(tensors["image"].dtype, np.uint8)
            self.assertEqual(tensors["image"].shape, (count, 2, 3))
            self.assertEqual(tensors["label"].dtype, np.int64)
            self.assertEqual(tensors["weight"].dtype, np.float32)
            for row in range(count):
                np.testing.assert_array_equal(tensors["image"][row].ravel(), np.arange(sample, sample + 6))
                self.assertEqual(tensors["label"][row], sample)
                self.assertEqual(tensors["weight"][row], sample / 4)
                sample += 1
        self.assertEqual(sample, 7)

    def test_the_package_reads_every_shard_of_bytes(self):
        self.lines("write", self.folder)
        texts = []
        for path in sorted((self.folder / "bytes").glob("*.safetensors")):
            tensors, _ = tensors_of(path)
            self.assertEqual(tensors["bytes.offsets"].dtype, np.int64)
            offsets, data = tensors["bytes.offsets"], tensors["bytes"].tobytes()
            texts += [data[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]
        self.assertEqual(texts, ["x" * i for i in range(7)])

    def test_frugal_reads_tensors_that_the_package_wrote(self):
        path = self.folder / "a.safetensors"
        save_file({"target": np.array([3, -4], np.int64),
                   "data": np.array([[0.5, 1.5], [2.5, -3.5]], np.float32)}, path, {"format": "np"})
        self.assertEqual(self.lines("describe", path),
                         ["data float [2] 0.5 1.5; target long int [] 3; ",
                          "data float [2] 2.5 -3.5; target long int [] -4; "])

    def test_frugal_reads_bytes_that_the_package_wrote(self):
        texts = ["one", "", "three"]
        data = "".join(texts).encode()
        offsets = np.cumsum([0] + [len(text) for text in texts]).astype(np.int64)
        path = self.folder / "a.safetensors"
        save_file({"bytes": np.frombuffer(data, np.uint8), "bytes.offsets": offsets}, path)
        self.assertEqual(self.lines("texts", path), texts)
        offsets[1] = 99
        save_file({"bytes": np.frombuffer(data, np.uint8), "bytes.offsets": offsets}, path)
        self.assertIn("bytes.offsets", run("texts", path).stderr)

    def test_frugal_refuses_a_shard_whose_tensors_the_package_changed(self):
        self.lines("write", self.folder)
        path = self.folder / "tensors/shard-000000.safetensors"
        tensors, metadata = tensors_of(path)
        tensors["label"] = tensors["label"] + 1
        save_file(tensors, path, metadata)
        done = run("describe", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("damaged", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
