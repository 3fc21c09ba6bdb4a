#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that check.py finds each kind of fault, on pages with one fault each."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import check  # noqa: E402

MARKED = "<!-- from: examples/a.cpp#r -->\n```cpp\nint a;\n```\n"
PROGRAM = "```cpp\n#include <cstdio>\nint main() {\n}\n```\n"


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("include/frugal/policy/x.hpp", 'static_assert(Ok, "frugal: half a "\n  "sentence.");')
        self.write("examples/a.cpp", "// [begin r]\n  int a;\n// [end r]\n")
        self.write("docs/policy/x.md", PROGRAM)
        self.write("README.md", f"{MARKED}[x](docs/policy/x.md)\n")
        self.write("docs/README.md", "[x](policy/x.md) [levers](levers.md)\n")
        self.write("docs/levers.md", "[x](policy/x.md)\n")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def faults(self, text=None):
        if text is not None:
            self.write("docs/policy/x.md", PROGRAM + text)
        return check.check(self.root)

    def test_pages_that_hold_pass(self):
        self.assertEqual(self.faults(MARKED), [])

    def test_a_marked_block_that_differs_is_found(self):
        found = self.faults("<!-- from: examples/a.cpp#r -->\n```cpp\nint b;\n```\n")
        self.assertIn("differs from examples/a.cpp#r", found[0])

    def test_a_block_that_differs_can_be_filled(self):
        mark = "<!-- from: examples/a.cpp#r -->\n"
        self.write("docs/policy/x.md", f"{PROGRAM}{mark}```cpp\n```\nWords.\n{mark}```cpp\nint b;\n```\n")
        check.fill(self.root)
        self.assertEqual(check.check(self.root), [])
        self.assertIn("```\nWords.\n", (self.root / "docs/policy/x.md").read_text())

    def test_a_mark_without_a_region_is_found(self):
        found = self.faults("<!-- from: examples/a.cpp#s -->\n```cpp\nint a;\n```\n")
        self.assertIn("has no '// [begin s]'", found[0])

    def test_a_mark_of_a_missing_file_is_found(self):
        found = self.faults("<!-- from: examples/b.cpp#r -->\n```cpp\nint a;\n```\n")
        self.assertIn("is not there", found[0])

    def test_a_block_that_nothing_tries_is_found(self):
        self.assertIn("no #include", self.faults("```cpp\nint a;\n```\n")[0])

    def test_a_fragment_has_to_say_so(self):
        self.assertEqual(self.faults("<!-- fragment -->\n```cpp\nint a;\n```\n"), [])

    def test_a_page_without_tried_code_is_found(self):
        self.write("docs/policy/x.md", "Words.\n")
        self.assertIn("has no code that is compiled", self.faults()[0])

    def test_a_quoted_sentence_may_be_split_in_the_source(self):
        quote = "```text\nerror: static assertion failed: frugal: half a sentence.\n```\n"
        self.assertEqual(self.faults(quote), [])

    def test_a_sentence_that_nobody_says_is_found(self):
        quote = "```text\nerror: static assertion failed: frugal: another.\n```\n"
        self.assertIn("no header says", self.faults(quote)[0])

    def test_a_broken_link_is_found(self):
        self.assertIn("links to gone.md", self.faults("[there](gone.md)\n")[0])

    def test_a_page_that_a_list_leaves_out_is_found(self):
        self.write("docs/policy/y.md", PROGRAM)
        self.write("include/frugal/policy/y.hpp", "")
        self.write("docs/other.md", "Words.\n")
        lists = ("docs/README.md", "docs/levers.md")
        wanted = {f"{page}: has no link to docs/policy/y.md" for page in lists}
        self.assertEqual(set(self.faults()), {*wanted, "docs/README.md: has no link to docs/other.md"})

    def test_a_policy_without_a_page_is_found(self):
        self.write("include/frugal/policy/y.hpp", "")
        self.assertIn("has no page", self.faults()[0])

    def test_a_page_without_a_policy_is_found(self):
        self.write("docs/policy/z.md", PROGRAM)
        self.assertIn("has no policy/z.hpp", self.faults()[-1])

    def test_a_part_of_a_program_is_compiled_and_not_run(self):
        self.write("docs/policy/x.md", "```cpp\n#include <cstdio>\nint part();\n```\n")
        output = self.root / "out.cpp"
        check.extract(self.root, check.pages_of(self.root), [output])
        self.assertEqual(self.faults(), [])
        self.assertIn("int part();", output.read_text())
        self.assertNotIn("TEST_CASE", output.read_text())

    def test_programs_keep_their_line_numbers(self):
        output = self.root / "out.cpp"
        check.extract(self.root, check.pages_of(self.root), [output])
        text = output.read_text()
        self.assertIn('#line 2 "docs/policy/x.md"\n\nvoid main_of_page() {', text)
        self.assertEqual(text.count("#include <cstdio>"), 1)

    def test_what_a_program_returns_must_be_0(self):
        self.write("docs/policy/x.md", "```cpp\n#include <cstdio>\nint main() {\n  return 0;  // why\n}\n```\n")
        output = self.root / "out.cpp"
        check.extract(self.root, check.pages_of(self.root), [output])
        self.assertIn("int main_of_page() {", output.read_text())
        self.assertIn("CHECK(frugal_docs_0::main_of_page() == 0);", output.read_text())


if __name__ == "__main__":
    unittest.main()
