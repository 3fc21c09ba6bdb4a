#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs all that a visit to a GPU needs: pack.py --programs FOLDER... FILE.tar.gz

The sources; under gpu/ the programs, the libraries and headers that such a machine lacks, the data
and the commit. It is meant for a machine with Python's torch, and without a network.
"""

import argparse
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOP = "frugal-gpu"
LIMIT = 50_000_000  # bytes
DATA = Path("/usr/share/datasets/fashion-mnist")
# What the programs are linked to and a machine may lack.
LIBRARIES = ("libxxhash.so.0", "libz.so.1")
# For building there: headers, and what CMake finds them by. Debian's names of packages.
PACKAGES = ("rapidjson-dev", "nlohmann-json3-dev", "libxxhash-dev", "zlib1g-dev", "doctest-dev",
            "libbenchmark-dev", "libbenchmark1debian", "libxxhash0", "zlib1g", "libcli11-dev")
# FindBoost looks for boost/config.hpp.
HANA = re.compile(r"^/usr/include/boost/(hana(/|\.hpp$)|config(/|\.hpp$)|version\.hpp$)")


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
    """The text that the transformer of bench/levers.py learns, or nothing where it is not here."""
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


def pack(file: Path, folders: list[Path]) -> None:
    archive = Archive(file)
    for name in output_of("git", "-C", str(ROOT), "ls-files", "-z").split("\0"):
        if name and (ROOT / name).exists():
            archive.add(ROOT / name, name)
    scratch = file.parent / (file.name + ".stripped")
    scratch.mkdir(exist_ok=True)
    programs = [each for folder in folders for each in sorted(folder.iterdir()) if each.is_file()]
    if not programs:
        raise Failed(f"no programs in {' and '.join(map(str, folders))}; ./dev gpu pack builds them")
    for program in programs:
        copy = stripped(program, scratch)
        archive.add(copy, f"gpu/bin/{program.name}")
        copy.unlink()
    scratch.rmdir()
    for name in LIBRARIES:
        archive.add(library(name).resolve(), f"gpu/lib/{name}")
    for package in PACKAGES:
        for each in files_of(package):
            archive.add(each, f"gpu/sysroot{each}")
    for line in output_of("dpkg", "-L", "libboost1.74-dev").splitlines():
        if HANA.match(line) and Path(line).is_file():
            archive.add(Path(line), f"gpu/sysroot{line}")
    for each in sorted(DATA.glob("*.gz")):
        archive.add(each, f"gpu/data/fashion-mnist/{each.name}")
    if words := text():
        archive.add_bytes(words, "gpu/data/text.txt")
    commit = output_of("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()
    changed = output_of("git", "-C", str(ROOT), "status", "--porcelain").strip()
    archive.add_bytes(f"{commit}{' with changes' if changed else ''}\n".encode(), "VERSION")
    archive.tar.close()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--programs", type=Path, action="append", required=True)
    arguments.add_argument("file", type=Path)
    options = arguments.parse_args()
    try:
        pack(options.file.resolve(), options.programs)
    except (Failed, OSError) as error:
        print(f"pack: {error}", file=sys.stderr)
        return 1
    size = options.file.stat().st_size
    print(f"{options.file}: {size / 1e6:.1f} MB. There: tar xzf {options.file.name} && cd {TOP} && "
          "./dev test --gpu && ./dev bench gpu")
    if size > LIMIT:
        print(f"pack: that is over {LIMIT // 1_000_000} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
