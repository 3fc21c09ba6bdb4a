# SPDX-License-Identifier: Apache-2.0
"""Published layouts of models as compiled steps, compared with eager PyTorch: gradients, and 100 steps of training.

python tests/step/models_test.py, with the packages of requirements/model.txt. ./dev test --release runs it: it compiles
a dozen programs.

Small initial weights begin near a saddle, which a training leaves by amplifying its rounding errors: with them eager PyTorch
is as far from its own FP64 run after 100 steps as the compiled step is. So ViT and Llama have larger ones, and ResNet, in
which a rounding error decides for ReLU, is trained in FP64.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))

import torch  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402
from support import compiled, eager, job_of, largest_error, linear, program_of  # noqa: E402
from frugal_step import Loss, export_step, load  # noqa: E402, I001  (support names its folder)

RATE, STEPS = 1e-2, 100


def tokens(samples=4, length=10, kinds=60):
    made = torch.randint(1, kinds, (samples, length), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(made)
    mask[1, length // 2:] = 0
    return {"input_ids": made, "attention_mask": mask}


def images(size):
    numbers = torch.Generator().manual_seed(1)
    return {"pixel_values": torch.randn(6, 3, size, size, generator=numbers),
            "labels": torch.randint(0, 3, (6,), generator=numbers)}


def of_transformers(module, batch):
    return module(**batch).loss


def of_images(module, batch):
    return torch.nn.functional.cross_entropy(module(batch["pixel_values"]), batch["labels"])


def without_key_biases(tensors):
    """A softmax does not depend on them: their gradient is nothing but rounding."""
    return {name: tensor for name, tensor in tensors.items() if not name.endswith(("key.bias", "k_proj.bias"))}


class Models(unittest.TestCase):
    def same(self, module, example, loss=of_transformers, in_double=False, most=1e-5, autocast=None):
        """Compares the compiled step of a module at the example's size and at another one, and a training with it."""
        self.compiled(module, example, loss, most, trains=not in_double and autocast is None, autocast=autocast)
        if in_double:
            doubled = {name: field.double() if field.is_floating_point() else field for name, field in example.items()}
            self.compiled(module.double(), doubled, loss, most, trains=True)

    def compiled(self, module, example, loss, most, trains, autocast=None):
        job = job_of(module, loss, example, autocast=autocast)
        made = program_of(job)
        with tempfile.TemporaryDirectory() as folder:
            run = compiled(job, made, os.path.join(folder, "step.so"))
            fields = [job.fields[job.layout.names.index(name)] for name in made.fields]
            for part in (fields, [each[:3] for each in fields]):
                with torch.random.fork_rng():
                    torch.manual_seed(0)
                    found = run(part)
                self.assertLess(largest_error(found, without_key_biases(eager(job, made, part))), most)
            if trains:
                self.train(job, run, fields)

    def train(self, job, run, fields):
        """Steps of gradient descent with the compiled code, in the places of the module's tensors, and with autograd."""
        state = job.state
        start = [tensor.detach().clone() for tensor in state.tensors()]
        for _ in range(STEPS):
            found = run(fields)
            for name, tensor in zip(state.names(), state.tensors()):
                if f"gradient:{name}" in found:
                    tensor.data.sub_(found[f"gradient:{name}"], alpha=RATE)
                elif f"buffer:{name}" in found:
                    tensor.data.copy_(found[f"buffer:{name}"])
        of_code = {name: tensor.detach().clone() for name, tensor in zip(state.names(), state.tensors())}
        for tensor, before in zip(state.tensors(), start):
            tensor.data.copy_(before)
        job.module.train()
        optimizer = torch.optim.SGD(state.trained.values(), lr=RATE)
        for _ in range(STEPS):
            optimizer.zero_grad()
            job.loss(job.module, job.layout.batch(fields)).backward()
            optimizer.step()
        most = max(float((tensor.detach() - before).abs().max()) for tensor, before in zip(state.tensors(), start))
        self.assertGreater(most, 1e-3)
        after = without_key_biases({name: tensor.detach() for name, tensor in zip(state.names(), state.tensors())})
        self.assertLess(largest_error(of_code, after), 1e-4)

    def test_bert(self):
        torch.manual_seed(0)
        self.same(transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
            tokens() | {"labels": torch.tensor([0, 1, 2, 1])})

    def test_bert_under_autocast(self):
        # BF16 has eight bits: eager PyTorch rounds after every operator, and the compiled code does not.
        torch.manual_seed(0)
        self.same(transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=16, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
            tokens() | {"labels": torch.tensor([0, 1, 2, 1])}, most=5e-2, autocast=torch.bfloat16)

    def test_two_shapes_with_outputs_in_training(self):
        """A package for two lengths: each has its programs, whose step returns the logits as well."""
        module = linear(6, 3)

        def loss(net, batch):
            logits = net(batch["data"].mean(1))
            return Loss(torch.nn.functional.cross_entropy(logits, batch["target"]), output=logits)

        def batch(length):
            return {"data": torch.randn(4, length, 6, generator=torch.Generator().manual_seed(length)),
                    "target": torch.tensor([0, 1, 2, 1])}

        with tempfile.TemporaryDirectory() as folder:
            export_step(module, loss, batch(5), f"{folder}/net", shapes=[batch(7)], train_outputs=True, progress=False)
            with open(f"{folder}/net/manifest.json") as file:
                programs = json.load(file)["programs"]
            steps = [each for each in programs if each["kind"] == "step"]
            self.assertEqual([each["fields"][0]["shape"][1] for each in steps], [5, 7])
            for length, step in zip((5, 7), steps):
                fields = batch(length)
                made = dict(zip(step["outputs"], load.load(f"{folder}/net/{step['file']}")(
                    module.weight.detach(), module.bias.detach(), fields["data"], fields["target"], torch.ones(()))))
                expected = loss(module, fields)
                self.assertLess(float((made["output"] - expected.output.detach()).abs().max()), 1e-6)
                gradient, = torch.autograd.grad(expected.value, [module.weight])
                self.assertLess(float((made["gradient:weight"] - gradient).abs().max()), 1e-6)

    def test_minilm(self):
        torch.manual_seed(0)
        self.same(transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=200, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
            max_position_embeddings=32, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
            tokens() | {"labels": torch.tensor([0, 1, 2, 1])})

    def test_gpt2(self):
        torch.manual_seed(0)
        example = tokens()
        self.same(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=60, n_positions=16, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, use_cache=False)), example | {"labels": example["input_ids"].clone()})

    def test_llama(self):
        torch.manual_seed(0)
        example = tokens()
        self.same(transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=16, use_cache=False, initializer_range=0.3)),
            example | {"labels": example["input_ids"].clone()})

    def test_vit(self):
        torch.manual_seed(0)
        self.same(transformers.ViTForImageClassification(transformers.ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8,
            num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.3)), images(32))

    def test_resnet_18(self):
        torch.manual_seed(0)
        self.same(torchvision.models.resnet18(num_classes=3), images(64), of_images, in_double=True, most=5e-5)


if __name__ == "__main__":
    unittest.main()
