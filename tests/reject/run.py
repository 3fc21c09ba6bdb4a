#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that code which must not compile does not, and that the message says what it should.

A file under tests/reject/ reads

    // SPDX-License-Identifier: Apache-2.0
    // needs: torch                        (only if it includes LibTorch)
    // expect: frugal: the sentence, or a part of it; one line for each sentence
    #include <frugal/...>
    ... what compiles: the control
    #ifdef FRUGAL_REJECT
    ... what must not
    #endif

Without FRUGAL_REJECT it must compile; with it it must not, and every expected text must stand in
what the compiler says.

What passed is remembered in the build folder under a digest of everything that it depends on: the
compiler and its flags, the file, this script, and every header of frugal. LibTorch is in the flags,
by its path.
"""

import argparse
import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path


def build_command(commands: Path, like: str, compiler: str) -> list[str]:
    """The compiler call of the probe `like`, without its source, its output and its cache."""
    for entry in json.loads(commands.read_text()):
        if entry["file"] == like:
            words = shlex.split(entry["command"])
            words = words[words.index(compiler) :]
            kept, skip = [], False
            for word in words:
                if skip:
                    skip = False
                elif word == "-o":
                    skip = True
                elif word not in ("-c", like, "-Werror"):
                    kept.append(word)
            return kept
    raise SystemExit(f"reject: {commands} has no {like}")


def judge(source: Path, command: list[str]) -> list[str]:
    """What is wrong with the file, in words; nothing if it proves what it says."""
    text = source.read_text()
    expected = re.findall(r"^// expect: (.+?)\s*$", text, re.MULTILINE)
    if not expected:
        return ["it has no line '// expect: ...'"]
    if not re.search(r"^#\s*ifdef FRUGAL_REJECT\b", text, re.MULTILINE):
        return ["it has no '#ifdef FRUGAL_REJECT'"]

    def compile_with(*extra: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*command, *extra, "-fsyntax-only", str(source)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    control = compile_with()
    if control.returncode != 0:
        return ["the control, without FRUGAL_REJECT, does not compile:", control.stdout]
    rejected = compile_with("-DFRUGAL_REJECT")
    if rejected.returncode == 0:
        return ["with FRUGAL_REJECT it compiles, and must not"]
    missing = [f"the compiler does not say: {want}" for want in expected if want not in rejected.stdout]
    return missing + ["what it says:", rejected.stdout] if missing else []


def digest_of(source: Path, command: list[str]) -> str:
    digest = hashlib.sha256()
    version = subprocess.run([command[0], "--version"], stdout=subprocess.PIPE, check=True).stdout
    digest.update(version + "\0".join(command).encode())
    headers = sorted((Path(__file__).parents[2] / "include").rglob("*.hpp"))
    for file in [Path(__file__), source, *headers]:
        digest.update(b"\0" + str(file).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("source", type=Path)
    arguments.add_argument("--commands", type=Path, required=True, help="compile_commands.json")
    arguments.add_argument("--like", required=True, help="source whose command line is taken")
    arguments.add_argument("--compiler", required=True)
    options = arguments.parse_args()
    command = build_command(options.commands, options.like, options.compiler)
    digest = digest_of(options.source, command)
    passed = options.commands.parent / "reject" / (options.source.name + ".passed")
    if passed.exists() and passed.read_text() == digest:
        print("nothing that it depends on has changed since it passed")
        return 0
    faults = judge(options.source, command)
    for fault in faults:
        print(f"reject: {options.source.name}: {fault}" if fault is faults[0] else fault)
    if faults:
        return 1
    passed.parent.mkdir(exist_ok=True)
    passed.write_text(digest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
