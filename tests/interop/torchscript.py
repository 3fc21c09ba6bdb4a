#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads modules that frugal exported, in Python, without any of its C++: torchscript.py PROGRAM

PROGRAM is interop_torchscript, built from torchscript.cpp in this folder. Needs torch, safetensors, onnx and
onnxruntime of requirements/model.txt.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# This folder has a file of the package's name, and Python looks in it first.
here = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if str(Path(place or ".").resolve()) != here]

import onnxruntime  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

program = ""


class Interop(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        done = subprocess.run([program, cls.folder.name], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{program} failed with {done.returncode}: {done.stderr}")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def exported(self, name: str):
        path = Path(self.folder.name) / name
        return torch.jit.load(f"{path}.pt"), load_file(f"{path}.safetensors")

    def test_outputs_are_those_of_cpp_for_every_batch(self):
        for name in ("mlp", "convolutions", "block", "adapted"):
            module, tensors = self.exported(name)
            self.assertFalse(module.training)
            for i in range(3):
                expected = tensors[f"output{i}"]
                with torch.no_grad():
                    made = module(tensors[f"input{i}"])
                self.assertEqual(made.shape, expected.shape)
                far = (made - expected).abs().max().item()
                self.assertLess(far, 1e-5, f"{name}, batch {i}")

    def test_the_state_dict_has_the_names_and_bits_of_cpp(self):
        for name in ("mlp", "convolutions", "block", "adapted"):
            module, tensors = self.exported(name)
            state = module.state_dict()
            expected = {k[6:]: v for k, v in tensors.items() if k.startswith("state.")}
            self.assertEqual(set(state), set(expected))
            for key, value in expected.items():
                self.assertTrue(torch.equal(state[key], value), f"{name}: {key}")
        self.assertIn("0.lora.down", self.exported("adapted")[0].state_dict())

    def test_python_makes_onnx_of_it(self):
        for name in ("mlp", "convolutions", "block", "adapted"):
            module, tensors = self.exported(name)
            path = str(Path(self.folder.name) / f"{name}.onnx")
            batch = {0: "batch"}
            torch.onnx.export(module, (tensors["input0"],), path, dynamo=False, input_names=["x"],
                              output_names=["y"], dynamic_axes={"x": batch, "y": batch})  # fmt: skip
            session = onnxruntime.InferenceSession(path)
            for i in range(3):
                (made,) = session.run(None, {"x": tensors[f"input{i}"].numpy()})
                far = (torch.from_numpy(made) - tensors[f"output{i}"]).abs().max().item()
                self.assertLess(far, 1e-5, f"{name}, batch {i}")

    def test_parameters_can_be_trained_and_loaded_further(self):
        module, tensors = self.exported("mlp")
        parameters = dict(module.named_parameters())
        self.assertEqual(set(parameters), {"0.weight", "0.bias", "3.weight", "3.bias"})
        before = module(tensors["input0"]).sum()
        before.backward()
        self.assertIsNotNone(parameters["0.weight"].grad)
        state = {key: torch.zeros_like(value) for key, value in module.state_dict().items()}
        module.load_state_dict(state)
        self.assertEqual(module(tensors["input0"]).abs().max().item(), 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
