# SPDX-License-Identifier: Apache-2.0
"""Tar shards of 784-byte samples: frugal's TarSet beside Python's webdataset, on one thread."""

import statistics
import tempfile
from pathlib import Path

from common import all_told, told

SAMPLES, BYTES, ROUNDS = 40_000, 784, 5

WEBDATASET = """
import json, sys, time
import webdataset as wds
start = time.perf_counter()
check = count = 0
for sample in wds.WebDataset(sys.argv[1:], shardshuffle=False):
    check += len(sample["bin"]) + sample["bin"][0]
    count += 1
print(json.dumps({"seconds": time.perf_counter() - start, "samples": count, "check": check}))
"""


def measure(build: Path, tools: list[str]) -> list[dict]:
    program = str(Path(build) / "bench" / "data_tar")
    ours, theirs = {}, []
    with tempfile.TemporaryDirectory() as folder:
        told_nothing = all_told([program, "write", folder, "--samples", str(SAMPLES), "--bytes", str(BYTES)])
        assert told_nothing == []
        shards = sorted(str(each) for each in Path(folder).glob("*.tar"))
        for _ in range(ROUNDS):  # in turn, so that a slow moment of the machine meets both
            for line in all_told([program, "read", folder]):
                ours.setdefault(line["name"], []).append(line)
            theirs.append(told([*tools, "-c", WEBDATASET, *shards]))
    for name in ("in order", "shuffled"):
        assert all(line["check"] == theirs[0]["check"] for line in ours[name] + theirs), "they read other bytes"

    def rate(lines: list[dict]) -> float:
        return statistics.median(line["samples"] / line["seconds"] for line in lines)

    rows = []
    for name in ("in order", "shuffled", "first opening", "plain read"):
        row = {"name": name, "ours": rate(ours[name]), "unit": "samples/s"}
        if name in ("in order", "shuffled"):
            row |= {"theirs": rate(theirs), "than": "webdataset", "ratio": rate(ours[name]) / rate(theirs),
                    "bar": 20, "way": "least"}
        rows.append(row)
    return rows
