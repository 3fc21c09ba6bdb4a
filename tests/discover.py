#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists a doctest program's test cases for ctest: discover.py PROGRAM LABEL OUTPUT.cmake

doctest brings a CMake module for this; it breaks on names with brackets or semicolons, which
sentences about tensor shapes have, and a filter that matches nothing passes there.
"""

import subprocess
import sys
import xml.etree.ElementTree as xml


def main() -> int:
    program, label, output = sys.argv[1:]
    listing = subprocess.run(
        [program, "--list-test-cases", "--reporters=xml"],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    names = [case.get("name") for case in xml.fromstring(listing.stdout).iter("TestCase")]
    if not names:
        print(f"discover: {program} has no test case", file=sys.stderr)
        return 1
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        print(f"discover: in {label} two test cases are named {twice[0]!r}", file=sys.stderr)
        return 1
    with open(output, "w", encoding="utf-8") as script:
        for name in names:
            # In a doctest filter a comma separates, and a backslash takes that away.
            pattern = name.replace("\\", "\\\\").replace(",", "\\,")
            test = f"[==[{label}: {name}]==]"
            script.write(f"add_test({test} [==[{program}]==] [==[--test-case={pattern}]==])\n")
            # Tests run side by side: a thread that spins while it waits takes another's core.
            script.write(
                f"set_tests_properties({test} PROPERTIES TIMEOUT 300"
                ' ENVIRONMENT "OMP_WAIT_POLICY=PASSIVE"'
                ' FAIL_REGULAR_EXPRESSION "test cases: +0 ")\n'
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
