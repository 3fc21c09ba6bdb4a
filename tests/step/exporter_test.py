# SPDX-License-Identifier: Apache-2.0
"""The exporter of training steps, compared with eager PyTorch.

python tests/step/exporter_test.py, with the packages of requirements/model.txt
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zlib

sys.path.insert(0, os.path.dirname(__file__))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from support import (  # noqa: E402
    cross_entropy, eager, graph_numbers, job_of, largest_error, linear, pairs, program_of)
from frugal_step import ExportError, Loss, check, command, export, export_step, load, machine, program, sizes, trace  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


class Straight(torch.autograd.Function):
    """A function whose gradient autograd could not know."""

    @staticmethod
    def forward(_, x):
        return x.round()

    @staticmethod
    def backward(_, gradient):
        return gradient * 3


class Net(nn.Module):
    """A layer, and a function of the module and its input."""

    def __init__(self, function=None, **parts):
        super().__init__()
        self.layer = linear(8, 4)
        self.function = function or (lambda module, x: module.layer(x))
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.function(self, x)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))


class Traced(unittest.TestCase):
    """Graphs compute what eager PyTorch does, at the example's size and at others."""

    def same(self, module, loss=cross_entropy, example=None, sizes=(2, 5, 13), **given):
        job = job_of(module, loss, example or pairs(), given.pop("dynamic", None))
        made = program_of(job, **given)
        for fields in [job.fields, *[check._resized(job, "batch", size) for size in sizes]]:
            self.assertLess(largest_error(graph_numbers(job, made, fields), eager(job, made, fields)), 1e-5)
        return made

    def test_numbers_of_a_network_with_statistics_and_dropout(self):
        made = self.same(network())
        self.assertEqual(made.dimensions["batch"][0], 2)  # BatchNorm takes no single sample
        self.assertIn("buffer:1.running_mean", made.outputs)
        self.same(network(), kind="evaluate")

    def test_a_batch_of_as_many_samples_as_classes(self):
        self.same(nn.Sequential(linear(8, 8), nn.ReLU(), linear(8, 8)), example=pairs(8, 8, 8))

    def test_statistics_that_the_example_leaves_as_they_are(self):
        zeros = torch.zeros(6, 8), pairs()[1]
        self.assertIn("buffer:0.running_mean", self.same(nn.Sequential(nn.BatchNorm1d(8), linear(8, 4)),
                                                         example=zeros).outputs)

    def test_a_frozen_part_keeps_its_mode(self):
        module = network()
        module[1].eval()
        outputs = self.same(module).outputs
        self.assertFalse([name for name in outputs if name.startswith("buffer:")])
        self.assertEqual([part.training for part in module], [True, False, True, True, True])

    def test_a_buffer_that_changes_every_second_call(self):
        def second(module, x):
            made = module.layer(x)
            module.count += 1
            module.mean = torch.where(module.count % 2 == 0, made.detach().mean(0), module.mean)
            return made + module.mean

        module = Net(second)
        module.register_buffer("count", torch.zeros((), dtype=torch.int64))
        module.register_buffer("mean", torch.zeros(4))
        self.assertIn("buffer:mean", self.same(module).outputs)

    def test_gradients_that_autograd_alone_does_not_give(self):
        self.same(Net(lambda module, x: Straight.apply(module.layer(x) * 2)))
        hooked = nn.Sequential(linear(8, 8), nn.Tanh(), linear(8, 4))
        hooked[1].register_full_backward_hook(lambda _, given, __: (given[0] * 2,))
        hooked[1].register_forward_hook(lambda _, __, made: made * 3)
        self.same(hooked)
        self.same(Net(lambda module, x: checkpoint(lambda x: torch.tanh(module.layer(x)), x, use_reentrant=False)))

    def test_a_penalty_on_gradients(self):
        def penalty(module, batch):
            x = batch[0].requires_grad_()
            gradient, = torch.autograd.grad(module(x).tanh().sum(), x, create_graph=True)
            return module(x).pow(2).mean() + gradient.pow(2).mean()

        self.same(Net(), penalty)

    def test_tied_weights_and_references_in_lists(self):
        module = Net(lambda module, x: module.other(torch.tanh(module.first(x))) @ module.all[0],
                     first=linear(8, 8), other=linear(8, 8))
        module.other.weight = module.first.weight
        module.all = [module.first.weight]
        made = self.same(module, lambda module, batch: module(batch[0]).pow(2).mean())
        self.assertIn("gradient:first.weight", made.outputs)
        self.assertNotIn("gradient:other.weight", made.outputs)

    def test_recurrent_layers(self):
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.inner, self.outer = nn.LSTM(8, 4, batch_first=True), nn.Linear(4, 4)

            def forward(self, x):
                return self.outer(self.inner(x)[0][:, -1])

        example = (torch.randn(6, 2, 8), pairs()[1])
        several = Recurrent()
        several.inner = nn.GRU(8, 4, num_layers=2, dropout=0.5, batch_first=True).eval()
        for module in (Recurrent(), several):
            self.same(module, example=example, sizes=(5,))

    def test_constants_of_the_module_and_of_the_loss(self):
        module = Net(lambda module, x: module.layer(x) * module.scale * module.kept[0], kept=[torch.full((4,), 2.0)])
        module.register_buffer("scale", torch.arange(4.0), persistent=False)
        self.same(module, lambda module, batch: F.cross_entropy(
            module(batch[0]), batch[1], weight=torch.tensor([1.0, 2.0, 3.0, 4.0])))

    def test_parameters_that_the_loss_does_not_reach(self):
        def gated(module, x):
            with torch.no_grad():
                gate = torch.sigmoid(module.other(x))
            return module.layer(x) * gate

        self.assertEqual([name for name in self.same(Net(gated, other=linear(8, 4))).outputs if "other" in name], [])

    def test_sizes_in_the_loss(self):
        made = self.same(Net(), lambda module, batch: Loss(
            module(batch[0]).sum() / batch[0].shape[0] ** 0.5, batch[0].shape[0], module(batch[0])), outputs=True)
        self.assertEqual(made.outputs[:3], ["value", "weight", "output"])

    def test_a_branch_on_a_size_narrows_the_sizes(self):
        made = self.same(Net(), lambda module, batch: module(batch[0]).mean() * (2 if len(batch[0][0]) and
                         batch[0].size(0) > 4 else 3), sizes=(5, 9))
        self.assertEqual(made.dimensions["batch"][0], 5)

    def test_a_batch_changed_in_place(self):
        example = pairs()
        before = example[0].clone()

        def change(module, batch):
            batch[0].mul_(2)
            return cross_entropy(module, batch)

        self.same(Net(), change, example)
        self.assertTrue(torch.equal(before, example[0]))

    def test_double_precision(self):
        self.same(network().double(), example=(pairs()[0].double(), pairs()[1]))

    def test_convolutions_of_any_batch(self):
        """LibTorch chooses their kernels by the batch's size, in one thread at 16 samples: which changes no graph."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self.addCleanup(torch.set_num_threads, threads)
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 4))
        example = torch.randn(20, 1, 8, 8), torch.randint(0, 4, (20,))
        job = job_of(net, cross_entropy, example)
        for kind in ("step", "evaluate"):
            made = program_of(job, kind)
            self.assertLessEqual(made.dimensions["batch"][0], 2)
            self.assertEqual(made.dimensions["batch"][1], sizes.MOST)
            for size in (3, 17):
                fields = [each[:size] for each in job.fields]
                self.assertLess(largest_error(graph_numbers(job, made, fields), eager(job, made, fields)), 1e-6)

    def test_recomputation_keeps_the_numbers(self):
        torch.manual_seed(0)
        layers = [layer for _ in range(2) for layer in (nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.2))]
        for budget in (0.0, 0.5):
            self.assertTrue(self.same(nn.Sequential(*layers, nn.Linear(8, 4)), budget=budget, sizes=(5,)).recomputes)

    def test_fields_by_name_and_two_dimensions_that_vary(self):
        example = {"x": torch.randn(6, 5, 8), "mask": torch.rand(6, 5) > 0.3, "labels": pairs()[1]}
        job = job_of(Net(), lambda module, batch: F.cross_entropy(
            (module(batch["x"]) * batch["mask"].unsqueeze(2)).sum(1), batch["labels"]), example,
            {"x": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}, "labels": {0: "batch"}})
        made = program_of(job)
        self.assertEqual(made.shapes, {"x": ["batch", "length", 8], "mask": ["batch", "length"], "labels": ["batch"]})
        for name, size in (("batch", 9), ("length", 2), ("length", 11)):
            fields = check._resized(job, name, size)
            self.assertLess(largest_error(graph_numbers(job, made, fields), eager(job, made, fields)), 1e-5)


class Positions(nn.Module):
    """A classifier of tokens with a table of six positions."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.positions, self.last = nn.Embedding(11, 8), nn.Embedding(6, 8), linear(8, 11)

    def forward(self, tokens):
        return self.last(self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1])))


def next_token(module, batch):
    made = module(batch["tokens"])
    return Loss(F.cross_entropy(made[:, :-1].reshape(-1, 11), batch["labels"][:, 1:].reshape(-1)), None, made)


class Indices(unittest.TestCase):
    """Indices out of range are named, whatever they are computed from, and others are not."""

    def setUp(self):
        tokens = torch.randint(0, 11, (4, 5), generator=torch.Generator().manual_seed(1))
        names = {0: "batch", 1: "length"}
        self.tokens = tokens
        self.job = job_of(Positions(), next_token, {"tokens": tokens, "labels": tokens.clone()},
                          {"tokens": names, "labels": names})

    def failed(self, made, tokens, labels):
        """Operator and fields of the check that fails, None if all are right."""
        fields = [{"tokens": tokens, "labels": labels}[name] for name in made.fields]
        code = int(graph_numbers(self.job, made, fields)["index"])
        return (made.indices[code - 1].operator, made.indices[code - 1].fields) if code else None

    def test_each_check_of_a_step_and_of_an_evaluation(self):
        for kind in ("step", "evaluate"):
            made, tokens = program_of(self.job, kind), self.tokens
            self.assertIsNone(self.failed(made, tokens, tokens))
            self.assertIsNone(self.failed(made, tokens, torch.full_like(tokens, -100)))  # ignore_index
            self.assertEqual(self.failed(made, tokens.clone().fill_(11), tokens), ("embedding", ["tokens"]))
            self.assertEqual(self.failed(made, tokens - 11, tokens), ("embedding", ["tokens"]))
            self.assertEqual(self.failed(made, tokens, tokens.clone().fill_(11)), ("nll_loss_forward", ["labels"]))
            self.assertEqual(self.failed(made, tokens, tokens.clone().fill_(-1)), ("nll_loss_forward", ["labels"]))
            longer = torch.zeros(4, 7, dtype=torch.int64)
            self.assertEqual(self.failed(made, longer, longer), ("embedding", ["tokens"]))

    def test_a_prediction_has_the_checks_of_what_it_reads(self):
        made = program.prediction_of(self.job, trace.evaluation_of(self.job))
        self.assertEqual((made.fields, made.outputs), (["tokens"], ["output", "index"]))
        self.assertEqual([each.operator for each in made.indices], ["embedding", "embedding"])
        self.assertEqual(self.failed(made, self.tokens + 11, None), ("embedding", ["tokens"]))

    def test_indexing_takes_negative_numbers_and_gather_does_not(self):
        index = torch.tensor([-4, 3, 0, 1, 2, -1])

        def loss_of(pick):
            return lambda module, batch: pick(module(batch["x"]), batch["at"]).pow(2).mean()

        for pick, operator, low in ((lambda made, at: made.t()[at], "index", -5),
                                    (lambda made, at: made.gather(1, at[:, None]), "gather", -1),
                                    (lambda made, at: made.index_select(1, at), "index_select", -1),
                                    (lambda made, at: torch.zeros(6, 4).scatter(1, at[:, None], made[:, :1]), "scatter", -1)):
            example = {"x": pairs()[0], "at": index if low == -5 else index.abs() % 4}
            self.job = job_of(Net(), loss_of(pick), example)
            made = program_of(self.job)
            numbers = graph_numbers(self.job, made, self.job.fields)
            self.assertLess(largest_error(numbers, eager(self.job, made, self.job.fields)), 1e-5)
            for wrong in (low, 4):
                code = int(graph_numbers(self.job, made, [example["x"], torch.full((6,), wrong)])["index"])
                self.assertEqual(made.indices[code - 1].operator, operator)


class Refused(unittest.TestCase):
    """What cannot be right is refused with a sentence, and the module is as before."""

    def refused(self, words, module=None, loss=cross_entropy, example=None, **given):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(ExportError) as raised:
                export_step(module or Net(), loss, example or pairs(), os.path.join(folder, "package"),
                            progress=False, **given)
            self.assertEqual(os.listdir(folder), [])
        self.assertIn(words, str(raised.exception))
        return raised.exception

    def test_sizes_that_are_fixed(self):
        for size in (lambda batch: int(batch[0].shape[0]), lambda batch: len(batch[0]),
                     lambda batch: 3 if batch[0].shape[0] % 2 else 2):
            error = self.refused("fixes the size 'batch'", loss=lambda module, batch: module(batch[0]).sum() / size(batch))
            self.assertIn("exporter_test.py", error.where)

    def test_state_in_python(self):
        def count(module, x):
            module.calls += 1
            return module.layer(x)

        module = Net(count, calls=0)
        self.refused("keeps state in Python", module)
        self.assertEqual(module.calls, 0)
        before = random.getstate()
        self.refused("keeps state in Python", loss=lambda module, batch: cross_entropy(module, batch) * random.random())
        self.assertEqual(before, random.getstate())

        def keep(module, x):
            module.first = x.mean(0) if module.first is None else module.first
            return module.layer(x - module.first)

        module = Net(keep, first=None)
        self.refused("keeps state in Python", module)
        self.assertIsNone(module.first)

    def test_tensors_of_nobody(self):
        weight, other = torch.rand(4), linear(4, 4)
        self.refused("belongs to neither", loss=lambda module, batch: F.cross_entropy(
            module(batch[0]), batch[1], weight=weight))
        error = self.refused("belongs to neither", loss=lambda module, batch: cross_entropy(
            lambda x: other(module(x)), batch))
        self.assertIn("exporter_test.py", error.where)

    def test_changes_that_nobody_would_see(self):
        def transient(module, x):
            module.scale += 1
            return module.layer(x) * module.scale

        module = Net(transient)
        module.register_buffer("scale", torch.ones(4), persistent=False)
        self.refused("changes its tensor 'scale'", module)
        self.assertTrue(torch.equal(module.scale, torch.ones(4)))

        def clamp(module, x):
            with torch.no_grad():
                module.layer.weight.clamp_(-0.1, 0.1)
            return module.layer(x)

        self.refused("changes its parameter 'layer.weight'", Net(clamp))

        def data(module, x):
            module.layer.weight.data = module.layer.weight.data * 2
            return module.layer(x)

        self.refused("replaces its parameter 'layer.weight'", Net(data))

    def test_choices_by_values(self):
        error = self.refused("decides by the values", Net(
            lambda module, x: module.layer(x) if x.sum() > 0 else -module.layer(x)))
        self.assertIn("exporter_test.py", error.where)

    def test_random_numbers_that_are_drawn_again(self):
        def again(module, x):
            return checkpoint(lambda x: torch.dropout(module.layer(x), 0.5, True), x, use_reentrant=False)

        self.refused("drawn in the backward pass", Net(again), compare=False)

    def test_shared_memory(self):
        module = nn.Module()
        module.first = nn.Parameter(torch.randn(4, 8))
        module.second = nn.Parameter(module.first.data.t())
        self.refused("share memory", module, lambda module, batch: (batch[0] @ module.second).sum())

    def test_losses(self):
        self.refused("no parameter", loss=lambda module, batch: module(batch[0]).detach().sum())
        self.refused("torch.int64", loss=lambda module, batch: (module(batch[0]) > 0).sum())
        self.refused("not one number", loss=lambda module, batch: module(batch[0]).sum(1))
        self.refused("returned tuple", loss=lambda module, batch: (cross_entropy(module, batch), 1))
        self.refused("Loss.weight", loss=lambda module, batch: Loss(cross_entropy(module, batch), batch[1]))

    def test_batches(self):
        self.refused("size 1", example=(torch.randn(1, 8), torch.zeros(1, dtype=torch.int64)))
        self.refused("is empty", example=(torch.randn(0, 8), torch.zeros(0, dtype=torch.int64)))
        self.refused("is a str", example={"x": torch.randn(2, 8), "name": "a"})
        self.refused("is a tuple of 3", example=(*pairs(), torch.ones(6)))
        self.refused("'batch' is 6 in 'data' and 5 in 'target'", example=(pairs()[0], pairs()[1][:5]))
        self.refused("same shape", shapes=[pairs(9)])

    def test_modules(self):
        self.refused("meta", nn.Linear(8, 4, device="meta"))
        self.refused("nothing to train", linear(8, 4).requires_grad_(False))
        self.refused("TorchScript", torch.jit.script(linear(8, 4)))
        self.refused("dropout between its layers", nn.GRU(8, 4, num_layers=2, dropout=0.5), compare=False)
        self.refused("no shape yet", nn.Sequential(nn.LazyLinear(4), linear(4, 4)))

    def test_arguments(self):
        self.refused("no instruction set", march="x86-64-v9")
        self.refused("memory_budget is 2", memory_budget=2)
        self.refused("no field 'x'", dynamic={"x": {0: "batch"}})
        self.refused("autocast is torch.int8", autocast=torch.int8)
        with unittest.mock.patch.dict(os.environ, {"CXX": "/no/compiler"}):
            self.refused("no compiler '/no/compiler'")

    def test_a_folder_with_other_things(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "notes.txt"), "w"):
                pass
            with self.assertRaisesRegex(ExportError, "something else than a package"):
                export_step(Net(), cross_entropy, pairs(), folder, progress=False)
            self.assertEqual(os.listdir(folder), ["notes.txt"])

    def test_an_error_leaves_no_files_and_the_module_as_it_was(self):
        for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):
            module = network().eval()
            module[0].weight.grad = gradient = torch.ones(16, 8)
            module[4].bias.requires_grad_(False)
            before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
            generator = torch.get_rng_state()
            with tempfile.TemporaryDirectory() as folder:
                with unittest.mock.patch.object(export, "compile_program", side_effect=error), \
                        self.assertRaises(type(error)):
                    export_step(module, cross_entropy, pairs(), os.path.join(folder, "package"), progress=False)
                self.assertEqual(os.listdir(folder), [])
            self.assertTrue(all(torch.equal(before[name], now) for name, now in module.state_dict().items()))
            self.assertIs(module[0].weight.grad, gradient)
            self.assertFalse(module[4].bias.requires_grad or module.training)
            self.assertTrue(torch.equal(generator, torch.get_rng_state()))


class Packaged(unittest.TestCase):
    """A package on disk, with compiled code."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "package")
        cls.module = network()
        export_step(cls.module, lambda module, batch: Loss(
            cross_entropy(module, batch), (batch[1] >= 0).sum(), module(batch[0])), pairs(), cls.path, progress=False)
        with open(os.path.join(cls.path, "manifest.json")) as file:
            cls.manifest = json.load(file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_manifest_describes_the_files(self):
        self.assertEqual([each["kind"] for each in self.manifest["programs"]], ["step", "evaluate", "predict"])
        for entry in [*self.manifest["programs"], self.manifest["weights"]]:
            with open(os.path.join(self.path, entry["file"]), "rb") as file:
                body = file.read()
            self.assertEqual((len(body), zlib.crc32(body)), (entry["bytes"], entry["crc32"]))
        self.assertEqual([each["name"] for each in self.manifest["programs"][2]["fields"]], ["data"])
        self.assertEqual(os.listdir(self.folder.name), ["package"])

    def test_the_code_computes_the_step_whatever_its_outputs_became(self):
        entry = self.manifest["programs"][0]
        run = load.load(os.path.join(self.path, entry["file"]))
        inputs = [*[tensor.detach() for tensor in self.module.parameters()], *self.module.buffers(), *pairs()]
        torch.manual_seed(3)
        first = run(*inputs, torch.ones(()))
        copies = [tensor.clone() for tensor in first]
        self.assertEqual(len({tensor.untyped_storage().data_ptr() for tensor in [*first, *inputs]}),
                         len(first) + len(inputs))
        for tensor in first:
            tensor.fill_(7)
        torch.manual_seed(3)
        for again, copy in zip(run(*inputs, torch.ones(())), copies):
            self.assertTrue(torch.equal(again, copy))
        torch.manual_seed(4)
        self.assertFalse(torch.equal(run(*inputs, torch.ones(()))[0], copies[0]))  # dropout draws other numbers
        torch.manual_seed(3)
        doubled = dict(zip(entry["outputs"], run(*inputs, torch.tensor(2.0))))
        for name, copy in zip(entry["outputs"], copies):
            if name.startswith("gradient:"):
                torch.testing.assert_close(doubled[name], 2 * copy)

    @unittest.skipUnless(machine.DEFAULT == "x86-64-v3", "AVX2 is of x86-64")
    def test_the_code_has_no_instruction_of_avx_512(self):
        text = subprocess.run(["objdump", "-d", os.path.join(self.path, "step-0.so")], capture_output=True,
                              text=True, check=True).stdout
        self.assertIn("%ymm", text)
        self.assertNotRegex(text, r"%zmm|%k[1-7]\b|%ymm(1[6-9]|2\d|3[01])\b")

    def test_what_differs_is_found(self):
        job = job_of(self.module, cross_entropy, pairs())
        made = program_of(job)
        wrong = {name: tensor * 1.01 for name, tensor in graph_numbers(job, made, job.fields).items()}
        with unittest.mock.patch.object(check, "load", return_value=lambda *_: [*wrong.values()]), \
                self.assertRaisesRegex(ExportError, "something else than PyTorch"):
            check.compare(job, made, "step.so")


class Command(unittest.TestCase):
    def test_errors_are_one_sentence_and_status_2(self):
        for number, (source, text, words) in enumerate((
                ("other.py", "", "no such file"), ("model.py:none", "", "no function 'none'"),
                ("model.py", "def job(): return {}", "does not return module"),
                ("model.py", "def job(): raise ValueError('no data')", "no data"))):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "model.py"), "w") as file:
                    file.write(text)
                arguments = ["frugal-step", os.path.join(folder, source), os.path.join(folder, "out")]
                said = io.StringIO()
                with unittest.mock.patch.object(sys, "argv", arguments), contextlib.redirect_stderr(said), \
                        unittest.mock.patch.object(sys, "path", [*sys.path]):
                    self.assertEqual(command.main(), 2)
                self.assertIn(words, said.getvalue())
                self.assertEqual(os.listdir(folder), ["model.py"])


if __name__ == "__main__":
    unittest.main()
