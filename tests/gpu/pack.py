#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs everything for a visit to a GPU: pack.py --tests FOLDER --bench FOLDER FILE.tar.gz

The sources; under gpu/ the programs, the libraries and headers that such a machine lacks, the data
and the commit. It is meant for a machine with Python's torch, and without a network.
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = "frugal-gpu"
LIMIT = 50_000_000  # bytes
BENCH = "bench_gpu"  # of the programs, the one that is timed
# Two commands, each within ten minutes. A machine lent for one command at a time returns only the
# folder OUT, so the results are written there as well; the second may get a fresh machine.
VISIT = """\
    tar xzf {file} && {top}/dev test --gpu; code=$?
    tar czf "${{OUT:-.}}/test-logs.tgz" -C {top}/build gpu-results; (exit $code)

    [ -d {top} ] || tar xzf {file}; {top}/dev bench gpu; code=$?
    tar czf "${{OUT:-.}}/bench-logs.tgz" -C {top}/build gpu-results; (exit $code)
"""
DATA = Path("/usr/share/datasets/fashion-mnist")
# Libraries that the programs link to and a machine may lack.
LIBRARIES = ("libxxhash.so.0", "libz.so.1")
# For building there: headers, and the CMake files that find them. Debian's package names.
PACKAGES = ("rapidjson-dev", "nlohmann-json3-dev", "libxxhash-dev", "zlib1g-dev", "doctest-dev",
            "libbenchmark-dev", "libbenchmark1debian", "libxxhash0", "zlib1g", "libcli11-dev")


class Failed(Exception):
    """One sentence for the reader."""


def output_of(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


def files_of(package: str) -> list[Path]:
    files = [Path(line) for line in output_of("dpkg", "-L", package).splitlines()]
    return [each for each in files if each.is_file() and not each.is_relative_to("/usr/share/doc")]


def text() -> bytes:
    """The training text of the transformer in bench/levers.py, or nothing if it is not installed."""
    try:
        return subprocess.run(["bible", "gen1:1-rev22:21"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""


class Archive:
    def __init__(self, file: Path):
        self.tar = tarfile.open(file, "w:gz", compresslevel=9)
        self.known: set[str] = set()

    def add(self, source: Path, name: str) -> None:
        if name not in self.known:
            self.known.add(name)
            self.tar.add(source, f"{TOP}/{name}", recursive=False)

    def add_bytes(self, data: bytes, name: str) -> None:
        entry = tarfile.TarInfo(f"{TOP}/{name}")
        entry.size = len(data)
        entry.mode = 0o644
        self.tar.addfile(entry, io.BytesIO(data))


def library(name: str) -> Path:
    for line in output_of("ldconfig", "-p").splitlines():
        if line.strip().startswith(name + " ") and "x86-64" in line:
            return Path(line.split(" => ")[1])
    raise Failed(f"there is no {name} on this machine")


def stripped(program: Path, folder: Path) -> Path:
    out = folder / program.name
    output_of("strip", "-o", str(out), str(program))
    return out


def programs_of(tests: Path, bench: Path) -> dict[str, Path]:
    """Programs by name. Ignores the unoptimised bench_gpu that CI leaves with the tests."""
    found = {each.name: each for each in tests.iterdir() if each.is_file() and each.name != BENCH}
    for each in bench.iterdir():
        if each.is_file() and each.name in found:
            raise Failed(f"{each.name} is in {tests} and in {bench}; remove one of them")
        if each.is_file():
            found[each.name] = each
    if BENCH not in found or len(found) == 1:
        raise Failed(f"programs are missing in {tests} or {bench}; ./dev gpu pack builds them")
    return dict(sorted(found.items()))


def require_optimised(program: Path) -> None:
    said = output_of(str(program), "--info", "--device", "cpu")
    if not json.loads(said.splitlines()[-1]).get("optimised"):
        raise Failed(f"{program} was built without optimisation; its figures would say nothing")


def version(root: Path) -> str:
    """The commit, and whether the packed files differ from it."""
    commit = output_of("git", "-C", str(root), "rev-parse", "HEAD").strip()
    changed = output_of("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return f"{commit}{' with changes' if changed.strip() else ''}\n"


def pack(file: Path, tests: Path, bench: Path) -> None:
    programs = programs_of(tests, bench)
    require_optimised(programs[BENCH])
    archive = Archive(file)
    for name in output_of("git", "-C", str(ROOT), "ls-files", "-z").split("\0"):
        if name and (ROOT / name).exists():
            archive.add(ROOT / name, name)
    scratch = file.parent / (file.name + ".stripped")
    scratch.mkdir(exist_ok=True)
    for program in programs.values():
        if program.is_symlink():
            archive.add(program, f"gpu/bin/{program.name}")
            continue
        copy = stripped(program, scratch)
        archive.add(copy, f"gpu/bin/{program.name}")
        copy.unlink()
    scratch.rmdir()
    for name in LIBRARIES:
        archive.add(library(name).resolve(), f"gpu/lib/{name}")
    for package in PACKAGES:
        for each in files_of(package):
            archive.add(each, f"gpu/sysroot{each}")
    for each in sorted(DATA.glob("*.gz")):
        archive.add(each, f"gpu/data/fashion-mnist/{each.name}")
    if words := text():
        archive.add_bytes(words, "gpu/data/text.txt")
    archive.add_bytes(version(ROOT).encode(), "VERSION")
    archive.tar.close()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--tests", type=Path, required=True, help="folder of gpu_*")
    arguments.add_argument("--bench", type=Path, required=True, help=f"folder of {BENCH}, optimised")
    arguments.add_argument("file", type=Path)
    options = arguments.parse_args()
    try:
        pack(options.file.resolve(), options.tests, options.bench)
    except (Failed, OSError, ValueError) as error:
        print(f"pack: {error}", file=sys.stderr)
        return 1
    size = options.file.stat().st_size
    print(f"{options.file}: {size / 1e6:.1f} MB. There, in two commands of ten minutes at most:\n")
    print(VISIT.format(file=options.file.name, top=TOP), end="")
    if size > LIMIT:
        print(f"pack: that is over {LIMIT // 1_000_000} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
