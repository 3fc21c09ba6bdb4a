# SPDX-License-Identifier: Apache-2.0
"""frugal_train from end to end: recipes as text become programs, which train packages; the package itself is installed by pip.

python tests/step/train_test.py PREFIX, where frugal is installed, with the packages of requirements/model.txt, a C++ compiler
and CMake. ./dev test --release runs it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "python"
held = tempfile.TemporaryDirectory()
INSTALLED = pathlib.Path(held.name) / "installed"
# Into a folder of its own, and from a copy: pip builds beside the sources.
shutil.copytree(PACKAGE, f"{held.name}/package")
subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(INSTALLED), f"{held.name}/package"],
               check=True)
sys.path.insert(0, str(INSTALLED))
os.environ |= {"XDG_CACHE_HOME": str(pathlib.Path(held.name) / "cache"), "OMP_NUM_THREADS": "1"}

import torch  # noqa: E402
import transformers  # noqa: E402
from frugal_step import Loss, export_step  # noqa: E402
from frugal_train import TrainError, train  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

PREFIX = ""
RECIPE = {"Optimize<AdamW>": {"lr": 3e-3}, "ClipNorm<>": {}, "Checkpoint<Every<8>>": {}, "Validate<Every<1, Epoch>, Accuracy>": {}}
PYTHON = """
import torch
from torch import nn
torch.manual_seed(1)

def loss(module, batch):
    return nn.functional.mse_loss(module(batch["data"]), batch["target"])

def job():
    return {"module": nn.Linear(3, 1), "loss": loss, "example_batch": {"data": torch.rand(4, 3), "target": torch.rand(4, 1)}}
"""


def of_text(module, batch):
    made = module(**batch)
    return Loss(made.loss, output=made.logits)


def classifier():
    torch.manual_seed(1)
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def texts(samples):
    """Texts whose first word is their label."""
    numbers = torch.Generator().manual_seed(samples)
    labels = torch.randint(0, 3, (samples,), generator=numbers)
    ids = torch.randint(3, 40, (samples, 12), generator=numbers)
    ids[:, 0] = labels
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


class Trained(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def command(self, name, *arguments) -> subprocess.CompletedProcess:
        """A command that pip has installed."""
        return subprocess.run([sys.executable, str(INSTALLED / "bin" / name), *map(str, arguments)], capture_output=True,
                              text=True, env=os.environ | {"PYTHONPATH": str(INSTALLED)})

    def test_a_classifier_learns_resumes_and_compiles_once(self):
        module = classifier()
        export_step(module, of_text, texts(8), self.folder / "package", progress=False)
        run = {"valid": texts(64), "module": module, "frugal": PREFIX, "progress": False, "seed": 3}
        first = train(self.folder / "package", texts(96), RECIPE, run_dir=self.folder / "run", epochs=2, **run)
        self.assertEqual((first.steps, first.epochs, first.preempted), (6, 2, False))
        # It goes on where it was, with the weights that it had.
        second = train(self.folder / "package", texts(96), RECIPE, run_dir=self.folder / "run", epochs=20, **run)
        self.assertEqual(second.steps, 60)
        self.assertGreater(second.metrics["accuracy"], 0.9)
        again = transformers.BertForSequenceClassification(module.config)
        again.load_state_dict(module.state_dict())
        self.assertEqual(self.accuracy(again), second.metrics["accuracy"])
        # A run that nothing has ended has the same bits, and another rate needs no program of its own.
        whole = classifier()
        train(self.folder / "package", texts(96), RECIPE, run_dir=self.folder / "whole", epochs=20, **run | {"module": whole})
        for name, tensor in module.state_dict().items():
            self.assertTrue(torch.equal(tensor, whole.state_dict()[name]), name)
        other = classifier()
        train(self.folder / "package", texts(96), RECIPE | {"Optimize<AdamW>": {"lr": 1e-4}}, run_dir=self.folder / "other", epochs=1,
              **run | {"module": other})
        self.assertFalse(torch.equal(other.classifier.weight, whole.classifier.weight))
        programs = [each for each in (pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "frugal_train").iterdir() if each.is_dir()]
        self.assertEqual(len(programs), 1)

    def accuracy(self, module):
        batch = texts(64)
        module.eval()
        with torch.no_grad():
            return float((module(**batch).logits.argmax(1) == batch["labels"]).double().mean())

    def test_the_commands_export_and_train(self):
        (self.folder / "model.py").write_text(PYTHON)
        done = self.command("frugal-step", self.folder / "model.py", self.folder / "package")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        inputs = torch.rand(32, 3)
        save_file({"data": inputs, "target": inputs.sum(1, True)}, self.folder / "data.safetensors")
        (self.folder / "job.toml").write_text(
            'package = "package"\ndata = "data.safetensors"\nbatch = 8\n[settings]\nrun_dir = "run"\nepochs = 200\n'
            '[policies."Optimize<SGD>"]\nlr = 0.2\n')
        done = self.command("frugal-train", self.folder / "job.toml", "--frugal", PREFIX)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        from safetensors.torch import load_file
        weight = load_file(self.folder / "run" / "weights" / "model.safetensors")["weight"]
        self.assertLess((weight - 1).abs().max().item(), 0.05)

    def test_a_recipe_that_does_not_compile_is_one_sentence(self):
        (self.folder / "model.py").write_text(PYTHON)
        self.assertEqual(self.command("frugal-step", self.folder / "model.py", self.folder / "package").returncode, 0)
        data = {"data": torch.rand(8, 3), "target": torch.rand(8, 1)}
        for recipe, sentence in (({"Optimize<SGD>": {}, "Recompute<Segments<2>>": {}}, "memory_budget in place of Recompute"),
                                 ({"Optimize<SGD>": {"rate": 1.0}}, "no option 'rate'")):
            with self.assertRaises(TrainError) as caught:
                train(self.folder / "package", data, recipe, run_dir=self.folder / "run", frugal=PREFIX, progress=False)
            self.assertIn(sentence, str(caught.exception))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PREFIX = sys.argv.pop(1)
    unittest.main(verbosity=2)
