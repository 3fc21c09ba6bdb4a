#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py must fail a file that proves nothing: each of these, in the way that it says."""

import argparse
import sys
import tempfile
from pathlib import Path

from run import judge

GOOD = """// expect: frugal: an int is no char.
template <class T> void check() { static_assert(sizeof(T) == 1, "frugal: an int is no char."); }
void control() { check<char>(); }
#ifdef FRUGAL_REJECT
void rejected() { check<int>(); }
#endif
"""

CASES = {
    "a good file passes": (GOOD, None),
    "a control that fails is reported": (GOOD.replace("check<char>", "check<long>"), "the control"),
    "code that compiles after all is reported": (
        GOOD.replace("check<int>", "check<char>"),
        "it compiles, and must not",
    ),
    "a message that lacks the sentence is reported": (
        GOOD.replace('"frugal: an int is no char."', '"no"'),
        "does not say",
    ),
    "every expected line is asked for": (
        "// expect: frugal: and this.\n" + GOOD,
        "does not say: frugal: and this.",
    ),
    "a file without expectations is reported": (GOOD.replace("expect", "except"), "no line"),
    "a file without FRUGAL_REJECT is reported": (GOOD.replace("FRUGAL_REJECT", "X"), "#ifdef"),
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--compiler", required=True)
    compiler = arguments.parse_args().compiler
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "case.cpp"
        for name, (text, want) in CASES.items():
            source.write_text(text)
            faults = judge(source, [compiler, "-std=c++20"])
            as_wanted = not faults if want is None else bool(faults) and want in faults[0]
            if not as_wanted:
                failed += 1
                print(f"self_test: {name}: wanted {want!r}, got {faults}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
