#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's Avro with fastavro: avro.py PROGRAM

PROGRAM is interop_avro, built from avro.cpp in this folder. Each reads what the other writes, and damaged
files end in an error, not in a crash. Needs the packages of requirements/data.txt.
"""

import random
import sys
import tempfile
import unittest
from pathlib import Path

import fastavro
import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
from support.rows import cell, rows, run  # noqa: E402

program = ""
CODECS = ("null", "deflate", "zstandard")
N = 60
LISTS = {"ints": "int32", "longs": "int64", "floats": "float32", "doubles": "float64", "flags": "bool"}

SCHEMA = fastavro.parse_schema({"type": "record", "name": "sample", "namespace": "frugal.test", "fields": [
    {"name": "int", "type": "int"},
    {"name": "long", "type": "long"},
    {"name": "float", "type": "float"},
    {"name": "double", "type": ["null", "double"]},
    {"name": "boolean", "type": "boolean"},
    {"name": "string", "type": ["string", "null"]},
    {"name": "bytes", "type": "bytes"},
    {"name": "any", "type": ["null", "long", "string", "boolean", "double"]},
    {"name": "fixed", "type": {"type": "fixed", "name": "four", "size": 4}},
    {"name": "enum", "type": {"type": "enum", "name": "color", "symbols": ["RED", "GREEN", "BLUE"]}},
    {"name": "again", "type": "color"},
    {"name": "ints", "type": {"type": "array", "items": "int"}},
    {"name": "longs", "type": {"type": "array", "items": "long"}},
    {"name": "floats", "type": {"type": "array", "items": "float"}},
    {"name": "doubles", "type": {"type": "array", "items": "double"}},
    {"name": "flags", "type": {"type": "array", "items": "boolean"}},
    {"name": "words", "type": {"type": "array", "items": "string"}},
    {"name": "when", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "nothing", "type": "null"},
    {"name": "box", "type": {"type": "record", "name": "box", "fields": [
        {"name": "width", "type": "long"}, {"name": "color", "type": "color"}]}},
]})  # fmt: skip


def samples() -> list[dict]:
    chance = random.Random(3)
    made = []
    for i in range(N):
        few = range(chance.randrange(5))
        made.append({
            "int": chance.choice((0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31), i)),
            "long": chance.choice((2**63 - 1, -(2**63), 2**40, chance.getrandbits(62))),
            "float": float(np.float32(chance.gauss(0, 100))), "double": chance.choice((None, chance.gauss(0, 1))),
            "boolean": bool(i % 3), "string": chance.choice((None, "", f"\u00e9{i}")), "bytes": chance.randbytes(i % 7),
            "any": (None, i, f"s{i}", True, i / 3)[i % 5], "fixed": chance.randbytes(4),
            "enum": ("RED", "GREEN", "BLUE")[i % 3], "again": "BLUE",
            "ints": [chance.randrange(-(2**31), 2**31) for _ in few], "longs": [chance.getrandbits(60) for _ in few],
            "floats": [float(np.float32(chance.random())) for _ in few], "doubles": [chance.random() for _ in few],
            "flags": [chance.random() < 0.5 for _ in few], "words": [f"w{k}" * k for k in few],
            "when": 10**15 + i, "nothing": None, "box": {"width": i * i, "color": "GREEN"}})  # fmt: skip
    return made


def expected(records: list[dict]) -> list[dict[str, str]]:
    flat = [{**{k: v for k, v in each.items() if k != "box"},
             **{f"box.{k}": v for k, v in each["box"].items()}} for each in records]  # fmt: skip
    return [{name: cell(value, LISTS.get(name)) for name, value in each.items()} for each in flat]


def write(path, records, codec, **more):
    with open(path, "wb") as out:
        # The time stays a number, which is what frugal gives.
        fastavro.writer(out, SCHEMA, records, codec=codec, sync_interval=500, **more)


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_frugal_reads_every_type_and_codec_of_fastavro(self):
        records = samples()
        for codec in CODECS:
            write(self.folder / "file.avro", records, codec)
            self.assertEqual(rows(run(program, "rows", self.folder / "file.avro")), expected(records))

    def test_frugal_reads_the_columns_that_are_asked_for(self):
        records = samples()
        write(self.folder / "file.avro", records, "deflate")
        read = rows(run(program, "rows", self.folder / "file.avro", "box.width", "words"))
        wanted = [{name: row[name] for name in ("box.width", "words")} for row in expected(records)]
        self.assertEqual(read, wanted)

    def test_fastavro_reads_what_frugal_writes(self):
        records = samples()
        write(self.folder / "in.avro", records, "null")
        with open(self.folder / "in.avro", "rb") as file:
            wanted = list(fastavro.reader(file))
        for codec in CODECS:
            run(program, "rewrite", self.folder / "in.avro", self.folder / codec, codec)
            with open(self.folder / codec, "rb") as file:
                reader = fastavro.reader(file)
                self.assertEqual(reader.codec, codec)
                self.assertEqual(list(reader), wanted)
            with open(self.folder / codec, "rb") as file:
                self.assertGreater(len(list(fastavro.block_reader(file))), 5)

    def test_another_codec_is_refused(self):
        write(self.folder / "file.avro", samples(), "bzip2")
        with self.assertRaisesRegex(AssertionError, "the codec of the file is not read.*bzip2"):
            run(program, "rows", self.folder / "file.avro")

    def test_a_damaged_file_is_refused_or_read_and_never_a_crash(self):
        folder = self.folder / "damaged"
        folder.mkdir()
        chance = random.Random(5)
        for codec in CODECS:
            write(self.folder / "whole.avro", samples()[:20], codec)
            whole = (self.folder / "whole.avro").read_bytes()
            for part in range(7):
                (folder / f"{codec}_cut{part}").write_bytes(whole[: len(whole) * part // 7])
            for number in range(400):
                file = bytearray(whole)
                for _ in range(chance.choice((1, 1, 2, 8))):
                    file[chance.randrange(len(file))] = chance.randrange(256)
                (folder / f"{codec}_flip{number:03}").write_bytes(file)
        judged = dict(line.split(" ") for line in run(program, "judge", folder).splitlines())
        self.assertEqual(len(judged), 3 * 407)
        self.assertEqual({judged[name] for name in judged if "_cut" in name}, {"refused"})
        flips = [judged[name] for name in judged if "_flip" in name]
        self.assertGreater(flips.count("refused"), 400)
        self.assertGreater(flips.count("ok"), 10)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
