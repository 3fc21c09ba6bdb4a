#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's WordPiece with Python's `tokenizers`: wordpiece.py PROGRAM

PROGRAM is interop_wordpiece, built from wordpiece.cpp in this folder. Both encode the same lines of the
King James Bible and of the GCIDE dictionary (Debian's bible-kjv, bible-kjv-text and dict-gcide), and
lines with accents, Chinese, emoji, control characters and bytes that are no UTF-8, with a vocabulary
that `tokenizers` trains on them. Needs the packages of requirements/data.txt.
"""

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the trainer counts words in the order of the lines

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
program = ""

# Characters whose properties differ: the tables of `tokenizers` are of Unicode 8, utf8proc's of 15, and
# these four changed their category between them.
CHANGED = {0x1734, 0x11938, 0x166D, 0x111C9}
# Marks that accent stripping keeps and canonical order moves. `tokenizers` counts offsets by place, so
# those of what is moved, and of what is dropped among it, are another character's.
MOVED = {chr(c) for c in [0x302E, 0x302F, *range(0x1D15E, 0x1D173)]}


def bible() -> list[str]:
    done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True,
                          check=True)  # fmt: skip
    return [line for line in done.stdout.decode().splitlines() if line.strip()]


def dictionary() -> list[str]:
    text = gzip.open("/usr/share/dictd/gcide.dict.dz").read().decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.strip()]


def real() -> list[str]:
    """10,000 lines, from all over both texts."""
    lines = []
    for text in (bible(), dictionary()):
        lines += text[:: len(text) // 5000][:5000]
    assert len(lines) == 10_000
    return lines


ALPHABETS = [
    range(0x20, 0x7F), range(0x20, 0x7F), range(0x61, 0x7B), range(0xC0, 0x250), range(0x370, 0x400),
    range(0x400, 0x500), range(0x300, 0x370), range(0x5D0, 0x5EB), range(0x621, 0x660), range(0x900, 0x980),
    range(0xE00, 0xE5C), range(0x1E00, 0x2000), range(0x2000, 0x2070), range(0x3000, 0x3100),
    range(0x4E00, 0x4F00), range(0x20000, 0x20020), range(0xAC00, 0xAD00), range(0xF900, 0xFA00),
    range(0xFF00, 0xFFF0), range(0x1F300, 0x1F650), range(0x1D160, 0x1D170), range(0, 0x20), range(0x7F, 0xA1),
    range(0xFFF9, 0xFFFE), range(0xE000, 0xE010), range(0x1100, 0x1200), range(0x2F800, 0x2F820),
]  # fmt: skip


def generated(count: int) -> list[bytes]:
    """Lines in mixed scripts; a third of them with bytes that are no UTF-8."""
    chance, lines = random.Random(7), []
    for number in range(count):
        words = []
        for _ in range(chance.randrange(1, 12)):
            alphabet = chance.choice(ALPHABETS)
            words.append("".join(chr(chance.choice(alphabet)) for _ in range(chance.choice((1, 2, 3, 5, 9, 120)))))
        line = bytearray(chance.choice(("", " ", "\u0301")).join(words).encode())
        for _ in range(chance.randrange(1, 6) if number % 3 == 0 else 0):
            at = chance.randrange(len(line) + 1)
            line[at:at] = bytes(chance.randrange(0x80, 0x100) for _ in range(chance.randrange(1, 4)))
        lines.append(bytes(line))
    return lines


def byte_offsets(text: bytes) -> list[int]:
    """Where each character of the decoded text begins in the bytes, and the end."""
    offsets, at = [], 0
    while at < len(text):
        offsets.append(at)
        for size in (1, 2, 3, 4):
            try:
                text[at : at + size].decode()
                break
            except UnicodeDecodeError as error:
                if error.reason != "unexpected end of data" or at + size >= len(text):
                    size = error.end - error.start
                    break
        at += size
    assert len(offsets) == len(text.decode("utf-8", "replace"))
    return [*offsets, len(text)]


class Wordpiece(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.vocabulary = Path(cls.folder.name) / "vocab.txt"
        cls.real = real()
        cls.generated = generated(3000)
        learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        learner.normalizer = normalizers.BertNormalizer()
        learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        text = [line.decode("utf-8", "replace") for line in cls.generated[:1000]]
        learner.train_from_iterator(
            cls.real + text,
            trainers.WordPieceTrainer(vocab_size=8000, special_tokens=SPECIAL, show_progress=False),
        )
        words = sorted(learner.get_vocab().items(), key=lambda item: item[1])
        # Capitals and accents for the cased settings, which the uncased trainer has not seen.
        tokens = [word for word, _ in words]
        tokens += [each for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ\u00e9\u00c9\u0130\u00df" for each in (c, "##" + c)
                   if each not in dict(words)]  # fmt: skip
        cls.vocabulary.write_bytes("".join(token + "\n" for token in tokens).encode())
        cls.tokens = {token: number for number, token in enumerate(tokens)}

    def python(self, lower=True, strip=None, clean=True, chinese=True, special=False) -> Tokenizer:
        made = Tokenizer(models.WordPiece(self.tokens, unk_token="[UNK]", max_input_chars_per_word=100))
        made.normalizer = normalizers.BertNormalizer(clean, chinese, strip, lower)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        made.post_processor = processors.BertProcessing(("[SEP]", self.tokens["[SEP]"]), ("[CLS]", self.tokens["[CLS]"]))
        if special:
            made.add_special_tokens(SPECIAL)
        return made

    def frugal(self, questions: list[dict], lower=True, strip=None, clean=True, chinese=True, special=False) -> list:
        setting = {"lower": lower, "strip": strip, "clean": clean, "chinese": chinese, "special": special}
        text = "".join(json.dumps(each) + "\n" for each in [setting, *questions])
        done = subprocess.run([program, str(self.vocabulary)], input=text, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def compare(self, texts: list[bytes], **settings) -> int:
        """Compares ids, types and offsets of every text; how many tokens there were."""
        python, tokens = self.python(**settings), 0
        answers = self.frugal([{"text": text.hex()} for text in texts], **settings)
        self.assertEqual(len(answers), len(texts))
        for text, ours in zip(texts, answers):
            theirs = python.encode(text.decode("utf-8", "replace"))
            self.assertEqual(ours["ids"], theirs.ids, text)
            self.assertEqual(ours["types"], theirs.type_ids, text)
            if MOVED.intersection(text.decode("utf-8", "replace")):
                continue
            at = byte_offsets(text)
            self.assertEqual(ours["spans"], [[at[begin], at[end]] if (begin, end) != (0, 0) else [0, 0]
                                             for begin, end in theirs.offsets], text)  # fmt: skip
            tokens += len(theirs.ids)
        return tokens

    def test_ten_thousand_lines_of_real_text_have_the_ids_and_offsets_of_python(self):
        tokens = self.compare([line.encode() for line in self.real])
        self.assertGreater(tokens, 100_000)

    def test_other_scripts_and_invalid_bytes_have_the_ids_and_offsets_of_python(self):
        self.assertGreater(self.compare(self.generated), 20_000)

    def test_every_setting_has_the_ids_and_offsets_of_python(self):
        texts = self.generated[1::2] + [line.encode() for line in self.real[::50]]
        for setting in ({"lower": False}, {"strip": False}, {"lower": False, "strip": True}, {"clean": False},
                        {"chinese": False}, {"lower": False, "clean": False, "chinese": False}):  # fmt: skip
            with self.subTest(**setting):
                self.compare(texts, **setting)

    def test_special_tokens_in_a_text_are_those_of_python_if_asked_for(self):
        chance, texts = random.Random(3), []
        for line in self.real[::20]:
            words = line.split(" ")
            words.insert(chance.randrange(len(words) + 1), chance.choice([*SPECIAL, "[cls]", "[SEP", "x[SEP]y"]))
            texts.append(" ".join(words).encode())
        self.compare(texts, special=True)
        self.compare(texts, special=False)

    def test_pairs_are_joined_and_truncated_as_in_python(self):
        chance, python = random.Random(5), self.python()
        questions = []
        for _ in range(600):
            first, second = (" ".join(chance.choice(self.real).split()[: chance.randrange(12)]) for _ in "ab")
            questions.append({"text": first.encode().hex(), "second": second.encode().hex(),
                              "most": chance.randrange(3, 30), "texts": (first, second)})  # fmt: skip
        for question, ours in zip(questions, self.frugal(questions)):
            python.enable_truncation(question["most"], strategy="longest_first")
            theirs = python.encode(*question["texts"])
            self.assertEqual(ours["ids"], theirs.ids, question)
            self.assertEqual(ours["types"], theirs.type_ids, question)

    def test_one_text_is_truncated_as_in_python(self):
        python = self.python()
        texts = self.real[::100]
        for most in (2, 3, 7, 512):
            python.enable_truncation(most)
            answers = self.frugal([{"text": text.encode().hex(), "most": most} for text in texts])
            for text, ours in zip(texts, answers):
                self.assertEqual(ours["ids"], python.encode(text).ids, text)

    def test_every_character_is_treated_as_in_python_unless_it_is_younger_than_its_tables(self):
        # A word of the character alone, between letters: normalized and cut by both.
        # No character is assigned in what is left out, but for private ones. Of blocks of thousands that are alike
        # (ideographs, syllables of Hangul, planes that are nearly empty) every seventh is enough.
        planes = [*range(0x32000), *range(0xE0000, 0xE0200), 0xF0000, 0x10FFFD]
        alike = [range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0x17000, 0x1AFF0), range(0x20000, 0x32000)]
        characters = [c for c in planes if not 0xD800 <= c < 0xE000
                      and (c % 7 == 0 or not any(c in block for block in alike))]  # fmt: skip
        python = self.python()
        answers = self.frugal([{"text": f"a{chr(c)}b".encode().hex()} for c in characters])
        different = {c for c, ours in zip(characters, answers) if ours["ids"] != python.encode(f"a{chr(c)}b").ids}
        print(f"\n{len(different)} characters differ", file=sys.stderr)
        # Assigned since Unicode 8: marks, format characters, punctuation and capitals of later versions.
        self.assertLess(len(different), 1000)
        blocks = [range(0x61D), range(0x1E00, 0x2070), range(0x20A0, 0x2E00), range(0x2E80, 0xA640), range(0xAC00, 0xD800),
                  range(0xE000, 0xFE00), range(0xFE30, 0x10000), range(0x1F000, 0x1FB00),
                  range(0x20000, 0x30000)]  # fmt: skip
        self.assertEqual([hex(c) for c in sorted(different - CHANGED) if any(c in block for block in blocks)], [])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
