#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frugal_train compiles a recipe, trains a step package with it, and loads the weights back: train.py ANYTHING

Needs the packages of requirements/model.txt, cmake and g++, and FRUGAL_PREFIX, where frugal is installed.
"""

import os
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != here]
SOURCES = here.parents[1] / "packaging" / "python" / "src"
sys.path.insert(0, str(SOURCES))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from frugal_step import Loss, export_step  # noqa: E402
from frugal_step.tensor_file import read_tensors, write_tensors  # noqa: E402
from frugal_train import TrainError, train  # noqa: E402
from frugal_train.program import source_of  # noqa: E402
from frugal_train.recipe import check_names, policies_of, read_job  # noqa: E402
from torch import nn  # noqa: E402

RECIPE = {"Optimize<AdamW>": {"lr": 1e-2}, "ClipNorm<>": {"max_norm": 0.5}, "Checkpoint<Every<1, Epoch>>": {},
          "Validate<Every<1, Epoch>, Accuracy>": {}}


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def rows(count: int = 200) -> dict:
    torch.manual_seed(2)
    data = torch.randn(count, 6)
    return {"data": data, "target": data[:, :3].argmax(1)}


def of_batch(module, batch) -> Loss:
    output = module(batch["data"])
    return Loss(F.cross_entropy(output, batch["target"]), output=output)


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
        check_names(policies_of(RECIPE | {'Freeze<Where<"bert.*">>': {}, "Average<Ema<0.9_r>>": {}}), include)
        self.assertIn("the nearest name is Optimize", self.refused(check_names, policies_of({"Optimise<SGD>": {}}), include))
        self.assertIn("is no policy", self.refused(policies_of, {"Optimize<AdamW": {}}))
        self.assertIn("is no policy", self.refused(policies_of, {'f("x");': {}}))
        self.assertIn("is [1]", self.refused(policies_of, {"ClipNorm<>": {"max_norm": [1]}}))
        self.assertIn("by name", self.refused(policies_of, {"ClipNorm<>": 1}))

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


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        os.environ["XDG_CACHE_HOME"] = str(cls.folder / "cache")
        export_step(network(), of_batch, {name: tensor[:8] for name, tensor in rows().items()}, cls.folder / "package",
                    progress=False)

    def run_recipe(self, recipe=None, **more):
        return train(self.folder / "package", rows(), RECIPE if recipe is None else recipe, valid=rows(), batch=16,
                     progress=False, **more)

    def test_it_trains_resumes_and_compiles_once(self):
        module = network()
        result = self.run_recipe(module=module, run_dir=self.folder / "whole", epochs=6)
        self.assertEqual((result.epochs, result.steps, result.preempted), (6, 78, False))
        self.assertGreater(result.metrics["accuracy"], 0.9)
        with torch.no_grad():
            accuracy = (module(rows()["data"]).argmax(1) == rows()["target"]).float().mean().item()
        self.assertAlmostEqual(accuracy, result.metrics["accuracy"], places=6)
        begun = time.monotonic()
        self.run_recipe(run_dir=self.folder / "parts", epochs=2)
        self.assertEqual(len(list((self.folder / "cache" / "frugal_train").iterdir())), 1)
        self.assertLess(time.monotonic() - begun, 20)
        resumed = network()
        self.run_recipe(module=resumed, run_dir=self.folder / "parts", epochs=6)
        for name, tensor in module.state_dict().items():
            self.assertTrue(torch.equal(tensor, resumed.state_dict()[name]), name)
        other = RECIPE | {"Optimize<AdamW>": {"lr": 1e-4}}
        self.assertLess(self.run_recipe(other, epochs=6, run_dir=self.folder / "slow").metrics["accuracy"],
                        result.metrics["accuracy"])

        # The same by the command, from files.
        write_tensors(rows(), self.folder / "rows.safetensors")
        (self.folder / "job.toml").write_text(
            'package = "package"\ndata = "rows.safetensors"\nvalid = "rows.safetensors"\nbatch = 16\n'
            '[settings]\nepochs = 6\nrun_dir = "runs"\n' +
            "".join(f"[policies.'{name}']\n" + "".join(f"{key} = {value}\n" for key, value in options.items())
                    for name, options in RECIPE.items()))
        done = subprocess.run([sys.executable, "-m", "frugal_train.command", "--quiet", str(self.folder / "job.toml")],
                              capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SOURCES)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"steps": 78', done.stdout)
        trained = read_tensors(self.folder / "runs" / "weights" / "model.safetensors")
        for name, tensor in module.state_dict().items():
            self.assertTrue(torch.equal(tensor, trained[name]), name)

        # Refused when it starts, by the same program.
        with self.assertRaisesRegex(TrainError, "0.lr' is of another type"):
            self.run_recipe(RECIPE | {"Optimize<AdamW>": {"lr": "fast"}})
        with self.assertRaisesRegex(TrainError, "no tensor 'target'"):
            train(self.folder / "package", {"data": rows()["data"]}, RECIPE, valid=rows(), progress=False)
        for wrong in ({"epoch": 3}, {"epochs": -1}, {"frugal": self.folder}, {"batch": 0}):
            with self.assertRaises(TrainError):
                train(self.folder / "package", rows(), RECIPE, valid=rows(), progress=False, **wrong)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.argv.pop(1)
    warnings.simplefilter("ignore")
    unittest.main(verbosity=2)
