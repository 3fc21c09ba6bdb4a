#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py must fail a file that proves nothing: each of these, for the stated reason.

Planted files are compiled as ctest does it, by run.py: one alone, several in a unit.
"""

import argparse
import json
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional
from unittest import mock

from run import Digests, build_command, compile_cases, load
from unit import Case, said_to

GOOD = """// expect: frugal: an int is no char.
template <class T> void check() { static_assert(sizeof(T) == 1, "frugal: an int is no char."); }
void control() { check<char>(); }
#ifdef FRUGAL_REJECT
void rejected() { check<int>(); }
#endif
"""
NO_CONTROL = GOOD.replace("check<char>", "check<long>")
COMPILES = GOOD.replace("check<int>", "check<char>")
OTHER_WORDS = GOOD.replace('"frugal: an int is no char."', '"no"')
PLAIN_ASSERT = """// expect: frugal: not in a template.
#ifdef FRUGAL_REJECT
static_assert(sizeof(int) == 1, "frugal: not in a template.");
#endif
"""
# The second file that instantiates Check<int> gets no diagnostic for it.
CHECK = """#pragma once
template <class T> struct Check { static_assert(sizeof(T) == 1, "frugal: an int is no char."); };
"""
SHARES = """// expect: frugal: an int is no char.
#include "check.hpp"
Check<char> control;
#ifdef FRUGAL_REJECT
Check<int> rejected;
#endif
"""
OWN_TYPE = SHARES.replace("#include", "struct Own { char bytes[2]; };\n#include").replace("int>", "Own>")
# Its error is in the text of another case, and names both.
INCLUDES_ANOTHER = """// expect: frugal: an int is no char.
#include "a.cpp"
#ifdef FRUGAL_REJECT
void blames_another() { check<int>(); }
#endif
"""
TRAITS = """#pragma once
namespace lib {
template <class T> struct traits;
template <class T> struct User {
  static_assert(traits<T>::good, "frugal: an int is no char.");
};
}
"""
SPECIALISES = """// expect: frugal: an int is no char.
#include "traits.hpp"
struct Row {};
struct Hidden {};
template <> struct lib::traits<Row> { static constexpr bool good = true; };
template <> struct lib::traits<Hidden> { static constexpr bool good = false; };
lib::User<Row> control;
#ifdef FRUGAL_REJECT
lib::User<Hidden> rejected;
#endif
"""
DEFINES = GOOD.replace("template", "#define CHAR char\ntemplate", 1).replace("<char>", "<CHAR>")


@dataclass
class Scene:
    """Files compiled together, the fault of each, if any, and how each was compiled."""

    files: dict[str, str]
    faults: dict[str, str] = field(default_factory=dict)
    how: Optional[str] = None  # one word for each file, in their order


# A single file is compiled alone: the unit begins with two.
SCENES = {
    "a good file passes": Scene({"a": GOOD}, how="alone"),
    "a control that fails is reported": Scene({"a": NO_CONTROL}, {"a": "the control"}),
    "code that compiles after all is reported": Scene(
        {"a": COMPILES}, {"a": "it compiles, and must not"}
    ),
    "a message that lacks the sentence is reported": Scene({"a": OTHER_WORDS}, {"a": "does not say"}),
    "every expected line is asked for": Scene(
        {"a": "// expect: frugal: and this.\n" + GOOD}, {"a": "does not say: frugal: and this."}
    ),
    "a file without expectations is reported": Scene(
        {"a": GOOD.replace("expect", "except")}, {"a": "no line"}
    ),
    "a file without FRUGAL_REJECT is reported": Scene(
        {"a": GOOD.replace("FRUGAL_REJECT", "X")}, {"a": "#ifdef"}
    ),
    "good files pass in one unit": Scene(
        {"a": GOOD, "b": GOOD, "c": PLAIN_ASSERT}, how="unit unit unit"
    ),
    "files that share an instantiation pass, one of them alone": Scene(
        {"a": SHARES, "b": SHARES}, how="unit alone"
    ),
    "instantiations with types of one's own are not shared": Scene(
        {"a": OWN_TYPE, "b": OWN_TYPE}, how="unit unit"
    ),
    "an error in a system header belongs to who instantiates it": Scene(
        {
            "a": OWN_TYPE.replace("check.hpp", "system.hpp"),
            "b": OWN_TYPE.replace("check.hpp", "system.hpp"),
        },
        how="unit unit",
    ),
    "a control that fails takes no other file along": Scene(
        {"a": GOOD, "b": NO_CONTROL, "c": GOOD}, {"b": "the control"}, "unit alone unit"
    ),
    "a brace that is missing takes no other file along": Scene(
        {"a": GOOD, "b": GOOD + "namespace open {\n", "c": GOOD}, {"b": "the control"}
    ),
    "a brace too many takes no other file along": Scene(
        {"a": GOOD, "b": GOOD + "}\n", "c": GOOD}, {"b": "the control"}
    ),
    "code that compiles after all is reported among good files": Scene(
        {"a": GOOD, "b": COMPILES, "c": GOOD}, {"b": "it compiles, and must not"}, "unit alone unit"
    ),
    "a sentence that is said of another file does not count": Scene(
        {"a": GOOD, "b": OTHER_WORDS}, {"b": "does not say"}, "unit alone"
    ),
    "all sentences have to be said of the same file": Scene(
        {"a": PLAIN_ASSERT, "b": "// expect: frugal: not in a template.\n" + GOOD},
        {"b": "does not say: frugal: not in a template."},
        "unit alone",
    ),
    "an error that names two files proves neither": Scene(
        {"a": COMPILES, "b": INCLUDES_ANOTHER}, {"a": "it compiles, and must not"}, "alone alone"
    ),
    "files without expectations or FRUGAL_REJECT are reported among good ones": Scene(
        {
            "a": GOOD.replace("expect", "except"),
            "b": GOOD.replace("FRUGAL_REJECT", "X"),
            "c": GOOD,
            "d": GOOD,
        },
        {"a": "no line", "b": "#ifdef"},
        "alone alone unit unit",
    ),
    "what is not `#ifdef` is reported though its error is the right one": Scene(
        {"a": GOOD.replace("#ifdef", "#if defined").replace("FRUGAL_REJECT", "(FRUGAL_REJECT)")}
        | {"b": GOOD, "c": GOOD},
        {"a": "#ifdef"},
        "alone unit unit",
    ),
    "a file that specialises a template of a library stands at global scope": Scene(
        {"a": SPECIALISES, "b": GOOD}, how="unit unit"
    ),
    "two that specialise, and share a name, pass alone": Scene(
        {"a": SPECIALISES, "b": SPECIALISES, "c": GOOD, "d": GOOD}, how="alone alone unit unit"
    ),
    "a file that defines a macro is asked alone": Scene(
        {"a": DEFINES, "b": GOOD, "c": GOOD}, how="alone unit unit"
    ),
}

# Possible compiler output about a.cpp and b.cpp, and the words that then belong to a.cpp.
SAYINGS = {
    "a note belongs to the error before it": (
        "x.hpp:1:1: error: one\n{a}:2:2: note: requested here\nx.hpp:1:1: error: two\n"
        "{b}:2:2: note: requested here\n",
        ["one"],
    ),
    "context belongs to the error after it": (
        "{a}:2:2:   required from here\nx.hpp:1:1: error: one\n"
        "{b}:2:2:   required from here\nx.hpp:1:1: error: two\n",
        ["one"],
    ),
    "an error without context belongs to nobody": (
        "{a}:2:2:   required from here\nx.hpp:1:1: error: one\nx.hpp:1:1: error: two\n",
        ["one"],
    ),
    "an error that names two files belongs to neither": (
        "{a}:1:1: error: one\n{b}:2:2: note: declared here\n{a}:1:1: error: two\n",
        ["two"],
    ),
    "context of a note does not reach the next error": (
        "{b}:1:1: error: two\n{a}:2:2:   required from here\nx.hpp:1:1: note: see\n"
        "{a}:1:1: error: one\n",
        ["one"],
    ),
    "a source line belongs to the error above it": (
        "{a}:1:1: error: one\n    1 | three\n      | ^\n{b}:1:1: error: two\n    1 | four\n",
        ["one", "three"],
    ),
    "a warning is no error": ("{a}:1:1: warning: two\n{a}:1:1: error: one\n", ["one"]),
}


def plant(folder: Path, files: dict[str, str], check: str = CHECK) -> list[Case]:
    (folder / "check.hpp").write_text(check)
    (folder / "traits.hpp").write_text(TRAITS)
    (folder / "system.hpp").write_text(CHECK.replace("template", "#pragma GCC system_header\ntemplate"))
    for name, text in files.items():
        (folder / f"{name}.cpp").write_text(text)
    return [Case.read(folder / f"{name}.cpp") for name in files]


def judge(case: Case, results: Path) -> list[str]:
    """What is wrong with the case by its result, as the test of the case reads it."""
    file = results / (case.source.name + ".json")
    passed = file.exists() and re.search(r'\n "verdict": "passed"\n', file.read_text())
    return [] if passed else load(results, case).get("faults") or ["no result"]


def faults_of_scene(scene: Scene, command: list[str]) -> list[str]:
    """Differences between run.py's treatment of the scene and the expected one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = plant(folder, scene.files)
        groups = compile_cases("plain", cases, command, folder / "results", 1)
        found = {case.source.stem: judge(case, folder / "results") for case in cases}
    wrong = []
    for stem, faults in found.items():
        want = scene.faults.get(stem)
        if bool(faults) != bool(want) or (want and want not in faults[0]):
            wrong.append(f"{stem}.cpp: wanted {want!r}, got {faults}")
    how = " ".join(next(how for how, names in groups.items() if stem in names) for stem in found)
    if scene.how and how != scene.how:
        wrong.append(f"asked {how!r}, not {scene.how!r}")
    return wrong


def faults_of_saying(saying: str, wanted: list[str]) -> list[str]:
    a, b = (Case(Path(f"/planted/{name}.cpp"), "", ()) for name in "ab")
    said = said_to([a, b], saying.format(a=a.source, b=b.source))[a]
    got = [word for word in ("one", "two", "three", "four") if word in said]
    return [] if got == wanted else [f"wanted {wanted}, got {got}"]


def faults_of_memory(command: list[str]) -> list[str]:
    """A result counts for what was compiled, and for nothing else."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = folder / "results"
        files = {"a": SHARES, "b": NO_CONTROL, "c": GOOD}
        cases = plant(folder, files)

        def expect(what: str, case: Case, want: str) -> None:
            faults = judge(case, results)
            if bool(faults) != bool(want) or (want and want not in faults[0]):
                wrong.append(f"{what}: wanted {want!r}, got {faults}")

        def compile_again(want: dict, flags: list[str] = command, check: str = CHECK) -> None:
            groups = compile_cases("plain", plant(folder, files, check), flags, results, 1)
            if groups != want:
                wrong.append(f"asked {groups}, not {want}")

        expect("a missing result", cases[0], "no result")
        compile_again({"unit": ["a", "c"], "alone": ["b"], "unchanged": []})
        expect("a result", cases[0], "")
        compile_again({"unit": [], "alone": ["b"], "unchanged": ["a", "c"]})
        compile_again({"unit": ["a", "c"], "alone": ["b"], "unchanged": []}, [*command, "-DOTHER"])
        compile_again({"unit": ["a", "c"], "alone": ["b"], "unchanged": []})
        files.update(c=GOOD + "\n")
        compile_again({"unit": [], "alone": ["b", "c"], "unchanged": ["a"]})
        header = CHECK + "\n"
        compile_again({"unit": [], "alone": ["a", "b"], "unchanged": ["c"]}, check=header)
        with mock.patch("run.proven", side_effect=KeyboardInterrupt):
            try:
                compile_again({})
            except KeyboardInterrupt:
                expect("what has changed, when nobody could be asked", cases[0], "no result")
        files.update(b=GOOD, c=PLAIN_ASSERT)
        compile_again({"unit": ["a", "b", "c"], "alone": [], "unchanged": []})
        (results / "a.cpp.json").write_text('{"digest": "')
        expect("half a result", cases[0], "no result")
        (results / "a.cpp.json").write_text(json.dumps({"digest": Digests(command).of(cases[0])}, indent=1))
        expect("a result without a verdict", cases[0], "no result")
    return wrong


def faults_of_command() -> list[str]:
    """The compiler's call begins at the compiler, whatever launches it."""
    with tempfile.TemporaryDirectory() as name:
        commands = Path(name) / "compile_commands.json"
        call = "python3 /m/meter.py /log -- ccache /usr/bin/c++ -I/x -Werror -o p.o -c /p.cpp"
        commands.write_text(json.dumps([{"file": "/p.cpp", "command": call}]))
        got = build_command(commands, "/p.cpp", "/usr/bin/c++")
    return [] if got == ["/usr/bin/c++", "-I/x"] else [f"got {got}"]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--compiler", required=True)
    command = [arguments.parse_args().compiler, "-std=c++20"]
    found = {name: faults_of_scene(scene, command) for name, scene in SCENES.items()}
    found.update({name: faults_of_saying(*saying) for name, saying in SAYINGS.items()})
    found["results"] = faults_of_memory(command)
    found["the command line"] = faults_of_command()
    for name, faults in found.items():
        for fault in faults:
            print(f"self_test: {name}: {fault}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
