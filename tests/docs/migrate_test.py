#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/migrate.md leaves out no argument of the trainers that it compares with, and says of each what to write."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/migrate.md").read_text(encoding="utf-8")
KNOWN = json.loads((Path(__file__).parent / "arguments.json").read_text(encoding="utf-8"))
SECTIONS = {"lightning": "## From Lightning", "transformers": "## From Hugging Face", "mosaicml": "## From Composer"}
NAMES = {"lightning": "Lightning", "transformers": "Transformers", "mosaicml": "Composer"}


def section(heading: str) -> str:
    begin = PAGE.index(heading + "\n")
    end = PAGE.find("\n## ", begin + 1)
    return PAGE[begin : end if end != -1 else len(PAGE)]


def left_cells(text: str) -> str:
    return "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))


class Migrate(unittest.TestCase):
    def test_every_argument_is_on_the_page(self) -> None:
        for library, heading in SECTIONS.items():
            # Arguments without a use on one device are in a separate list at the end.
            several = next(item for item in section("## Arguments for several devices and for services").split("\n* ")
                           if item.startswith(("Lightning", "Hugging", "Composer")) and item.startswith(heading[8:]))
            named = set(re.findall(r"`(\w+)`", left_cells(section(heading)) + several))
            for title, names in KNOWN.items():
                if title.startswith(library):
                    self.assertEqual([name for name in names if name not in named], [], title)

    def test_the_versions_are_those_that_were_read(self) -> None:
        for title in KNOWN:
            library, version, _ = title.split()
            self.assertIn(f"{NAMES[library]} {'.'.join(version.split('.')[:2])}", PAGE)

    def test_no_cell_of_a_table_is_empty(self) -> None:
        for line in PAGE.splitlines():
            if line.startswith("| "):
                self.assertNotIn("", [cell.strip() for cell in line.strip("|").split(" | ")], line)

    def test_no_cell_says_no_more_than_none(self) -> None:
        for heading in ("## From plain PyTorch", *SECTIONS.values()):
            for line in section(heading).splitlines():
                if line.startswith("| "):
                    self.assertNotRegex(line.strip("|").split(" | ")[-1].strip(), r"^none\b", line)


if __name__ == "__main__":
    unittest.main()
