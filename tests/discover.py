#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists a doctest program's files for ctest: discover.py PROGRAM LABEL TESTS OUTPUT.cmake

One test for each file of test cases: to load LibTorch takes longer than most cases do, and a run in
which nothing changed should be over in seconds. doctest brings a CMake module that lists cases; a
filter that matches nothing passes there, and here it fails.
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as xml


def main() -> int:
    program, label, tests, output = sys.argv[1:]
    listing = subprocess.run(
        [program, "--list-test-cases", "--reporters=xml"],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    cases = list(xml.fromstring(listing.stdout).iter("TestCase"))
    names = [case.get("name") for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        print(f"discover: in {label} two test cases are named {twice[0]!r}", file=sys.stderr)
        return 1
    files = sorted({case.get("filename") for case in cases})
    if not files:
        print(f"discover: {program} has no test case", file=sys.stderr)
        return 1
    with open(output, "w", encoding="utf-8") as script:
        for file in files:
            # Absolute, except for what a #line names, as in programs made from a page.
            place = os.path.relpath(file, tests) if os.path.isabs(file) else file
            name = os.path.splitext(place)[0].removeprefix(label + os.sep)
            test = f"[==[{label}: {name}]==]"
            script.write(
                f"add_test({test} [==[{program}]==] [==[--source-file={file}]==])\n"
            )
            # Tests run side by side: a thread that spins while it waits takes another's core.
            script.write(
                f"set_tests_properties({test} PROPERTIES TIMEOUT 900"
                ' ENVIRONMENT "OMP_WAIT_POLICY=PASSIVE"'
                ' FAIL_REGULAR_EXPRESSION "test cases: +0 ")\n'
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
