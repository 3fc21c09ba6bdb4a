# SPDX-License-Identifier: Apache-2.0
"""MinHash deduplication of the entries of Debian's dict-gcide, compared with datasketch.

Both make shingles of 5 characters of the same folded texts, 260 hashes, and look for candidates in 20
bands of 13. frugal's time also has the exact comparison of the candidates, and the search for copies.
What runs on one thread is
compared by the time of the processor, which other programs of the machine do not change. The rival runs as `data_curate.py INDEX SAMPLES HASH` in the Python that has datasketch.
"""

import json
import pathlib
import statistics
import sys
import time

INDEX = pathlib.Path("/usr/share/dictd/gcide.index")
SAMPLES, ROUNDS = 20_000, 3
DIGITS = {c: i for i, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}


def measure(build: pathlib.Path, tools: list[str]) -> list[dict]:
    from common import Failed, told

    if not INDEX.exists():
        raise Failed("there is no dictionary. On Debian: apt-get install dict-gcide.")
    program = [str(pathlib.Path(build) / "bench" / "data_curate"), str(INDEX)]
    few = [*program, "--samples", str(SAMPLES)]
    rival = [*tools, __file__, str(INDEX), str(SAMPLES)]
    ways = {
        "ours": [*few, "--threads", "1"],
        "sha1": [*rival, "sha1"],
        "crc32": [*rival, "crc32"],
        "one": [*program, "--samples", "200000", "--threads", "1"],
        "two": [*program, "--samples", "200000", "--threads", "2"],
        "spilled": [*program, "--samples", "200000", "--threads", "1", "--memory", str(4 << 20)],
    }
    said = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, command in ways.items():
            said[name].append(told(command))

    def median(of: str, name: str) -> float:
        return statistics.median(each[of] for each in said[name])

    if said["ours"][0]["samples"] != said["sha1"][0]["samples"]:
        raise Failed("the two sides did not read the same entries.")
    if said["one"][0]["removed"] != said["spilled"][0]["removed"] or not said["spilled"][0]["runs"]:
        raise Failed("a limit of memory changed the result, or was none.")

    def row(name, ours, theirs, than, of="cpu_seconds", **judged):
        unit = "s" if of == "seconds" else "s of CPU"
        return {"name": name, "ours": median(of, ours), "theirs": median(of, theirs), "unit": unit,
                "than": than, "ratio": median(of, theirs) / median(of, ours), **judged}  # fmt: skip

    return [
        row(f"{SAMPLES} entries, one thread", "ours", "sha1", "datasketch", bar=20),
        row(f"{SAMPLES} entries, one thread, theirs with CRC-32", "ours", "crc32", "datasketch"),
        row("all entries, two threads", "two", "one", "one thread", of="seconds", bar=1.4),
        row("all entries, 4 MiB of memory", "spilled", "one", "all in memory"),
    ]


def number(text: str) -> int:
    value = 0
    for c in text:
        value = value * 64 + DIGITS[c]
    return value


def entries(index: pathlib.Path, samples: int) -> list[str]:
    import gzip

    text = gzip.open(index.with_suffix(".dict.dz")).read()
    lines = index.read_text(errors="replace").splitlines()
    places = sorted({(number(line.split("\t")[1]), number(line.split("\t")[2])) for line in lines})
    return [text[at : at + size].decode(errors="replace") for at, size in places[:samples]]


def rival(index: str, samples: str, hash_name: str) -> None:
    import zlib

    from datasketch import MinHash, MinHashLSH

    texts = entries(pathlib.Path(index), int(samples))
    options = {"hashfunc": zlib.crc32} if hash_name == "crc32" else {}
    start, cpu = time.perf_counter(), time.process_time()
    lsh = MinHashLSH(num_perm=260, params=(20, 13))
    empty = MinHash(num_perm=260, **options)
    candidates = 0
    for number_of, text in enumerate(texts):
        folded = " ".join(text.lower().split())
        shingles = {folded[i : i + 5] for i in range(max(1, len(folded) - 4))}
        signature = empty.copy()
        signature.update_batch([shingle.encode() for shingle in shingles])
        candidates += len(lsh.query(signature))
        lsh.insert(number_of, signature)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "samples": len(texts), "candidates": candidates}))


if __name__ == "__main__":
    rival(*sys.argv[1:])
