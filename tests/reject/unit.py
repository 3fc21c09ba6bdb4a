# SPDX-License-Identifier: Apache-2.0
"""Proves many cases of tests/reject with two compiler calls instead of two for each.

Parsing the headers costs far more than a case does. One translation unit therefore includes every
case in its own namespace, with the headers of all cases at its head, and is compiled twice: without
FRUGAL_REJECT, when it must compile, and with it, when every diagnostic is assigned to the case whose
file it names.

The unit only ever proves a case; it never fails one. A case that it does not prove is compiled alone
(run.py), so ambiguities here cost time but not correctness:

* a diagnostic that names no case, or two, belongs to none;
* of two cases that share an instantiation only the first gets a diagnostic;
* g++ does not repeat `required from here` for a second error of one instantiation;
* a case whose control does not compile in the unit leaves it, and the rest is compiled again.
"""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)

# Constructs that must be at global scope: a specialisation or an instantiation of another
# namespace's template, and a namespace of a library. A construct missed here costs a second round.
GLOBAL = re.compile(
    r"^(?:extern\s+)?template\s*(?:<\s*>)?\s*(?:struct|class)\s+\w+::"
    r"|^(?:inline\s+)?namespace\s+(?:frugal|std|torch|at|c10)\b(?!\s*=)",
    re.MULTILINE,
)
# Constructs that would affect the cases after it.
PREPROCESSOR = re.compile(r"^[ \t]*#[ \t]*(?:define|undef|pragma|line)\b", re.MULTILINE)

# How often the unit is compiled without the cases that broke it, before all are compiled alone.
ROUNDS = 4
# Of more cases the unit must prove some.
MOST_ALONE = 20

# `file:line:column: error: ...`, and `cc1plus: error: ...`, which has no position.
HEAD = re.compile(
    r"^(?:.+?:\d+:(?:\d+:)?|[\w+.-]+:) "
    r"(fatal error|error|warning|note|sorry, unimplemented|internal compiler error): "
)
SOURCE_LINE = re.compile(r"^ *(?:\d+|\+{3})? \|")


@dataclass(frozen=True)
class Case:
    """A file of tests/reject: its text, and the sentences that the compiler must print."""

    source: Path
    text: str
    expected: tuple[str, ...]

    @staticmethod
    def read(source: Path) -> "Case":
        text = source.read_text()
        expected = re.findall(r"^// expect: (.+?)\s*$", text, re.MULTILINE)
        return Case(source.resolve(), text, tuple(expected))


@dataclass(frozen=True)
class Diagnostic:
    """One error, warning or the like, with the lines of context before it and the notes after."""

    severity: str
    text: str


def compile_source(command: list[str], source: Path, *extra: str) -> subprocess.CompletedProcess:
    """Compiles the source for its diagnostics alone, which go to stdout."""
    return subprocess.run(
        [*command, *extra, "-fsyntax-only", str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # `required from` and `error:` are parsed: they must not be translated.
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )


def is_clang(command: list[str]) -> bool:
    version = subprocess.run([command[0], "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return "clang" in version.stdout


def why_alone(case: Case) -> str:
    """Why the case cannot be in the unit; empty if it can."""
    if malformed(case):
        return malformed(case)
    if PREPROCESSOR.search(case.text):
        return "it changes the preprocessor for the cases after it"
    condition = CONDITION.search(case.text)
    if condition and INCLUDE.search(case.text, condition.start()):
        return "it includes a header under a condition"
    return ""


def needs_global_scope(case: Case) -> bool:
    return bool(GLOBAL.search(case.text))


def unit_text(cases: list[Case]) -> str:
    """The translation unit: the headers of all cases, then each case in its namespace.

    Cases that need the global scope come last, so that their names hide nothing of the others. If two
    of them share a name the unit does not compile, and is compiled without them.
    """
    heads: dict[str, None] = {}  # in order, each once
    for case in cases:
        for bracket, name in INCLUDE.findall(case.text):
            here = case.source.parent / name
            heads[f"<{name}>" if bracket == "<" else f'"{here.resolve()}"'] = None
    lines = [f"#include {head}" for head in heads]
    for place, case in enumerate(sorted(cases, key=needs_global_scope)):
        included = f'#include "{case.source}"'
        scope = [f"namespace reject_case_{place} {{", included, "}"]
        lines += [included] if needs_global_scope(case) else scope
    return "\n".join(lines) + "\n"


def diagnostics(output: str) -> list[Diagnostic]:
    """Splits the compiler's output into errors with their context and notes.

    Lines without a severity (`In file included from`, `required from here`) are context of the
    line that follows: of a note, and so of the diagnostic before, or of the next diagnostic. A
    source line, `12 | code`, belongs to the line above it.
    """
    found: list[tuple[str, list[str]]] = []
    context: list[str] = []
    for line in output.splitlines():
        if SOURCE_LINE.match(line) and found and not context:
            found[-1][1].append(line)
            continue
        context.append(line)
        head = HEAD.match(line)
        if head is None:
            continue
        if head[1] != "note":
            found.append((head[1], []))
        if found:
            found[-1][1].extend(context)
        context = []
    if found:
        found[-1][1].extend(context)
    return [Diagnostic(severity, "\n".join(lines)) for severity, lines in found]


def owners(diagnostic: Diagnostic, cases: list[Case]) -> list[Case]:
    """The cases whose file the diagnostic names."""
    return [case for case in cases if f"{case.source}:" in diagnostic.text]


def errors_of(output: str) -> list[Diagnostic]:
    return [found for found in diagnostics(output) if found.severity not in ("warning", "note")]


def said_to(cases: list[Case], output: str) -> dict[Case, str]:
    """The errors of each case: those that name it and no other."""
    said = {case: "" for case in cases}
    for error in errors_of(output):
        named = owners(error, cases)
        if len(named) == 1:
            said[named[0]] += error.text + "\n"
    return said


def malformed(case: Case) -> str:
    """What the file lacks to be a valid case; empty if it is one."""
    if not case.expected:
        return "it has no line '// expect: ...'"
    if not re.search(r"^#\s*ifn?def FRUGAL_REJECT\b", case.text, re.MULTILINE):
        return "it has no '#ifdef FRUGAL_REJECT' and no '#ifndef FRUGAL_REJECT'"
    return ""


def proves(case: Case, said: str) -> bool:
    return all(want in said for want in case.expected)


class BrokenUnit(Exception):
    """The unit proves none of many cases. Compiled alone they would take an hour, unnoticed."""


def proven(cases: list[Case], command: list[str], file: Path) -> set[Case]:
    """The cases that one unit, written to `file`, proves; the rest must be compiled alone."""
    found, error = ask_unit(cases, command, file)
    if not found and len(cases) > MOST_ALONE:
        raise BrokenUnit(f"{file} proves none of {len(cases)} cases: {error}")
    return found


def ask_unit(cases: list[Case], command: list[str], file: Path) -> tuple[set[Case], str]:
    """The cases that the unit proves, and why they are none."""
    error = "no case may be in it"
    unlimited = "-ferror-limit=0" if is_clang(command) else "-fmax-errors=0"
    flags = [*command, unlimited, "-ftemplate-backtrace-limit=0"]
    inside = [case for case in cases if not why_alone(case)]
    for _ in range(ROUNDS):
        if len(inside) < 2:
            break
        file.write_text(unit_text(inside))
        with ThreadPoolExecutor(2) as pool:
            passes = [["-UFRUGAL_REJECT"], ["-DFRUGAL_REJECT"]]
            control, rejected = pool.map(lambda extra: compile_source(flags, file, *extra), passes)
        if control.returncode == 0:
            # Any other status is a compiler that was killed or crashed: it proves nothing.
            said = said_to(inside, rejected.stdout) if rejected.returncode == 1 else {}
            proved = {case for case in inside if proves(case, said.get(case, ""))}
            return proved, rejected.stdout[-2000:]
        errors = errors_of(control.stdout)
        error = errors[0].text if errors else control.stdout[-2000:]
        blamed = {case for each in errors for case in owners(each, inside)}
        if not blamed:
            break
        inside = [case for case in inside if case not in blamed]
    return set(), error
