#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recipes as text become programs, and wrong ones are refused: train.py ANYTHING

Compiles and trains nothing. Needs the packages of requirements/model.txt.
"""

import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != here]
SOURCES = here.parents[1] / "packaging" / "python" / "src"
sys.path.insert(0, str(SOURCES))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
from frugal_step.tensor_file import read_tensors, write_tensors  # noqa: E402
from frugal_train import TrainError, train  # noqa: E402
from frugal_train.program import source_of  # noqa: E402
from frugal_train.recipe import check_names, policies_of, read_job  # noqa: E402

RECIPE = {"Optimize<AdamW>": {"lr": 1e-2}, "ClipNorm<>": {"max_norm": 0.5}, "Checkpoint<Every<1, Epoch>>": {},
          "Validate<Every<1, Epoch>, Accuracy>": {}}


class Recipes(unittest.TestCase):
    def refused(self, function, *arguments) -> str:
        with self.assertRaises(TrainError) as caught:
            function(*arguments)
        return str(caught.exception)

    def test_names_and_options_become_a_program_without_their_numbers(self):
        text = source_of(policies_of({"Optimize<AdamW>": {"lr": 0.125, "group": {"decay": 0.5}}}), validates=False)
        self.assertIn("Optimize<AdamW> policy_0{};", text)
        self.assertIn('set(options, "0.group.decay", policy_0.group.decay);', text)
        self.assertIn("trainer.fit(train);", text)
        self.assertNotIn("0.125", text)
        self.assertNotIn("@", text.split("namespace {")[1])

    def test_what_is_no_policy_is_refused(self):
        include = SOURCES.parents[2] / "include"
        check_names(policies_of(RECIPE | {'Freeze<Where<"bert.*">>': {}, "Average<Ema<0.9>>": {}}), include)
        self.assertIn("the nearest name is Optimize", self.refused(check_names, policies_of({"Optimise<SGD>": {}}), include))
        self.assertIn("is no policy", self.refused(policies_of, {"Optimize<AdamW": {}}))
        self.assertIn("is no policy", self.refused(policies_of, {'f("x");': {}}))
        self.assertIn("is [1]", self.refused(policies_of, {"ClipNorm<>": {"max_norm": [1]}}))
        self.assertIn("by name", self.refused(policies_of, {"ClipNorm<>": 1}))

    def test_a_training_whose_weights_nobody_would_have_is_refused(self):
        error = self.refused(lambda: train("package", {"data": torch.rand(2, 1)}, {"Optimize<SGD>": {}},
                                           frugal=SOURCES.parents[2], progress=False))
        self.assertIn("the trained weights would be lost", error)

    def test_files_of_jobs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "job.toml"
            path.write_text('package = "p"\ndata = "d"\nbatch = 8\n[settings]\nrun_dir = "r"\n[policies."Optimize<SGD>"]\nlr = 1\n')
            job = read_job(path)
            self.assertEqual((job.package, job.batch, job.valid), (f"{folder}/p", 8, None))
            self.assertEqual(job.settings["run_dir"], f"{folder}/r")
            path.write_text('package = "p"\ndatta = "d"\n')
            self.assertIn("Did you mean data?", self.refused(read_job, path))
            path.write_text("package =")
            self.assertIn("not TOML", self.refused(read_job, path))
            self.assertIn("cannot be read", self.refused(read_job, Path(folder) / "other.toml"))

    def test_files_of_tensors_are_read_as_they_were_written(self):
        tensors = {"a": torch.randn(2, 3).t(), "b": torch.tensor(7), "c": torch.tensor([True, False]),
                   "d": torch.randn(3).bfloat16(), "e": torch.empty(0, 2)}
        with tempfile.TemporaryDirectory() as folder:
            write_tensors(tensors, f"{folder}/x.safetensors")
            found = read_tensors(f"{folder}/x.safetensors")
        self.assertEqual(list(found), list(tensors))
        for name, tensor in tensors.items():
            self.assertEqual(found[name].dtype, tensor.dtype)
            self.assertTrue(torch.equal(found[name], tensor), name)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.argv.pop(1)
    warnings.simplefilter("ignore")
    unittest.main(verbosity=2)
