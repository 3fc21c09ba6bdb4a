#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of each translation unit: processor seconds and peak memory.

    compile_meter.py run LOG COMPILER ARGUMENT...   compiles, and adds a line to LOG
    compile_meter.py report LOG [--most-seconds S --most-mib M]
                                                    prints the five slowest; 1 if one exceeds a limit

CMake calls the first before every compilation (CMAKE_CXX_COMPILER_LAUNCHER), ./dev the second after
each build. A unit from ccache costs next to nothing, and its line says so. With FRUGAL_COMPILER_MALLOC=LIBRARY the
compiler allocates with that library.
"""

import argparse
import json
import os
import sys
from pathlib import Path

SHOWN = 5


def run(log: Path, command: list[str]) -> int:
    # Only the compiler: a program that a build runs may have an allocator of its own, as those of the sanitizers do.
    malloc = os.environ.get("FRUGAL_COMPILER_MALLOC")
    environment = os.environ | {"LD_PRELOAD": malloc} if malloc else os.environ
    pid = os.posix_spawnp(command[0], command, environment)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    output = command[command.index("-o") + 1] if "-o" in command else "?"
    if code == 0 and "-fsyntax-only" in command and not Path(output).exists():
        # The compiler leaves no output, and the build would repeat this each time.
        Path(output).touch()
    unit = {
        "unit": output,
        "seconds": round(usage.ru_utime + usage.ru_stime, 2),
        # Of the largest compiler process, in KiB on Linux.
        "mib": usage.ru_maxrss // 1024,
        "syntax": "-fsyntax-only" in command,
    }
    # One write of less than a page: lines of parallel compilations do not mix.
    with open(log, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(unit) + "\n")
    return code if code >= 0 else 128 - code


def name_of(unit: dict) -> str:
    """The object file for a reader: without CMake's folders around it."""
    parts = [part for part in Path(unit["unit"]).parts if part not in ("CMakeFiles", "Unity", "..")]
    name = "/".join(parts[-3:]).replace(".dir", "").removesuffix(".o")
    return name + (" (-fsyntax-only)" if unit["syntax"] else "")


def report(log: Path, most_seconds: float | None, most_mib: int | None) -> int:
    if not log.exists():
        return 0
    units = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    units.sort(key=lambda unit: -unit["seconds"])
    total = sum(unit["seconds"] for unit in units)
    print(f"   {len(units)} units, {total:.0f} s of a processor; the slowest, and their peak memory:")
    for unit in units[:SHOWN]:
        print(f"   {unit['seconds']:7.1f} s {unit['mib']:6d} MiB  {name_of(unit)}")
    over = 0
    for unit in units:
        for figure, most, what in (("seconds", most_seconds, "s of a processor"), ("mib", most_mib, "MiB")):
            if most is None or unit[figure] <= most:
                continue
            over = 1
            print(f"compile_meter: {name_of(unit)} takes {unit[figure]} {what}, and the limit is {most:g}. "
                  "Split the unit, or take policies out of it; CONTRIBUTING.md says what one may cost.",
                  file=sys.stderr)
    return over


def main(arguments: list[str]) -> int:
    if len(arguments) >= 3 and arguments[0] == "run":
        return run(Path(arguments[1]), arguments[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["report"])
    parser.add_argument("log", type=Path)
    parser.add_argument("--most-seconds", type=float)
    parser.add_argument("--most-mib", type=int)
    options = parser.parse_args(arguments)
    return report(options.log, options.most_seconds, options.most_mib)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
