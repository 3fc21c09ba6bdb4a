#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's adapters with PEFT: lora.py PROGRAM

PROGRAM is interop_lora, built from lora.cpp in this folder. Each loads what the other has saved. Needs
torch, peft and safetensors of requirements/model.txt.
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

import peft  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

program = ""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 6)
        self.q_proj = torch.nn.Linear(6, 8)
        self.conv = torch.nn.Conv2d(2, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm1d(8)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, rows):
        features = rows[:, 4:]
        image = features.repeat(1, 3).view(-1, 2, 3, 3)
        hidden = self.q_proj(features + self.embed(rows[:, :4].long()).mean(1)) + self.conv(image).mean((2, 3))
        return self.head(self.norm(hidden).tanh())


def run(*arguments) -> str:
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        torch.manual_seed(0)

    def test_peft_computes_with_our_adapter(self):
        for mode in ("lora", "dora", "rslora"):
            with self.subTest(mode):
                folder = self.folder / mode
                folder.mkdir()
                run("save", folder, mode)
                base = Net()
                base.load_state_dict(load_file(folder / "base.safetensors"))
                plain = base.eval()(load_file(folder / "outputs.safetensors")["inputs"])
                model = peft.PeftModel.from_pretrained(base, folder / "adapter").eval()
                saved = load_file(folder / "outputs.safetensors")
                with torch.no_grad():
                    found = model(saved["inputs"])
                self.assertLess((found - saved["outputs"]).abs().max().item(), 1e-6)
                self.assertGreater((found - plain).abs().max().item(), 1e-2)

    def test_we_compute_with_an_adapter_of_peft(self):
        cases = {
            "lora": dict(target_modules=["q_proj", "conv", "embed"], modules_to_save=["head", "norm"]),
            "dora": dict(target_modules=["q_proj", "conv", "embed"], use_dora=True),
            "rslora": dict(target_modules=["q_proj"], use_rslora=True, lora_dropout=0.1),
            "pissa": dict(target_modules=["q_proj"], init_lora_weights="pissa"),
        }
        for mode, options in cases.items():
            with self.subTest(mode):
                folder = self.folder / ("of-" + mode)
                folder.mkdir()
                net = Net()
                save_file(net.state_dict(), folder / "base.safetensors")
                model = peft.get_peft_model(net, peft.LoraConfig(r=2, lora_alpha=3, **options))
                with torch.no_grad():
                    for name, each in model.named_parameters():
                        if each.requires_grad:
                            each.add_(0.1 * torch.randn_like(each))
                inputs = torch.cat([torch.randint(0, 10, (16, 4)).float(), torch.randn(16, 6)], 1)
                if mode == "lora":
                    model(inputs)  # moves the statistics of the norm, which the adapter's file has
                model.eval()
                model.save_pretrained(folder / "adapter")
                save_file({"inputs": inputs}, folder / "inputs.safetensors")
                found = torch.tensor([float(x) for x in run("load", folder).split()]).view(16, 3)
                with torch.no_grad():
                    expected = model(inputs)
                self.assertLess((found - expected).abs().max().item(), 1e-6 if mode != "pissa" else 1e-5)

    def test_what_we_do_not_compute_is_refused(self):
        net = Net()
        save_file(net.state_dict(), self.folder / "base.safetensors")
        save_file({"inputs": torch.zeros(1, 10)}, self.folder / "inputs.safetensors")
        model = peft.get_peft_model(net, peft.LoraConfig(r=2, target_modules=["q_proj"]))
        model.save_pretrained(self.folder / "adapter")
        config = self.folder / "adapter" / "adapter_config.json"
        whole = json.loads(config.read_text())
        for key, value in {
            "peft_type": "LOHA",
            "bias": "all",
            "rank_pattern": {"q_proj": 4},
            "r": 0,
            "alora_invocation_tokens": [1],
            "init_lora_weights": "pissa_niter_4",
            "of_tomorrow": True,
        }.items():
            with self.subTest(key):
                config.write_text(json.dumps({**whole, key: value}))
                with self.assertRaises(AssertionError):
                    run("load", self.folder)
        config.write_text(json.dumps(whole))
        run("load", self.folder)


if __name__ == "__main__":
    program = sys.argv.pop(1)
    unittest.main()
