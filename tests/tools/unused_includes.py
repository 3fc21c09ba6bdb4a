#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headers with unused includes: unused_includes.py --torch FOLDER [HEADER...]

clang-tidy's include-cleaner finds them; it does not know headers that exist for what they include.
A header is looked at as with FRUGAL_COMPILED, without its .ipp file, and each .ipp file by itself. These are
excluded: LibTorch's (ATen/ATen.h stands for some hundreds), core/compose/policy.hpp (the
protocol), and headers that only include others (frugal.hpp, report.hpp). Includes for the
reader's sake have "IWYU pragma: keep".
Exit codes: 0 there is none; 1 there are some; 2 clang-tidy could not be run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FINDING = re.compile(r"^(.+?):(\d+):\d+: (?:warning|error): (.*)$")
UMBRELLA = re.compile(r"<(?:ATen|torch|c10)/|<frugal/compose/policy\.hpp>")


def has_own_code(text: str) -> bool:
    return any(line and not line.startswith(("#", "//")) for line in text.splitlines())


def unused(header: Path, tidy: str, torch: Path) -> tuple[list[str], str]:
    """Its unused includes, and what went wrong."""
    lines = header.read_text().splitlines()
    if not has_own_code("\n".join(lines)):
        return [], ""
    api = torch / "include" / "torch" / "csrc" / "api" / "include"
    flags = ["-xc++", "-std=c++20", "-D_GLIBCXX_USE_CXX11_ABI=1", "-Wno-pragma-once-outside-header", "-DFRUGAL_COMPILED"]
    flags += ["-isystem", str(torch / "include"), "-isystem", str(api), "-I", str(ROOT / "include")]
    command = [tidy, "--quiet", "--checks=-*,misc-include-cleaner", str(header), "--", *flags]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    found, broken = [], ""
    for file, number, what in (m.groups() for m in map(FINDING.match, run.stdout.splitlines()) if m):
        if "clang-diagnostic" in what or Path(file) != header:
            broken = broken or f"{file}:{number}: {what}"
        elif "is not used directly" in what and not UMBRELLA.search(lines[int(number) - 1]):
            found.append(f"{header.relative_to(ROOT)}:{number}: {lines[int(number) - 1]}")
    if run.returncode != 0 and not broken:
        broken = run.stderr.strip() or f"clang-tidy ended with {run.returncode}"
    return found, broken


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--torch", type=Path, required=True, help="folder with include and lib")
    arguments.add_argument("headers", type=Path, nargs="*", help="all of include/, if none is given")
    options = arguments.parse_args()
    tidy = shutil.which("clang-tidy-19")
    if tidy is None:
        print("unused_includes: there is no clang-tidy-19. On Debian: apt-get install clang-tidy-19.")
        return 2
    headers = [each.resolve() for each in options.headers]
    headers = headers or sorted((ROOT / "include").rglob("*.?pp"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda each: unused(each, tidy, options.torch), headers))
    for found, broken in results:
        for line in found:
            print(f"unused_includes: {line}")
        if broken:
            print(f"unused_includes: {broken}")
    if any(broken for _, broken in results):
        return 2
    return 1 if any(found for found, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
