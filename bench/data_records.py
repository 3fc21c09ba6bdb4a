# SPDX-License-Identifier: Apache-2.0
"""Record shards of 784-byte samples beside Python's webdataset with the same samples in tar files, on one
thread, and beside a plain read of the same bytes."""

import io
import json
import statistics
import tarfile
import tempfile
from pathlib import Path

from common import all_told, told

SAMPLES, BYTES, BATCH, ROUNDS = 40_000, 784, 256, 5
PER_TAR = 10_000

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


def as_tar_files(records: Path, folder: Path) -> list[str]:
    """The samples of the shards, which are safetensors files with a tensor "data"."""
    samples = []
    for path in sorted(records.glob("*.safetensors")):
        file = path.read_bytes()
        begin = 8 + int.from_bytes(file[:8], "little")
        first, last = json.loads(file[8:begin])["data"]["data_offsets"]
        samples += [file[begin + at : begin + at + BYTES] for at in range(first, last, BYTES)]
    paths = []
    for first in range(0, len(samples), PER_TAR):
        paths.append(str(folder / f"{first // PER_TAR:06}.tar"))
        with tarfile.open(paths[-1], "w") as tar:
            for number, sample in enumerate(samples[first : first + PER_TAR], first):
                member = tarfile.TarInfo(f"{number:08}.bin")
                member.size = len(sample)
                tar.addfile(member, io.BytesIO(sample))
    return paths


def measure(build: Path, tools: list[str]) -> list[dict]:
    program = str(Path(build) / "bench" / "data_records")
    ours, theirs = {}, []
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records"
        all_told([program, "write", str(records), "--samples", str(SAMPLES), "--bytes", str(BYTES)])
        tars = as_tar_files(records, Path(folder))
        for _ in range(ROUNDS):  # in turn, so that a slow moment of the machine meets both
            for line in all_told([program, "read", str(records), "--batch", str(BATCH)]):
                ours.setdefault(line["name"], []).append(line)
            theirs.append(told([*tools, "-c", WEBDATASET, *tars]))
    for name in ("in order", "shuffled", "views"):
        assert all(line["check"] == theirs[0]["check"] for line in ours[name] + theirs), "they read other bytes"

    def rate(lines: list[dict]) -> float:
        return statistics.median(line["samples"] / line["seconds"] for line in lines)

    rows = []
    for name in ("in order", "shuffled", "views", "plain read"):
        row = {"name": name, "ours": rate(ours[name]), "unit": "samples/s"}
        if name != "plain read":
            row |= {"theirs": rate(theirs), "than": "webdataset", "ratio": rate(ours[name]) / rate(theirs)}
        if name in ("in order", "shuffled"):
            row |= {"bar": 100, "way": "least"}
        rows.append(row)
    return rows
