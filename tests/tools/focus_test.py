#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""focus.py must build what a test needs, and nothing else."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from focus import needed, unbuilt_commands  # noqa: E402

BUILD = Path("/build")
ALONE = {"policy: spot": "alone_policy__spot", "policy: start": "alone_policy__start"}


def test_named(name: str, *command: str, label: str = "") -> dict:
    properties = [{"name": "LABELS", "value": [label]}] if label else []
    return {"name": name, "command": list(command), "properties": properties}


TESTS = [
    test_named("policy: each file runs in a process of its own", "/build/tests/test_policy",
               "--each-file=/build/tests/verdicts", "policy__spot", "/src/spot.cpp"),
    test_named("policy: spot", "/build/tests/test_policy", "--source-file=/src/spot.cpp"),
    test_named("reject: spot_grace_zero", "/usr/bin/python3", "/src/run.py", label="reject_torch"),
    test_named("fault: a save on a spot machine", "/usr/bin/python3", "/src/run.py", "--program",
               "/build/tests/fault_save", "--shim", "/build/tests/libfrugal_fault.so"),
    test_named("docs: links", "/usr/bin/python3", "/build/compile_commands.json"),
]  # fmt: skip


class Focus(unittest.TestCase):
    def ask(self, regex: str) -> list[str]:
        lines = needed(BUILD, regex, ALONE, TESTS)
        return [line for line in lines if line != "room policy"]

    def test_the_rooms_are_told_so_that_their_tests_are_left_out(self):
        self.assertEqual(needed(BUILD, "links", ALONE, TESTS), ["other docs: links", "room policy"])

    def test_a_file_is_built_alone_and_not_its_room(self):
        self.assertEqual(self.ask("policy: spot"), ["alone alone_policy__spot"])

    def test_what_runs_a_whole_room_is_left_out(self):
        self.assertEqual(self.ask("^policy: "), ["alone alone_policy__spot", "alone alone_policy__start"])
        self.assertEqual(needed(BUILD, "each file runs", ALONE, TESTS), [])

    def test_programs_libraries_and_probes_of_other_tests_are_found(self):
        self.assertEqual(
            self.ask("spot"),
            ["alone alone_policy__spot", "target fault_save", "target frugal_fault",
             "target reject_probe_torch", "other reject: spot_grace_zero",
             "other fault: a save on a spot machine"],
        )  # fmt: skip

    def test_a_file_of_the_build_is_no_target(self):
        self.assertEqual(self.ask("links"), ["other docs: links"])

    def test_a_program_that_is_not_built_yet_is_found_where_cmake_wrote_it(self):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            (build / "CTestTestfile.cmake").write_text(
                'add_test([=[odr: a (b)]=] "/build/tests/test_odr" "x y")\n'
                'set_tests_properties([=[odr: a (b)]=] PROPERTIES  _BACKTRACE_TRIPLES "/src")\n'
            )
            self.assertEqual(
                unbuilt_commands(build), {"odr: a (b)": ["/build/tests/test_odr", "x y"]}
            )

    def test_nothing_matches_nothing(self):
        self.assertEqual(self.ask("no such test"), [])


if __name__ == "__main__":
    unittest.main()
