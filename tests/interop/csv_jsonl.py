#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's CSV and JSONL with Python's own modules: csv_jsonl.py PROGRAM

PROGRAM is interop_csv_jsonl, built from csv_jsonl.cpp in this folder. Python's csv and json write, frugal
reads; pyarrow reads the Parquet that frugal makes of them. Needs the packages of requirements/data.txt.
"""

import csv
import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).resolve().parent))
from support.rows import cell, rows, run  # noqa: E402

program = ""
WORDS = ("", "plain", 'with "quotes"', "a, comma", "semi;colon", "it's", "caf\u00e9 \U0001f600", " spaces ", "null?")


def records(count: int) -> list[dict]:
    chance = random.Random(11)
    return [{"integer": chance.randrange(-(2**62), 2**62), "real": chance.gauss(0, 1e6) or 0.5,
             "flag": chance.random() < 0.5, "word": chance.choice(WORDS)} for _ in range(count)]  # fmt: skip


def expected(all_of: list[dict], dtypes: dict) -> list[dict[str, str]]:
    return [{name: cell(value, dtypes.get(name)) for name, value in each.items()} for each in all_of]


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write_csv(self, all_of: list[dict], **dialect) -> Path:
        path = self.folder / "file.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, all_of[0].keys(), lineterminator="\n", **dialect)
            writer.writeheader()
            for each in all_of:
                writer.writerow({k: str(v).lower() if isinstance(v, bool) else v for k, v in each.items()})
        return path

    def test_frugal_reads_what_pythons_csv_writes(self):
        made = records(500)
        self.assertEqual(rows(run(program, "csv", self.write_csv(made), "plain")), expected(made, {}))

    def test_delimiters_quotes_and_line_ends_in_values(self):
        made = [{**each, "word": each["word"] + "\nnext"} for each in records(100)]
        path = self.write_csv(made, delimiter=";", quotechar="'")
        self.assertEqual(rows(run(program, "csv", path, "semicolons")), expected(made, {}))

    def test_a_column_that_is_text_by_wish_keeps_its_digits(self):
        made = [{**each, "integer": f"{i:05}"} for i, each in enumerate(records(50))]
        self.assertEqual(rows(run(program, "csv", self.write_csv(made), "text")), expected(made, {}))

    def test_empty_values_are_null_except_for_texts(self):
        made = [{**each, "integer": "" if i % 3 else 7, "real": "" if i % 4 else 0.5} for i, each in enumerate(records(20))]
        wanted = [{**each, "integer": None if i % 3 else 7, "real": None if i % 4 else 0.5} for i, each in enumerate(made)]
        self.assertEqual(rows(run(program, "csv", self.write_csv(made), "plain")), expected(wanted, {}))

    def write_jsonl(self, all_of: list[dict], ascii_only: bool) -> Path:
        path = self.folder / "file.jsonl"
        path.write_text("".join(json.dumps(each, ensure_ascii=ascii_only) + "\n" for each in all_of), encoding="utf-8")
        return path

    def test_frugal_reads_what_pythons_json_writes(self):
        made = [{**each, "numbers": [i, i * i][: i % 3], "reals": [0.5] * (i % 3), "flags": [True] * (i % 2),
                 "words": ["\u00e9", ""][: i % 3], "maybe": None if i % 2 else i,
                 "box": {"width": i, "deep": {"er": "x"}}} for i, each in enumerate(records(300))]  # fmt: skip
        flat = [{**{k: v for k, v in each.items() if k != "box"}, "box.width": each["box"]["width"],
                 "box.deep.er": "x"} for each in made]  # fmt: skip
        wanted = expected(flat, {"numbers": "int64", "reals": "float64", "flags": "bool"})
        for ascii_only in (True, False):
            self.assertEqual(rows(run(program, "jsonl", self.write_jsonl(made, ascii_only))), wanted)

    def test_pyarrow_reads_the_parquet_that_frugal_makes_of_them(self):
        made = records(40_000)  # some MiB, so that there are several blocks
        for path in (self.write_csv(made), self.write_jsonl(made, False)):
            self.assertGreater(path.stat().st_size, 1 << 20)
            out = self.folder / f"{path.suffix}.parquet"
            self.assertEqual(run(program, "convert", path, out).strip(), str(len(made)))
            self.assertEqual(pq.read_table(out).to_pylist(), made)
            self.assertGreater(pq.ParquetFile(out).metadata.num_row_groups, 3)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
