#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a reader of the headers has to read.

    structure.py             prints the figures, and for each its limit
    structure.py --policies  the lines that each policy's header closes over
    structure.py --check     exit code 1 if a figure is over its limit, or if the table of the protocol in
                             docs/design.md is not that of the code

A header closes over itself and all of our headers that it includes, directly or through others, without the .ipp
files, as with FRUGAL_COMPILED. Limits are the figures of the day when they were set, some with a small margin: they
may be lowered.
"""

import functools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
INCLUDED = re.compile(r"^ *# *include *<(frugal/[^>]*\.hpp)>", re.MULTILINE)
FRAGMENT = 40  # lines: SPDX, includes and namespaces are most of a header that has fewer

# Members of a policy or of its State that the core looks for by these words, and how it looks.
PROBES = (re.compile(r"FRUGAL_DECLARED\((\w+)\)"), re.compile(r"requires \{ (?:requires |typename )?P::(\w+)"),
          re.compile(r"typename P::(kind|listens|strategy)\b"), re.compile(r"typename State::(\w+)"))
NOT_MEMBERS = {"member", "template"}  # the parameter of the macro, and a template of any name


@functools.cache
def text_of(name: str) -> str:
    return (INCLUDE / name).read_text(encoding="utf-8")


@functools.cache
def lines_of(name: str) -> int:
    return text_of(name).count("\n")


@functools.cache
def closure(name: str) -> frozenset[str]:
    seen, waiting = set(), [name]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += INCLUDED.findall(text_of(each))
    return frozenset(seen)


def closed_lines(name: str) -> int:
    return sum(map(lines_of, closure(name)))


def names(pattern: str) -> list[str]:
    return sorted(str(each.relative_to(INCLUDE)) for each in INCLUDE.rglob(pattern))


def policies() -> list[str]:
    """The headers of policies: those that define a policy and lie in the room itself."""
    return [each for each in names("*.hpp") if re.fullmatch(r"frugal/(policy|report|model|cluster)/\w+\.hpp", each)
            and re.search(r"using kind = |#include <frugal/policy/(clip|optimize|precision|schedule)/", text_of(each))]


def members_in_code() -> set[str]:
    """The members of policies and States that the core asks for."""
    found = set()
    for each in names("*.hpp"):
        for probe in PROBES:
            found.update(probe.findall(text_of(each)))
    return found - NOT_MEMBERS


def members_in_table() -> set[str]:
    page = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    section = page.split("## The protocol")[1].split("\n## ")[0]
    table = section.split("| member |")[1].split("\n\n")[0]
    return {member for row in table.splitlines()[2:] for member in re.findall(r"`(\w+)`", row.split("|")[1])}


def properties_in_code() -> set[str]:
    text = text_of("frugal/core/compose/declared.hpp").split("namespace frugal::property {")[1]
    return set(re.findall(r"^struct (\w+) \{\};", text.split("}  // namespace frugal::property")[0], re.MULTILINE))


def properties_in_table() -> set[str]:
    page = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    table = page.split("| property |")[1].split("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def figures() -> dict[str, int]:
    headers, bodies = names("*.hpp"), names("*.ipp")
    closed = sorted(map(closed_lines, policies()))
    loop = [each for each in headers if each.startswith("frugal/core/loop/")]
    words = re.compile(r"\b(divid\w*|shares?|ranks?)\b", re.IGNORECASE)
    return {
        "headers": len(headers),
        "lines of .hpp and .ipp": sum(map(lines_of, headers + bodies)),
        f"headers of fewer than {FRAGMENT} lines": sum(lines_of(each) < FRAGMENT for each in headers),
        "lines of the longest file": max(map(lines_of, headers + bodies)),
        "headers that name Context": sum(bool(re.search(r"<class Context|Context>|Context::", text_of(each)))
                                         for each in headers),
        "lines that frugal.hpp closes over": closed_lines("frugal/frugal.hpp"),
        "lines that core/run/phases.hpp closes over": closed_lines("frugal/core/run/phases.hpp"),
        "lines that the median policy closes over": closed[len(closed) // 2],
        "policies that close over more than 2000 lines": sum(each > 2000 for each in closed),
        "files of the loop": len(loop),
        "lines of the loop that divide, share or rank": sum(bool(words.search(line)) for each in loop
                                                            for line in text_of(each).splitlines()),
        "members of the protocol": len(members_in_code()),
    }


LIMITS = {
    "headers": 608,
    "lines of .hpp and .ipp": 142000,
    f"headers of fewer than {FRAGMENT} lines": 57,
    "lines of the longest file": 550,
    "headers that name Context": 34,
    "lines that frugal.hpp closes over": 36020,
    "lines that core/run/phases.hpp closes over": 1715,
    "lines that the median policy closes over": 5015,
    "policies that close over more than 2000 lines": 54,
    "files of the loop": 7,
    "lines of the loop that divide, share or rank": 0,
    "members of the protocol": 23,
}


def check() -> int:
    wrong = [f"{name}: {value}, and the limit is {LIMITS[name]}" for name, value in figures().items()
             if value > LIMITS[name]]
    code, table = members_in_code(), members_in_table()
    wrong += [f"docs/design.md lacks the member `{each}` of the protocol" for each in sorted(code - table)]
    wrong += [f"docs/design.md has the member `{each}`, for which no header looks" for each in sorted(table - code)]
    if (differ := properties_in_code() ^ properties_in_table()):
        wrong.append(f"docs/design.md and core/compose/declared.hpp differ in the properties {sorted(differ)}")
    for each in wrong:
        print(f"structure: {each}", file=sys.stderr)
    return 1 if wrong else 0


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        return check()
    if sys.argv[1:] == ["--policies"]:
        for lines, name in sorted((closed_lines(each), each) for each in policies()):
            print(f"{lines:7} {len(closure(name)):5}  {name}")
        return 0
    if sys.argv[1:]:
        sys.exit(__doc__)
    for name, value in figures().items():
        print(f"{value:8} {LIMITS.get(name, ''):8}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
