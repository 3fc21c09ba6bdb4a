#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the weights of checkpoints with the Python package safetensors: checkpoint.py PROGRAM

PROGRAM is interop_checkpoint, built from checkpoint.cpp in this folder. averaged.safetensors must be the
state dict of model.safetensors, with the averages that numpy computes from the weights of each step.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# A file of this folder has the name of the package, and Python looks in the folder first.
here = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if str(Path(place or ".").resolve()) != here]

import numpy as np  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

program = ""
STATISTICS = ("1.running_mean", "1.running_var", "1.num_batches_tracked")


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        done = subprocess.run([program, cls.folder.name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"the run failed with {done.returncode}: {done.stderr}")
        cls.steps = sorted(Path(cls.folder.name, "checkpoints").iterdir())

    def test_averages_are_those_of_the_weights_of_each_step(self):
        self.assertEqual([each.name for each in self.steps], [f"step-{n:08}" for n in range(11)])
        # There is no average before the first step.
        self.assertFalse((self.steps[0] / "averaged.safetensors").exists())
        expected = None
        for step in self.steps[1:]:
            model = load_file(step / "model.safetensors")
            averaged = load_file(step / "averaged.safetensors")
            self.assertEqual(averaged.keys(), model.keys())
            if expected is None:
                expected = {name: model[name].astype(np.float64) for name in model}
            for name in model:
                self.assertEqual(averaged[name].dtype, model[name].dtype, name)
                if name in STATISTICS:
                    self.assertEqual(averaged[name].tobytes(), model[name].tobytes(), name)
                    continue
                expected[name] = 0.75 * expected[name] + 0.25 * model[name]
                # Ten roundings of float32.
                np.testing.assert_allclose(averaged[name], expected[name], rtol=1e-5, atol=1e-6)
        self.assertGreater(np.abs(averaged["0.weight"] - model["0.weight"]).max(), 1e-3)

    def test_the_file_says_that_validations_measure_it(self):
        with safe_open(self.steps[-1] / "averaged.safetensors", framework="np") as file:
            self.assertEqual(file.metadata(), {"format": "pt", "validated": "true"})


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
