# SPDX-License-Identifier: Apache-2.0
"""Shared by the programs of bench/: running the measured programs, and reporting bars."""

import argparse
import json
import os
import pathlib
import re
import subprocess

QUIET = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "LC_ALL": "C"}


class Failed(Exception):
    """One sentence for the reader; main() prints it."""


def run(command: list[str]) -> str:
    """Output of a program: standard output, then standard error."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | QUIET)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise Failed(f"`{' '.join(command)}` ended with exit code {done.returncode}:\n{tail}")
    return done.stdout + done.stderr


def all_told(command: list[str]) -> list[dict]:
    """The lines of standard output, each of them JSON."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | QUIET)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise Failed(f"`{' '.join(command[:2])} ...` ended with exit code {done.returncode}:\n{tail}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def told(command: list[str]) -> dict:
    """The last of these lines."""
    lines = all_told(command)
    if not lines:
        raise Failed(f"`{' '.join(command[:2])} ...` printed no figures.")
    return lines[-1]


def parser_of(doc: str, program: str) -> argparse.ArgumentParser:
    """A parser with the flags that ./dev gives to every benchmark of `program`."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--frugal", type=pathlib.Path, help=f"the program {program}")
    parser.add_argument("--build", type=pathlib.Path, help="or the build folder that holds it")
    parser.add_argument("--torch", type=pathlib.Path, help="the LibTorch of that build")
    parser.add_argument("--cxx", help="taken and not needed: every benchmark gets it")
    parser.add_argument("--json", type=pathlib.Path, help="file for every figure")
    parser.set_defaults(program=program)
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments, with the program's path as `frugal`."""
    args = parser.parse_args()
    if args.frugal is None and args.build is None:
        parser.error("say where the program is, with --frugal or --build.")
    args.frugal = (args.frugal or args.build / "bench" / args.program).resolve()
    return args


def add_strict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is not met")


def judge(what: str, ratio: float, bar: float, way: str = "most") -> bool:
    """Prints one bar: at most or at least this ratio."""
    met = ratio <= bar if way == "most" else ratio >= bar
    print(f"bar: {what}, at {way} {bar}: {ratio:.3f}, {'met' if met else 'NOT met'}")
    return met


def version_of(torch: pathlib.Path | None) -> str:
    try:
        return re.search(r"__version__ = '([^'+]*)", (torch / "version.py").read_text())[1]
    except (OSError, TypeError):
        return "unknown"


def machine() -> str:
    """The processor's name, and the number of cores that this process may use."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
        name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)[1].strip()
    except (OSError, TypeError):
        name = "an unknown processor"
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def write_between(page: pathlib.Path, begin: str, end: str, text: str) -> None:
    """Inserts a text between two marks of a page."""
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + "\n" + text + "\n" + end + rest.split(end)[1])


def bible(folder: pathlib.Path) -> pathlib.Path:
    """The text as Debian's program prints it, one verse per line after its reference."""
    to = folder / "kjv.txt"
    try:
        done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL,
                              capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failed("the text is printed by Debian's program bible, which does not work here "
                     f"({error}). As root: apt-get install bible-kjv bible-kjv-text; or give "
                     "--text FILE.") from error
    to.write_bytes(done.stdout)
    return to
