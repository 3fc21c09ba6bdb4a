#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that code which must not compile does not, and that the message is the right one.

A file under tests/reject/ reads

    // SPDX-License-Identifier: Apache-2.0
    // needs: torch                        (only if it includes LibTorch)
    // expect: frugal: the sentence, or a part of it; one line for each sentence
    #include <frugal/...>
    ... what compiles: the control
    #ifdef FRUGAL_REJECT
    ... what must not
    #endif

Without FRUGAL_REJECT it must compile; with it it must not, and every expected text must be in the
compiler's output about this file.

run.py compiles many files, most in one unit (unit.py), and writes one result for each to the folder, with
"verdict": "passed" or "failed"; the test of a file reads it.

A result is cached under a digest of everything that it depends on: the compiler and its flags, the
file and its quoted includes, these scripts, and every header of frugal. LibTorch is in the flags, by
its path. `compile` repeats only what has changed or has not passed, and removes the old results of
these first, so that all results are current when it ends. ctest runs it before any judge.
"""

import argparse
import hashlib
import json
import resource
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from unit import INCLUDE, BrokenUnit, Case, compile_source, malformed, proven, proves, why_alone


def build_command(commands: Path, like: str, compiler: str) -> list[str]:
    """The compiler call of the probe `like`, without its source, its output and its launcher."""
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


def ask_alone(case: Case, command: list[str]) -> list[str]:
    """What is wrong with the file, in words; empty if it passes."""
    if malformed(case):
        return [malformed(case)]
    control = compile_source(command, case.source)
    if control.returncode != 0:
        return ["the control, without FRUGAL_REJECT, does not compile:", control.stdout]
    rejected = compile_source(command, case.source, "-DFRUGAL_REJECT")
    if rejected.returncode == 0:
        return ["with FRUGAL_REJECT it compiles, and must not"]
    if proves(case, rejected.stdout):
        return []
    missing = [want for want in case.expected if want not in rejected.stdout]
    return [f"the compiler does not say: {want}" for want in missing] + [
        "what it says:",
        rejected.stdout,
    ]


class Digests:
    """Digests of cases. Their common parts, mainly the headers, are read once."""

    def __init__(self, command: list[str]):
        version = subprocess.run([command[0], "--version"], stdout=subprocess.PIPE, check=True).stdout
        here = Path(__file__).resolve().parent
        headers = sorted((here.parents[1] / "include").rglob("*.?pp"))
        self.common = hashlib.sha256(version + "\0".join(command).encode())
        for file in [here / "run.py", here / "unit.py", *headers]:
            self.add(self.common, file)

    @staticmethod
    def add(digest, file: Path) -> str:
        content = file.read_bytes()
        digest.update(b"\0" + str(file).encode() + b"\0" + content)
        return content.decode(errors="replace")

    def of(self, case: Case) -> str:
        digest, seen, open_files = self.common.copy(), set(), [case.source]
        while open_files:
            file = open_files.pop()
            if file in seen or not file.exists():
                continue
            seen.add(file)
            text = self.add(digest, file)
            quoted = [name for bracket, name in INCLUDE.findall(text) if bracket == '"']
            open_files += [(file.parent / name).resolve() for name in quoted]
        return digest.hexdigest()


def result_file(folder: Path, case: Case) -> Path:
    return folder / (case.source.name + ".json")


def load(folder: Path, case: Case) -> dict:
    """The result of the case; empty if it is missing or incomplete."""
    try:
        return json.loads(result_file(folder, case).read_text())
    except (FileNotFoundError, ValueError):
        return {}


def compile_cases(
    kind: str, cases: list[Case], command: list[str], folder: Path, jobs: int
) -> dict[str, list[str]]:
    """Writes a result for every case; returns the names compiled in the unit, alone and not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = Digests(command)
    digest = {case: digests.of(case) for case in cases}

    def write(case: Case, how: str, faults: list[str]) -> None:
        lines = [line for fault in faults for line in fault.splitlines()]
        result = {"digest": digest[case], "how": how, "faults": lines,
                  "verdict": "failed" if faults else "passed"}
        result_file(folder, case).write_text(json.dumps(result, indent=1))

    def passed_before(case: Case) -> bool:
        known = load(folder, case)
        return known.get("digest") == digest[case] and known.get("verdict") == "passed"

    asked = [case for case in cases if not passed_before(case)]
    for case in asked:
        result_file(folder, case).unlink(missing_ok=True)
    together = proven(asked, command, folder / f"unit_{kind}.cpp")
    for case in together:
        write(case, "unit", [])
    alone = [case for case in asked if case not in together]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda case: write(case, "alone", ask_alone(case, command)), alone))
    groups = {"unit": together, "alone": alone, "unchanged": set(cases) - set(asked)}
    return {how: sorted(case.source.stem for case in group) for how, group in groups.items()}


def report(kind: str, cases: list[Case], groups: dict[str, list[str]]) -> None:
    """Reports how the cases were compiled, and the cost."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts = ", ".join(f"{len(names)} {how}" for how, names in groups.items())
    print(f"reject: {kind}: {counts}; {used.ru_utime + used.ru_stime:.0f} CPU s")
    reasons = {case.source.stem: why_alone(case) for case in cases}
    for name in groups["alone"]:
        print(f"  alone: {name}: {reasons[name] or 'the unit did not prove it'}")


def parse() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("sources", type=Path, nargs="+")
    arguments.add_argument("--commands", type=Path, required=True, help="compile_commands.json")
    arguments.add_argument("--like", required=True, help="source whose command line is taken")
    arguments.add_argument("--compiler", required=True)
    arguments.add_argument("--folder", type=Path, required=True, help="where the results are")
    arguments.add_argument("--kind", default="plain", help="names the unit, in the report too")
    arguments.add_argument("--jobs", type=int, default=2, help="compilers at a time")
    return arguments.parse_args()


def main() -> int:
    options = parse()
    cases = [Case.read(source) for source in options.sources]
    command = build_command(options.commands, options.like, options.compiler)
    # The test of its case reports a fault: here it would fail the other cases too.
    try:
        groups = compile_cases(options.kind, cases, command, options.folder, options.jobs)
    except BrokenUnit as broken:
        print(f"reject: {broken}")
        return 1
    report(options.kind, cases, groups)
    return 0


if __name__ == "__main__":
    sys.exit(main())
