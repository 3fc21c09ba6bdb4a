#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The targets that `./dev test -R REGEX` has to build, and the tests that it runs.

    focus.py BUILD REGEX

prints one line for the program of each matching file of tests, "alone TARGET", one for each other
target that a matching test needs, "target TARGET", one for each such test, "other NAME", and one
for each room, "room LABEL": the others are the matching tests without such a label.
Room programs contain many files in a few translation units, which is the fastest way to build all of
them and the slowest to build one; so each file also has its own program (frugal_alone in
CMakeLists.txt).
"""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path


def alone_of(build: Path) -> dict[str, str]:
    """Names of tests, and the targets that contain them alone."""
    lines = (build / "alone" / "targets.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines if line)


def tests_of(build: Path) -> list[dict]:
    """Every test as ctest lists it; nothing needs to be built for that."""
    told = subprocess.run(
        ["ctest", "--test-dir", str(build), "--show-only=json-v1"], stdout=subprocess.PIPE, check=True
    ).stdout
    tests = json.loads(told)["tests"]
    for test in tests:
        # ctest has no information about a program that is not built yet.
        test.setdefault("command", unbuilt_commands(build).get(test["name"], []))
    return tests


@functools.cache
def unbuilt_commands(build: Path) -> dict[str, list[str]]:
    """The commands as CMake recorded them for ctest."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in build.rglob("CTestTestfile.cmake"))
    calls = re.findall(r"^add_test\(\[(=*)\[(.*?)\]\1\] (.*)\)$", text, re.M)
    return {name: re.findall(r'"([^"]*)"', words) for _, name, words in calls}


def targets_of(test: dict, build: Path) -> set[str]:
    """The programs and libraries of this build that a test's command names."""
    words = test.get("command", [])
    built = [Path(word) for word in words if Path(word).is_absolute() and build in Path(word).parents]
    # A path next to a program in the build folder that has an extension is a file, not a target.
    names = {path.name for path in built if not path.suffix}
    names |= {path.stem.removeprefix("lib") for path in built if path.suffix == ".so"}
    labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
    for label in labels[0] if labels else []:
        if label.startswith("reject_"):
            names |= {f"reject_probe_{label.removeprefix('reject_')}"}
    return names


def runs_a_room(test: dict) -> bool:
    """Whether it runs all files of a room. Alone they run without it."""
    return any(word.startswith("--each-file=") for word in test.get("command", []))


def needed(build: Path, regex: str, alone: dict[str, str], tests: list[dict]) -> list[str]:
    wanted = re.compile(regex)
    lines = [f"alone {target}" for name, target in alone.items() if wanted.search(name)]
    others = [
        test
        for test in tests
        if wanted.search(test["name"]) and test["name"] not in alone and not runs_a_room(test)
    ]
    targets = set().union(*(targets_of(test, build) for test in others)) if others else set()
    lines += [f"target {target}" for target in sorted(targets)]
    lines += [f"other {test['name']}" for test in others]
    rooms = sorted({name.partition(":")[0] for name in alone}) if lines else []
    return lines + [f"room {room}" for room in rooms]


def main() -> int:
    build, regex = Path(sys.argv[1]).resolve(), sys.argv[2]
    try:
        lines = needed(build, regex, alone_of(build), tests_of(build))
    except re.error as error:
        print(f"focus: {regex!r} is no regular expression: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
