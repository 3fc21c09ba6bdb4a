#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how frugal reads and writes models with Python's safetensors and tokenizers: weights.py PROGRAM

PROGRAM is interop_weights, built from weights.cpp in this folder. Python writes files, frugal loads them
and saves what it has loaded, and Python compares the bits; of tokenizers it compares the ids. Needs the
packages of requirements/data.txt. Files of torch.save are in tests/reference/torch_files.json.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# Files of this folder have the names of packages, and Python looks in the folder first.
here = str(Path(__file__).resolve().parent)
sys.path[:] = [place for place in sys.path if str(Path(place or ".").resolve()) != here]
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

program = ""
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8",
          "bool": "BOOL"}  # fmt: skip


def ask(*questions: dict) -> list[dict]:
    text = "".join(json.dumps(each) + "\n" for each in questions)
    done = subprocess.run([program], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"the program failed with {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def spec(tensors: dict) -> dict:
    return {name: [DTYPES[str(each.dtype)], list(each.shape)] for name, each in tensors.items()}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.chance = np.random.default_rng(3)

    def load(self, path: Path, module: dict, **more) -> tuple[dict, dict]:
        """What frugal says of loading a file into a module of these tensors, and what it has then."""
        out = self.folder / "out"
        answer = ask({"load": str(path), "module": module, "save": str(out), **more})[0]
        if "error" in answer:
            return answer, {}
        return answer, load_file(out / "model.safetensors")

    def assert_same(self, ours: dict, theirs: dict):
        self.assertEqual(set(ours), set(theirs))
        for name, each in theirs.items():
            self.assertEqual((ours[name].dtype, ours[name].shape), (each.dtype, each.shape), name)
            self.assertEqual(ours[name].tobytes(), each.tobytes(), name)

    def floats(self, *shape: int) -> np.ndarray:
        return self.chance.standard_normal(shape).astype(np.float32)

    def model(self) -> dict:
        """Two layers between an embedding and a head, and a counter."""
        tensors = {"embedding.weight": self.floats(11, 8), "head.weight": self.floats(3, 8), "head.bias": self.floats(3),
                   "norm.num_batches_tracked": np.array(7), "mask": np.array([True, False])}  # fmt: skip
        for layer in range(2):
            for part, shape in (("attention", (24, 8)), ("output", (8, 8))):
                tensors[f"layers.{layer}.{part}.weight"] = self.floats(*shape)
                tensors[f"layers.{layer}.{part}.bias"] = self.floats(shape[0])
        return tensors


class Safetensors(Folder):
    def shards(self, tensors: dict, count: int) -> Path:
        """A folder as Hugging Face writes it."""
        folder = self.folder / "model"
        folder.mkdir()
        names, where = sorted(tensors), {}
        for number in range(count):
            file = f"model-{number + 1:05}-of-{count:05}.safetensors"
            part = {name: tensors[name] for name in names[number::count]}
            save_file(part, folder / file, metadata={"format": "pt"})
            where.update(dict.fromkeys(part, file))
        size = sum(each.nbytes for each in tensors.values())
        index = {"metadata": {"total_size": size}, "weight_map": where}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
        return folder

    def test_a_sharded_folder_is_loaded(self):
        tensors = self.model()
        answer, ours = self.load(self.shards(tensors, 3), spec(tensors))
        self.assertEqual(set(answer["matched"]), set(tensors))
        self.assertEqual(answer["missing"] + answer["unexpected"] + answer["misshapen"], [])
        self.assert_same(ours, tensors)

    def test_shards_that_frugal_writes_are_those_of_its_index(self):
        tensors = self.model()
        out = self.folder / "out"
        path = self.shards(tensors, 2)
        answer = ask({"load": str(path), "module": spec(tensors), "save": str(out), "shard_bytes": 1000})[0]
        index = json.loads((out / "model.safetensors.index.json").read_text())
        size = sum(each.nbytes for each in tensors.values())
        self.assertEqual(index["metadata"], {"total_size": size})
        self.assertEqual(answer["total_size"], size)
        files = sorted(set(index["weight_map"].values()))
        self.assertGreater(len(files), 2)
        self.assertEqual(files, sorted(each.name for each in out.glob("*.safetensors")))
        found = {}
        for file in files:
            part = load_file(out / file)
            self.assertEqual({name for name, at in index["weight_map"].items() if at == file}, set(part))
            with safe_open(out / file, framework="np") as opened:
                self.assertEqual(opened.metadata(), {"format": "pt"})
            self.assertLessEqual(sum(each.nbytes for each in part.values()), 1000)
            found.update(part)
        self.assert_same(found, tensors)

    def test_types_are_converted_as_in_python(self):
        tensors = {name: each for name, each in self.model().items() if each.dtype == np.float32}
        types = (np.float64, np.float32, np.float16)
        for there in types:
            saved = {name: each.astype(there) for name, each in tensors.items()}
            save_file(saved, self.folder / "w.safetensors")
            for here in types:
                expected = {name: each.astype(here) for name, each in saved.items()}
                _, ours = self.load(self.folder / "w.safetensors", spec(expected))
                self.assert_same(ours, expected)

    def test_transposes_and_new_rows_are_those_of_python(self):
        tensors = {"h.0.attn.weight": self.floats(4, 12), "wte.weight": self.floats(9, 4), "lm.bias": self.floats(9)}
        save_file(tensors, self.folder / "w.safetensors")
        module = {"layers.0.attn.weight": ["F32", [12, 4]], "wte.weight": ["F32", [12, 4]], "lm.bias": ["F32", [12]]}
        rules = {"rename": [["h.*.attn.weight", "layers.*.attn.weight"]], "transpose": ["*.attn.weight"],
                 "resize": ["wte.weight", "lm.bias"]}  # fmt: skip
        answer, ours = self.load(self.folder / "w.safetensors", module, rules=rules)
        self.assertEqual(set(answer["resized"]), {"wte.weight", "lm.bias"})
        np.testing.assert_array_equal(ours["layers.0.attn.weight"], tensors["h.0.attn.weight"].T)
        for name in ("wte.weight", "lm.bias"):
            np.testing.assert_array_equal(ours[name][:9], tensors[name])
            mean = tensors[name].astype(np.float64).mean(0).astype(np.float32)
            for row in range(9, 12):
                np.testing.assert_allclose(ours[name][row], mean, rtol=1e-6)

    def test_a_teachers_layers_become_a_students(self):
        teacher = self.model()
        save_file(teacher, self.folder / "w.safetensors")
        expected = {"embedding.weight": teacher["embedding.weight"]}
        for name, each in teacher.items():
            if name.startswith("layers.1."):
                expected[name.replace("layers.1.", "block.")] = each
        rules = {"rename": [["layers.1.*", "block.*"]], "allow_unexpected": ["layers.0.*", "head.*", "norm.*", "mask"]}
        _, found = self.load(self.folder / "w.safetensors", spec(expected), rules=rules)
        self.assert_same(found, expected)

    def test_tied_weights(self):
        weight = self.floats(5, 3)
        module = {"embedding.weight": ["F32", [5, 3]], "head.weight": ["F32", [5, 3], "embedding.weight"]}
        for names in (["embedding.weight"], ["head.weight"], list(module)):
            save_file({name: weight.copy() for name in names}, self.folder / "w.safetensors")
            answer, ours = self.load(self.folder / "w.safetensors", module)
            self.assertEqual(set(answer["matched"]), set(module))
            self.assert_same(ours, dict.fromkeys(module, weight))


class Tokenizers(Folder):
    @classmethod
    def setUpClass(cls):
        about = importlib.util.spec_from_file_location("texts_of_wordpiece", Path(here) / "wordpiece.py")
        texts = importlib.util.module_from_spec(about)
        about.loader.exec_module(texts)
        cls.special = texts.SPECIAL
        real = texts.real()
        cls.texts = [line.encode() for line in real[::20]] + texts.generated(600)
        learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        learner.normalizer = normalizers.BertNormalizer()
        learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        learner.train_from_iterator(
            real, trainers.WordPieceTrainer(vocab_size=4000, special_tokens=cls.special, show_progress=False))  # fmt: skip
        cls.vocabulary = learner.get_vocab()

    def made(self, lower=True, strip=None, clean=True, chinese=True, template=True, special=None) -> Tokenizer:
        """A tokenizer as the BERT family has it; `special` may lack some."""
        made = Tokenizer(models.WordPiece(self.vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        made.normalizer = normalizers.BertNormalizer(clean, chinese, strip, lower)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        separator, start = self.vocabulary["[SEP]"], self.vocabulary["[CLS]"]
        made.post_processor = (
            processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                          special_tokens=[("[CLS]", start), ("[SEP]", separator)])
            if template else processors.BertProcessing(("[SEP]", separator), ("[CLS]", start))
        )  # fmt: skip
        made.add_special_tokens(self.special if special is None else special)
        return made

    def compare(self, tokenizer: Tokenizer, texts: list) -> int:
        tokenizer.save(str(self.folder / "tokenizer.json"))
        hexed = [[each.hex() for each in text] if isinstance(text, tuple) else text.hex() for text in texts]
        answer = ask({"tokenizer": str(self.folder), "texts": hexed})[0]
        self.assertNotIn("error", answer)
        tokenizer.no_padding()
        for text, ours in zip(texts, answer["ids"], strict=True):
            parts = text if isinstance(text, tuple) else (text,)
            theirs = tokenizer.encode(*(part.decode("utf-8", "replace") for part in parts)).ids
            self.assertEqual(ours, theirs, text)
        return sum(map(len, answer["ids"]))

    def with_tokens(self, tokens: list[str]) -> list[bytes]:
        """The texts, with tokens put into them: between words, in words, one after the other."""
        chance, texts = random.Random(9), []
        for text in self.texts:
            parts = text.split(b" ")
            for _ in range(chance.randrange(1, 4)):
                token = chance.choice(tokens).encode()
                token = chance.choice((token, token.upper(), token.lower(), token + token, b" " + token + b" "))
                at = chance.randrange(len(parts) + 1)
                parts[at:at] = [token]
            texts.append(chance.choice((b" ", b"")).join(parts))
        return texts

    def test_awkward_texts_with_special_tokens_in_them(self):
        texts = self.with_tokens([*self.special, "[SEP", "SEP]", "[[SEP]]", "[CLS][SEP]"])
        for setting in ({}, {"lower": False}, {"strip": False}, {"lower": False, "strip": True}, {"clean": False},
                        {"chinese": False}, {"template": False}, {"special": ["[SEP]"]}, {"special": []}):  # fmt: skip
            with self.subTest(**setting):
                self.assertGreater(self.compare(self.made(**setting), texts), 20_000)

    def test_added_tokens(self):
        words = ["covid", "New Word", "the", "h\u00e9", "\u4e2d", "A\u0308b", "<tab\t>", "\u0130x", "<e1>", "e1>"]
        for setting in ({}, {"lower": False}, {"strip": False}, {"chinese": False}, {"clean": False}):
            tokenizer = self.made(**setting)
            tokenizer.add_tokens([AddedToken(word, normalized=True) for word in words[:7]])
            tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words[7:8]])
            tokenizer.add_special_tokens([AddedToken(word, lstrip=True, rstrip=True) for word in words[8:]])
            with self.subTest(**setting):
                self.compare(tokenizer, self.with_tokens([*words, *self.special]))

    def test_truncation_and_pairs(self):
        pairs = list(zip(self.texts[::3], self.texts[1::3]))
        for most in (3, 8, 31, 512):
            tokenizer = self.made()
            tokenizer.enable_truncation(most)
            tokenizer.enable_padding(length=16)
            self.compare(tokenizer, self.texts[::5] + pairs[::5])

    def test_what_is_not_known_is_refused(self):
        def whole_words(made: Tokenizer):
            made.add_tokens([AddedToken("un", single_word=True)])

        def changed(**parts):
            def change(made: Tokenizer):
                for name, part in parts.items():
                    setattr(made, name, part)

            return change

        for change, why in (
            (whole_words, "'un' is only a token as a word of its own"),
            (changed(normalizer=normalizers.NFKC()), "it is NFKC, and only BertNormalizer is known"),
            (changed(pre_tokenizer=pre_tokenizers.Whitespace()), "it is Whitespace"),
            (changed(model=models.BPE()), "it is BPE, and only WordPiece is known"),
            (changed(post_processor=processors.ByteLevel()), "it is ByteLevel"),
            (lambda made: made.enable_truncation(9, direction="left"), "texts are not cut at their end"),
            (lambda made: made.enable_truncation(9, strategy="only_first"), "its strategy is not LongestFirst"),
        ):
            tokenizer = self.made()
            change(tokenizer)
            tokenizer.save(str(self.folder / "tokenizer.json"))
            self.assertIn(why, ask({"tokenizer": str(self.folder), "texts": []})[0]["error"])


class Config(Folder):
    def test_the_values_of_a_file(self):
        values = {"hidden_size": 384, "layer_norm_eps": 1e-12, "hidden_act": "g\u00e9lu", "architectures": ["BertModel"]}
        (self.folder / "config.json").write_text(json.dumps(values, indent=2))
        self.assertEqual(ask({"config": str(self.folder)})[0], {**values, "missing": -1})


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
