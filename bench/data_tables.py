# SPDX-License-Identifier: Apache-2.0
"""Parquet files: frugal's tensors and batches beside pyarrow's own read, on one thread."""

import statistics
import tempfile
from pathlib import Path

from common import told

ROWS, IMAGES, ROUNDS = 2_000_000, 100_000, 7

WRITE = f"""
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
chance = np.random.default_rng(1)
numbers = {{f"x{{i}}": chance.standard_normal({ROWS}, dtype=np.float32) for i in range(8)}}
numbers["label"] = chance.integers(0, 10, {ROWS})
pq.write_table(pa.table(numbers), sys.argv[1] + "/numbers.parquet", row_group_size=100_000)
pixels = pa.FixedSizeBinaryArray.from_buffers(
    pa.binary(784), {IMAGES}, [None, pa.py_buffer(chance.integers(0, 64, {IMAGES} * 784, np.uint8))])
images = pa.table({{"pixels": pixels, "label": chance.integers(0, 10, {IMAGES})}})
pq.write_table(images, sys.argv[1] + "/images.parquet", row_group_size=10_000, use_dictionary=["label"])
print("{{}}")
"""

READ = """
import json, sys, time
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
start = time.perf_counter()
# The thinnest of pyarrow's ways: read_table comes to the same through its data sets.
table = pq.ParquetFile(sys.argv[1]).read(use_threads=False)
if "stack" in sys.argv:
    data = np.stack([table[f"x{i}"].to_numpy() for i in range(8)], 1)
print(json.dumps({"seconds": time.perf_counter() - start, "rows": table.num_rows}))
"""


def measure(build: Path, tools: list[str]) -> list[dict]:
    program = str(Path(build) / "bench" / "data_tables")
    stacked = ["--data", *(f"x{i}" for i in range(8)), "--target", "label"]
    ways = (
        ("numbers as tensors", "numbers", ["columns"], [], []),
        ("numbers as batches [256, 8]", "numbers", ["batches"], stacked, ["stack"]),
        ("images as tensors", "images", ["columns"], [], []),
        ("images as batches [256, 784]", "images", ["batches"], ["--data", "pixels", "--target", "label"], []),
    )  # fmt: skip
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        told([*tools, "-c", WRITE, folder])
        for name, file, verb, words, more in ways:
            path = f"{folder}/{file}.parquet"
            ours, theirs = [], []
            for _ in range(ROUNDS):  # in turn, so that a slow moment of the machine meets both
                ours.append(told([program, *verb, path, *words]))
                theirs.append(told([*tools, "-c", READ, path, *more]))
            assert all(each["rows"] == ours[0]["rows"] for each in ours + theirs), "they read other rows"
            mine, other = (statistics.median(each["seconds"] for each in side) * 1e3 for side in (ours, theirs))
            rows.append({"name": name, "ours": mine, "theirs": other, "unit": "ms", "than": "pyarrow",
                         "ratio": mine / other, "bar": 1.2, "way": "most"})  # fmt: skip
    return rows
