#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What files include, directly or through frugal's headers.

    includes.py INCLUDE NAME=REGEX... < FILES

INCLUDE is the folder of frugal's headers. Prints a line for each file that standard input names, "FILE;NAME;NAME":
the names of the patterns that match the beginning of some <included> file, with its closing bracket.
CMake took 40 s for these walks, in each of ten configurations of CI.
"""

import functools
import re
import sys
from pathlib import Path

INCLUDED = re.compile(r"^ *# *include *<([^>]*>)", re.MULTILINE)


@functools.cache
def included_by(file: Path) -> tuple[str, ...]:
    try:
        return tuple(INCLUDED.findall(file.read_text(encoding="utf-8")))
    except OSError:
        return ()


def closure(file: Path, include: Path) -> set[str]:
    """Every <name> that the file includes, itself or through a header of frugal."""
    names: set[str] = set()
    waiting = [file]
    while waiting:
        for name in included_by(waiting.pop()):
            if name not in names:
                names.add(name)
                if name.startswith("frugal/"):
                    waiting.append(include / name[:-1])
    return names


def main() -> int:
    include = Path(sys.argv[1])
    patterns = {name: re.compile(regex) for name, _, regex in (word.partition("=") for word in sys.argv[2:])}
    for line in sys.stdin.read().splitlines():
        names = closure(Path(line), include)
        found = [name for name, regex in patterns.items() if any(map(regex.match, names))]
        print(";".join([line, *found]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
