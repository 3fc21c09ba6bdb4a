#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include graph of the headers: no include points up, there are no cycles, and the loop names no
policy."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "include" / "frugal"
TESTS = ROOT.parents[1] / "tests"
INCLUDE = re.compile(r"#include <frugal/([^>]+)>")

# Folders, and the others that each may include; docs/design.md says what lives where. The headers of
# include/frugal itself are the front, which includes all; of them, those in FOR_ALL may be included by
# all, and trainer.hpp by report/ and search/, whose functions take or make a trainer; recipes.hpp by search/.
CORE = {"core/source", "core/compose", "core/libtorch", "core/state", "core/run", "core/measure", "core/loop"}
POLICY = {"base", "checkpoint", "data", "metrics"} | CORE
MAY_INCLUDE = {
    "base": set(),
    "checkpoint": {"base"},
    "core/source": {"base"},
    "core/compose": {"base"},
    "core/libtorch": {"base", "core/source"},
    "core/state": {"core/libtorch"},
    "core/run": {"base", "core/source", "core/compose", "core/libtorch", "core/state"},
    "core/measure": {"base", "core/source", "core/compose", "core/libtorch", "core/state", "core/run"},
    "core/loop": {"base", "core/source", "core/compose", "core/libtorch", "core/state", "core/run",
                  "core/measure"},
    "data": {"base", "checkpoint", "core/source"},
    "metrics": {"core/source", "core/compose", "core/run"},
    "losses": {"core/source", "core/run"},
    "policy": POLICY,
    "model": POLICY | {"policy"},
    "models": {"core/libtorch", "core/source", "core/run", "model", "policy"},
    "cluster": POLICY | {"policy", "model"},
    "report": POLICY | {"policy", "model", "report/*"},
    "report/budget": {"base", "core/run", "policy", "report/notify"},
    "report/compare": {"base", "core/compose", "core/libtorch", "core/run", "policy"},
    "report/cost_meter": {"base", "checkpoint", "report/energy", "report/plan"},
    "report/doctor": {"base", "core/compose", "policy"},
    "report/energy": {"base"},
    "report/html": {"base", "data"},
    "report/notify": {"base"},
    "report/plan": {"base", "checkpoint"},
    "report/profile": {"base", "core/libtorch", "core/run", "policy"},
    "report/progress": {"base", "policy"},
    "report/sink": {"base", "checkpoint", "core/compose", "core/libtorch", "core/run", "core/state", "policy"},
    "apply": {"base", "core/compose", "core/run"},
    "step": POLICY | {"policy", "model"},
    "search": POLICY | {"policy", "model", "search/*"},
    "search/results": {"base", "report/html", "search/trials"},
    "search/sampler": {"base", "data", "search/trials"},
    "search/schedule": {"base", "search/trials"},
    "search/trials": {"base"},
}
FOR_ALL = {"error.hpp", "inline.hpp", "version.hpp"}
# The same within data/: its rooms include its own headers, and these other rooms of it. Headers of data/
# itself may include sampling/, whose orders they use, and no other.
DATA_MAY_INCLUDE = {
    "": {"sampling"},
    "sampling": set(),
    "loading": {"sampling"},
    "shards": {"sampling"},
    "tables": {"shards"},
    "arrow": {"sampling", "shards", "tables"},
    "text": set(),
    "image": {"sampling"},
    "curate": {"sampling"},
    "avro": {"shards", "tables"},
    "cache": {"sampling", "shards"},
}


def room_of(header: str) -> str:
    """The folder that MAY_INCLUDE lists: of core/, report/ and search/ the inner one; "" for the front."""
    folders = header.split("/")[:-1]
    return "/".join(folders[:2 if folders[:1] in (["core"], ["report"], ["search"]) else 1])


def may_include(header: str, other: str) -> bool:
    room, to = room_of(header), room_of(other)
    if room in ("", to) or other in FOR_ALL:
        return True
    allowed = MAY_INCLUDE.get(room, set())
    if room in ("report", "search") and other == "trainer.hpp" or room == "search" and other == "recipes.hpp":
        return True
    return to in allowed or f"{to.split('/')[0]}/*" in allowed


def includes() -> dict[str, list[str]]:
    """What each header includes, with what the .ipp file of its name includes."""
    found = {}
    for each in sorted(ROOT.rglob("*.hpp")):
        bodies = each.with_suffix(".ipp")
        name, its_bodies = str(each.relative_to(ROOT)), str(bodies.relative_to(ROOT))
        text = each.read_text() + (bodies.read_text() if bodies.exists() else "")
        found[name] = [other for other in INCLUDE.findall(text) if other not in (name, its_bodies)]
    return found


def cycle_in(graph: dict[str, list[str]]) -> list[str]:
    """The headers of a cycle; empty if there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(header: str) -> list[str]:
        if header in path:
            return path[path.index(header):] + [header]
        if header in done:
            return []
        path.append(header)
        for each in graph.get(header, []):
            if found := visit(each):
                return found
        path.pop()
        done.add(header)
        return []

    for header in graph:
        if found := visit(header):
            return found
    return []


class Rooms(unittest.TestCase):
    def test_no_arrow_points_up(self):
        upward = [f"{header} includes {each}" for header, all_of in includes().items()
                  for each in all_of if not may_include(header, each)]
        self.assertEqual(upward, [])

    def test_no_arrow_points_up_within_data(self):
        def room(header: str) -> str:
            return header.split("/")[1] if header.count("/") > 1 else ""
        upward = [f"{header} includes {each}" for header, all_of in includes().items()
                  for each in all_of
                  if header.startswith("data/") and each.startswith("data/")
                  and room(each) not in {"", room(header)} | DATA_MAY_INCLUDE.get(room(header), set())]
        self.assertEqual(upward, [])

    def test_every_room_is_known(self):
        self.assertEqual({room_of(each) for each in includes()} - {""}, set(MAY_INCLUDE))
        self.assertEqual({each.split("/")[1] for each in includes() if re.match("data/.*/", each)} | {""},
                         set(DATA_MAY_INCLUDE))

    def test_nothing_includes_itself_on_a_way_round(self):
        self.assertEqual(cycle_in(includes()), [])
        self.assertEqual(cycle_in({"a": ["b"], "b": ["c"], "c": ["b"]}), ["b", "c", "b"])

    def test_bodies_are_in_the_file_of_their_header(self):
        for bodies in sorted(ROOT.rglob("*.ipp")):
            name = str(bodies.relative_to(ROOT))
            with self.subTest(name):
                header = bodies.with_suffix(".hpp").read_text()
                self.assertTrue(header.endswith(f"#ifndef FRUGAL_COMPILED\n#include <frugal/{name}>\n#endif\n"))
                first = INCLUDE.search(bodies.read_text())
                self.assertEqual(first and first[1], name.replace(".ipp", ".hpp"))
                # Every definition is marked: without the mark a second file of a program would define it again.
                lines = bodies.read_text().splitlines()
                unmarked = [line for before, line in zip(lines, lines[1:])
                            if re.match(r"[A-Za-z_].*\(", line) and not before.startswith("FRUGAL_INLINE ")
                            and not line.startswith(("FRUGAL_INLINE ", "namespace ", "using ", "static_assert("))]
                self.assertEqual(unmarked, [])
        marked_elsewhere = [str(each.relative_to(ROOT)) for each in sorted(ROOT.rglob("*.hpp"))
                            if each.name not in ("inline.hpp", "src.hpp", "src_cluster.hpp")
                            and "FRUGAL_INLINE" in each.read_text()]
        self.assertEqual(marked_elsewhere, [])

    def test_each_body_is_in_one_file_of_the_compiled_library(self):
        def closure(front: list[str], room: str) -> set[str]:
            """What these headers include, with the .ipp files of headers whose path begins with `room`."""
            seen: set[str] = set()
            while front:
                if (header := front.pop()) in seen:
                    continue
                seen.add(header)
                bodies = (ROOT / header).with_suffix(".ipp")
                front += INCLUDE.findall((ROOT / header).read_text())
                if header.startswith(room) and bodies.exists():
                    front += INCLUDE.findall(bodies.read_text())
            return {each for each in seen if each.endswith(".hpp") and (ROOT / each).with_suffix(".ipp").exists()}

        without, of_cluster = (ROOT / "src_cluster.hpp").read_text().split("#undef FRUGAL_COMPILED")
        all_but_cluster = closure(INCLUDE.findall((ROOT / "src.hpp").read_text()), "")
        declared = closure(INCLUDE.findall(without), "no room")
        cluster = closure(INCLUDE.findall(of_cluster), "cluster/")
        self.assertEqual({each for each in all_but_cluster if each.startswith("cluster/")}, set())
        self.assertEqual({each for each in cluster if not each.startswith("cluster/")} - declared, set())
        self.assertEqual({each for each in cluster if not each.startswith("cluster/")} - all_but_cluster, set())
        self.assertEqual({str(each.relative_to(ROOT).with_suffix(".hpp")) for each in (ROOT / "cluster").rglob("*.ipp")},
                         {each for each in cluster if each.startswith("cluster/")})

    def test_torch_free_tests_include_no_libtorch(self):
        """Only the sanitizers build them without LibTorch, which comes late in CI."""
        way: dict[Path, list[str]] = {}

        def way_to_torch(file: Path) -> list[str]:
            if file not in way:
                way[file] = []
                for each in re.findall(r"^\s*#\s*include\s*[<\"]([^>\"]+)", file.read_text(), re.MULTILINE):
                    if re.match(r"(ATen|c10|torch)/", each):
                        way[file] = [str(file.relative_to(ROOT.parents[1])), each]
                    else:
                        found = [at for at in (file.parent / each, ROOT.parent / each, TESTS / each) if at.is_file()]
                        if found and (rest := way_to_torch(found[0])):
                            way[file] = [str(file.relative_to(ROOT.parents[1]))] + rest
                    if way[file]:
                        break
            return way[file]

        marked = [each for each in sorted(TESTS.rglob("*.cpp"))
                  if "// torch-free" in "".join(each.read_text().splitlines(keepends=True)[:5])]
        self.assertGreater(len(marked), 100)
        self.assertEqual([" > ".join(way_to_torch(each)) for each in marked if way_to_torch(each)], [])

    def test_the_loop_names_no_policy(self):
        named = [f"{each.relative_to(ROOT)}:{at}" for room in sorted(CORE)
                 for each in sorted((ROOT / room).rglob("*.?pp"))
                 for at, line in enumerate(each.read_text().splitlines(), 1)
                 if not line.lstrip().startswith("//")
                 and ("kinds::" in line or "<frugal/policy/" in line)]
        self.assertEqual(named, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
