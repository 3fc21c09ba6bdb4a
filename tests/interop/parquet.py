#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares frugal's Parquet with pyarrow: parquet.py PROGRAM

PROGRAM is interop_parquet, built from parquet.cpp in this folder. Each reads what the other writes, and
damaged files end in an error, not in a crash. Needs the packages of requirements/data.txt.
"""

import random
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).resolve().parent))
from support.rows import cell, rows, run  # noqa: E402

program = ""
CODECS = ("NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI")
N = 50


def table() -> tuple[pa.Table, dict]:
    """A table of every type that frugal reads, and for lists of numbers their dtype."""
    chance = np.random.default_rng(7)
    columns, lists = {}, {}
    for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64", "float16", "float32", "float64"):
        values = (chance.standard_normal(N) * 100 if "float" in dtype
                  else chance.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, N, dtype)).astype(dtype)  # fmt: skip
        columns[dtype] = pa.array(values)
        columns[f"{dtype}_null"] = pa.array(values, mask=chance.random(N) < 0.3)
        ragged = [values[: i % 5] for i in range(N)]
        columns[f"{dtype}_list"] = pa.array(ragged, pa.list_(columns[dtype].type))
        columns[f"{dtype}_fixed"] = pa.array([np.roll(values, i)[:3] for i in range(N)],
                                             pa.list_(columns[dtype].type, 3))  # fmt: skip
        lists[f"{dtype}_list"] = lists[f"{dtype}_fixed"] = dtype
    columns["uint64"] = pa.array(np.arange(N, dtype="uint64") * 10**17)
    columns["bool"] = pa.array([i % 3 == 0 if i % 7 else None for i in range(N)])
    columns["bool_list"] = pa.array([[True, False, True][: i % 4] for i in range(N)], pa.list_(pa.bool_()))
    lists["bool_list"] = "bool"
    words = [f"w\u00e9{i}" * (i % 3) if i % 6 else None for i in range(N)]
    raw = [bytes((i, 0, 255 - i)) * (i % 4) for i in range(N)]
    columns["string"] = pa.array(words)
    columns["large_string"] = pa.array(words, pa.large_string())
    columns["binary"] = pa.array(raw, pa.binary())
    columns["flba"] = pa.array([bytes((i, 1, 2, 3)) for i in range(N)], pa.binary(4))
    columns["dictionary"] = pa.array(["red" if i % 2 else "green" for i in range(N)]).dictionary_encode()
    columns["texts"] = pa.array([[f"t{k}" for k in range(i % 3)] for i in range(N)], pa.list_(pa.string()))
    columns["when"] = pa.array(np.arange(N) * 1000, pa.timestamp("us"))
    columns["day"] = pa.array(np.arange(N, dtype="int32"), pa.date32())
    columns["nothing"] = pa.nulls(N)
    return pa.table(columns), lists


def expected(read: pa.Table, lists: dict) -> list[dict[str, str]]:
    columns = {}
    for name in read.column_names:
        column = read[name]
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        columns[name] = [cell(value, lists.get(name)) for value in column.to_pylist()]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


class Interop(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_frugal_reads_int96_times_as_pyarrow_does(self):
        path = self.folder / "int96.parquet"
        chance = np.random.default_rng(5)
        nanoseconds = chance.integers(np.iinfo("int64").min, np.iinfo("int64").max, N)
        when = pa.array(nanoseconds, pa.int64(), mask=chance.random(N) < 0.2)
        lists = [nanoseconds[: i % 3] for i in range(N)]
        table = pa.table({"when": when.cast(pa.timestamp("ns")), "list": pa.array(
            [each.astype("datetime64[ns]") for each in lists], pa.list_(pa.timestamp("ns")))})  # fmt: skip
        pq.write_table(table, path, use_deprecated_int96_timestamps=True)
        self.assertEqual(pq.ParquetFile(path).schema.column(0).physical_type, "INT96")
        self.assertEqual(pq.read_table(path)["when"].cast(pa.int64()).to_pylist(), when.to_pylist())
        wanted = [{"when": cell(value), "list": cell(each, "int64")} for value, each in zip(when.to_pylist(), lists)]
        self.assertEqual(rows(run(program, "rows", path)), wanted)

    def test_frugal_reads_every_type_codec_and_version_of_pyarrow(self):
        wrote, lists = table()
        wanted = expected(wrote, lists)
        ways = [{"compression": codec} for codec in CODECS]
        ways += [{"version": "1.0"}, {"data_page_version": "2.0"}, {"use_dictionary": False},
                 {"write_page_checksum": True}, {"store_schema": False}]  # fmt: skip
        for way in ways:
            with self.subTest(**way):
                path = self.folder / "file.parquet"
                pq.write_table(wrote, path, row_group_size=13, **way)
                # Version 1.0 has no uint32, and without Arrow's schema lists lose their fixed size.
                back = pq.read_table(path)
                dtypes = {name: np.dtype(back[name].type.value_type.to_pandas_dtype()) for name in lists}
                self.assertEqual(rows(run(program, "rows", path)), expected(back, dtypes))
                if "compression" in way:
                    self.assertEqual(expected(back, dtypes), wanted)

    def test_frugal_reads_the_columns_that_are_asked_for(self):
        wrote, lists = table()
        pq.write_table(wrote, self.folder / "file.parquet", row_group_size=13)
        chosen = ["texts", "int8_fixed", "uint64"]
        read = rows(run(program, "rows", self.folder / "file.parquet", *chosen))
        self.assertEqual([list(row) for row in read], [chosen] * N)
        self.assertEqual(read, expected(wrote.select(chosen), lists))

    def test_pyarrow_reads_what_frugal_writes(self):
        wrote, lists = table()
        wrote = wrote.drop_columns(["nothing"])
        pq.write_table(wrote, self.folder / "in.parquet", row_group_size=13)
        for codec in CODECS:
            out = self.folder / f"{codec}.parquet"
            run(program, "rewrite", self.folder / "in.parquet", out, codec.lower(), "binary", "flba")
            file = pq.ParquetFile(out, page_checksum_verification=True)
            self.assertEqual(file.metadata.num_row_groups, (N - 1) // 7 + 1)
            back = file.read()
            back.validate(full=True)
            self.assertEqual(back.column_names, wrote.column_names)
            self.assertEqual(str(back["binary"].type), "binary")
            self.assertEqual(expected(back, lists), expected(wrote, lists))

    def test_a_type_without_a_cell_is_refused_unless_it_is_left_out(self):
        nested = pa.table({"x": [1, 2], "s": [{"a": 1}, {"a": 2}], "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
                           "d": pa.array([1, 2], pa.decimal128(20, 3)), "deep": [[[1]], [[2]]]})  # fmt: skip
        pq.write_table(nested, self.folder / "file.parquet")
        self.assertEqual(rows(run(program, "rows", self.folder / "file.parquet", "x")), [{"x": "int 1"}, {"x": "int 2"}])
        for column in ("s", "m", "d", "deep"):
            with self.assertRaisesRegex(AssertionError, f"type is not read.*column {column}"):
                run(program, "rows", self.folder / "file.parquet", column)

    def test_a_damaged_file_is_refused_or_read_and_never_a_crash(self):
        wrote, _ = table()
        folder = self.folder / "damaged"
        folder.mkdir()
        chance = random.Random(5)
        for codec in ("NONE", "SNAPPY", "ZSTD"):
            path = self.folder / "whole.parquet"
            small = wrote.select(["int32_null", "float64_list", "string", "dictionary", "bool", "flba"])
            pq.write_table(small, path, compression=codec, row_group_size=13)
            whole = path.read_bytes()
            for part in range(7):
                (folder / f"{codec}_cut{part}").write_bytes(whole[: len(whole) * part // 7])
            for number in range(300):
                file = bytearray(whole)
                for _ in range(chance.choice((1, 1, 2, 8))):
                    file[chance.randrange(len(file))] = chance.randrange(256)
                (folder / f"{codec}_flip{number:03}").write_bytes(file)
        judged = dict(line.split(" ") for line in run(program, "judge", folder).splitlines())
        self.assertEqual(len(judged), 3 * 307)
        self.assertEqual({judged[name] for name in judged if "_cut" in name}, {"refused"})
        flips = [judged[name] for name in judged if "_flip" in name]
        self.assertGreater(flips.count("refused"), 100)
        self.assertGreater(flips.count("ok"), 10)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv.pop(1)
    unittest.main(verbosity=2)
