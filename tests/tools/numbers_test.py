#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbers of policies are members (docs/design.md): each template with a number in its first place is in
tests/policy/numbers.cpp, which compares the number with a member, or below with a reason."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("policy", "report", "model", "cluster", "search", "metrics")
NUMBER = r"(?:auto|int|unsigned|std::u?int\d+_t|std::size_t|Rational)"
PATTERN = re.compile(rf"^template <{NUMBER}(?:\.\.\.)? (?:\w+)[^>]*>+\n(?:struct|class) (\w+)\b(?!<)", re.MULTILINE)
PACKED = re.compile(rf"^template <Rational \w+, [^>]*\.\.\. \w+>\n(?:struct|class) (\w+)\b(?!<)", re.MULTILINE)

# Tested with several processes, or with a search: their own tests set the member.
ELSEWHERE = {
    "LocalSteps": "tests/cluster/replicate_local.cpp",
    "PowerSGD": "tests/cluster/power_sgd.cpp",
    "Interleaved": "tests/cluster/pipeline.cpp",
    "Eta": "tests/search/schedule/successive_halving.cpp",
}
FIXED = {
    "NofM": "the pattern of a mask is its structure: kernels are for 2 of 4",
    "LinearPace": "the source and the recipe must have the same pace, and have it by the type",
    "RootPace": "as LinearPace",
    "Vary": "members of policies, and no numbers",
}


def names() -> set[str]:
    found = set()
    for folder in FOLDERS:
        for header in (ROOT / "include/frugal" / folder).rglob("*.hpp"):
            text = header.read_text(encoding="utf-8")
            public = re.sub(r"namespace (?:frugal::)?detail(?:::\w+)? \{.*?\n\}  // namespace (?:frugal::)?detail\S*", "", text, flags=re.S)
            found.update(PATTERN.findall(public), PACKED.findall(public))
    return found


class Numbers(unittest.TestCase):
    def test_each_is_compared_with_a_member(self):
        test = (ROOT / "tests/policy/numbers.cpp").read_text(encoding="utf-8")
        missing = sorted(name for name in names() - set(ELSEWHERE) - set(FIXED) if f"{name}<" not in test)
        self.assertEqual(missing, [])

    def test_those_elsewhere_are_there(self):
        for name, file in ELSEWHERE.items():
            self.assertIn(name, (ROOT / file).read_text(encoding="utf-8"))

    def test_lists_name_what_exists(self):
        found = names()
        self.assertEqual((ELSEWHERE.keys() | FIXED.keys()) - found, set())
        self.assertLessEqual({"Patience", "Keep", "Rank", "Warmup", "Ema", "ClipNorm", "Plateau"}, found)


if __name__ == "__main__":
    unittest.main()
