#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports training steps with packaging/python, trains them from C++, and compares with PyTorch: step.py PROGRAM

PROGRAM is interop_step, built from step.cpp in this folder. Needs the packages of requirements/model.txt and g++.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

# A file of this folder may have the name of a package, and Python looks in its folder first.
here = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != here]
sys.path.insert(0, str(here.parents[1] / "packaging" / "python" / "src"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import transformers  # noqa: E402
from frugal_step import Loss, export_step  # noqa: E402
from frugal_step.load import load  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch import nn  # noqa: E402

program = ""


def network(dropout: float) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 5))


def of_pair(module, batch) -> Loss:
    output = module(batch["data"])
    return Loss(F.cross_entropy(output, batch["target"]), (batch["target"] >= 0).sum(), output)


def of_text(module, batch) -> Loss:
    made = module(**batch)
    return Loss(made.loss, None, made.logits)


def encoder() -> nn.Module:
    torch.manual_seed(2)
    return transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def pairs(sizes) -> list[dict]:
    torch.manual_seed(3)
    return [{"data": torch.randn(size, 20), "target": torch.randint(0, 5, (size,))} for size in sizes]


def texts(sizes) -> list[dict]:
    torch.manual_seed(4)
    made = []
    for size in sizes:
        mask = (torch.arange(12) < torch.randint(4, 13, (size, 1))).long()
        made.append({"input_ids": torch.randint(0, 50, (size, 12)) * mask, "attention_mask": mask,
                     "labels": torch.randint(0, 3, (size,))})
    return made


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        for name, module, loss, example in (
            ("network", network(0.0), of_pair, pairs([8])[0]),
            ("noisy", network(0.3), of_pair, pairs([8])[0]),
            ("encoder", encoder(), of_text, texts([4])[0]),
        ):
            export_step(module, loss, example, cls.folder / name, progress=False)

    def batches(self, name, batches) -> Path:
        path = self.folder / f"{name}.safetensors"
        save_file({f"{i}/{field}": tensor.contiguous() for i, batch in enumerate(batches)
                   for field, tensor in batch.items()}, path)
        return path

    def run_program(self, package, batches, out, *options) -> subprocess.CompletedProcess:
        command = [program, self.folder / package, self.batches(f"{package}-batches", batches), self.folder / out,
                   *options]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    def train(self, package, batches, out, *options) -> tuple[dict, str]:
        """The weights that interop_step trains, and what it prints."""
        done = self.run_program(package, batches, out, *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return load_file(self.folder / out / "model.safetensors"), done.stdout

    def eager(self, module, loss, batches, optimizer, epochs=1) -> dict:
        module.train()
        for _ in range(epochs):
            for batch in batches:
                optimizer.zero_grad()
                loss(module, batch).value.backward()
                optimizer.step()
        return {name: tensor.detach() for name, tensor in module.state_dict().items()}

    def assert_close(self, found, expected, bound):
        self.assertEqual(set(found), set(expected))
        for name, tensor in expected.items():
            # Softmax does not see the bias of the keys: its gradient is rounding, which Adam makes a whole step of.
            if name.endswith("attention.self.key.bias") and bound != 0:
                continue
            apart = (found[name].double() - tensor.double()).abs().max().item()
            self.assertLessEqual(apart, bound * max(1, tensor.double().abs().max().item()), name)

    def test_a_hundred_steps_of_a_network_with_batch_norm_are_pytorchs(self):
        batches = pairs([8] * 19 + [3])  # the last one is ragged
        found, _ = self.train("network", batches, "a", "--optimizer", "adamw", "--lr", "1e-3", "--epochs", "5")
        module = network(0.0)
        start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01)
        expected = self.eager(module, of_pair, batches, optimizer, 5)
        self.assert_close(found, expected, 1e-4)
        self.assertGreater((expected["0.weight"] - start["0.weight"]).abs().max().item(), 0.01)
        network(0.0).load_state_dict(found)  # strict: the names are Python's, and all of them

    def test_a_hundred_steps_of_berts_classifier_are_pytorchs(self):
        batches = texts([4] * 20)
        found, printed = self.train("encoder", batches, "b", "--optimizer", "adamw", "--lr", "1e-3", "--epochs", "5")
        module = encoder()
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01)
        expected = self.eager(module, of_text, batches, optimizer, 5)
        self.assert_close(found, expected, 1e-4)
        module.eval()
        with torch.no_grad():
            loss = sum(of_text(module, batch).value for batch in batches) / len(batches)
        self.assertAlmostEqual(float(printed.split("\nloss ")[1]), float(loss), places=4)
        # What transformers itself writes beside the weights makes them a model of its own.
        module.config.save_pretrained(self.folder / "b")
        again = transformers.BertForSequenceClassification.from_pretrained(self.folder / "b")
        self.assert_close(dict(again.state_dict()), found, 0)

    def test_a_loop_in_python_over_the_same_package_has_the_same_bits(self):
        batches = pairs([8] * 6)
        found, _ = self.train("network", batches, "c", "--lr", "0.1")
        run = load(str(self.folder / "network" / "step-0.so"))
        outputs = json.loads((self.folder / "network" / "manifest.json").read_text())["programs"][0]["outputs"]
        module = network(0.0)
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, fused=True)
        torch.set_num_threads(1)
        for batch in batches:
            made = run(*[p.detach() for p in parameters.values()], *buffers.values(), batch["data"], batch["target"],
                       torch.ones(()))
            named = dict(zip(outputs, made))
            self.assertEqual(int(named["index"]), 0)
            for name, buffer in buffers.items():
                buffer.copy_(named[f"buffer:{name}"])
            for name, parameter in parameters.items():
                parameter.grad = named[f"gradient:{name}"]
            optimizer.step()
        for name, tensor in module.state_dict().items():
            self.assertTrue(torch.equal(tensor, found[name]), name)

    def test_labels_and_tokens_out_of_range_are_named(self):
        for package, batches, field, wrong, limit in (
            ("network", pairs([8] * 3), "target", 5, "nll_loss_forward takes numbers from 0 to 4 and -100"),
            ("encoder", texts([4] * 3), "input_ids", 50, "embedding takes numbers from 0 to 49"),
        ):
            batches[1][field][2] = wrong
            done = self.run_program(package, batches, "wrong", "--lr", "0.1")
            self.assertGreater(done.returncode, 0, "ended by a signal")
            self.assertIn(f"'{field}', evaluate-0.so): {limit}; '{field}' has numbers from", done.stdout + done.stderr)

    def test_a_run_that_is_ended_and_resumed_has_the_same_bits_with_dropout(self):
        batches = pairs([8] * 7 + [5])

        def train(out, run, epochs):
            return self.train("noisy", batches, out, "--optimizer", "adamw", "--lr", "1e-2", "--epochs", epochs,
                              "--run", self.folder / run)[0]

        whole = train("d", "whole", 4)
        train("e", "parts", 1)
        train("e", "parts", 3)
        parts = train("e", "parts", 4)
        other = train("f", "other", 3)
        for name, tensor in whole.items():
            self.assertTrue(torch.equal(tensor, parts[name]), name)
        self.assertFalse(torch.equal(whole["0.weight"], other["0.weight"]))

    def test_two_micro_batches_are_one_of_both(self):
        # Without BatchNorm, whose statistics are of each micro-batch.
        small, large = texts([4] * 6), []
        for one, two in zip(small[::2], small[1::2]):
            large.append({name: torch.cat([one[name], two[name]]) for name in one})
        found, _ = self.train("encoder", small, "g", "--accumulate", "--lr", "0.1")
        expected, _ = self.train("encoder", large, "h", "--lr", "0.1")
        self.assert_close(found, expected, 1e-5)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    warnings.simplefilter("ignore")
    unittest.main(verbosity=2)
