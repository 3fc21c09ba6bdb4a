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


class OnPages(unittest.TestCase):
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


class Pages(OnPages):
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

    def test_a_stale_hash_of_the_page_s_script_is_found_and_filled(self):
        page = "include/frugal/base/html_asset.hpp"
        # The digest is OpenSSL's.
        digest = "wCpX6PRaV2tYabHPuD0EVrhGyeiYQpOhQOJ8OhOtDwA="
        self.write(page, f"script-src 'sha256-{digest}'\n<script>\nlet a = 1;\n</script>")
        self.assertEqual(self.faults(), [])
        self.write(page, f"script-src 'sha256-{digest}'\n<script>\nlet b = 1;\n</script>")
        self.assertIn("names another script", self.faults()[0])
        check.fill(self.root)
        self.assertEqual(self.faults(), [])

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

    def test_a_heading_that_is_not_there_is_found(self):
        self.write("docs/other.md", "# A page\n## `Keep<2>` and [links](policy/x.md)\n## Twice\n## Twice\n```sh\n# no heading\n```\n")
        self.write("docs/README.md", "[x](policy/x.md) [levers](levers.md) [other](other.md)\n")
        good = "".join(f"[a](../other.md#{each})\n" for each in ("a-page", "keep2-and-links", "twice", "twice-1"))
        self.assertEqual(self.faults(good + "## Here\n[b](#here)\n"), [])
        for broken in ("../other.md#twice-2", "../other.md#no-heading", "../other.md#A-page", "#there", "../other.md#keep-2"):
            self.assertIn(f"links to {broken}, and", self.faults(f"[a]({broken})\n")[0])


HEADER = """
#pragma once
struct Other { int seven = 7; };
/// double said = 1;
template <class... Options>
struct Settings {
 private:
  using hidden = list<Options...>;
  int secret = 1;

 public:
  static constexpr int fixed = 4;
  double share = 0.5;  ///< of all
  int first = 1, second = 2;
  std::map<std::string, int> names{};
  std::size_t bytes = std::size_t{1} << 20;
  std::chrono::milliseconds pause{10000};
  Mode mode = Mode::Fast;
  bool on = true;
  std::optional<double> limit{};
  std::string text = "a; b";
  Other other{};
  Outcome<int> outcome{};
  explicit Settings(double half) : share{half} {}
  double doubled(int times = 2) const { return share * times; }
  bool operator==(Settings const&) const = default;
};
"""
ROWS = {
    "share": "0.5", "first": "1", "second": "2", "names": "none", "bytes": "1 MiB", "pause": "10 s", "mode": "`Mode::Fast`",
    "on": "true", "limit": "no limit", "text": "`a; b`", "other.seven": "7",
}  # fmt: skip
MARK = "<!-- members: a/settings.hpp Settings -->\n"


class Members(OnPages):
    def setUp(self):
        super().setUp()
        self.write("include/frugal/a/settings.hpp", HEADER)

    def table(self, mark=MARK, head="| option | default |", **changes):
        rows = ROWS | changes
        lines = "".join(f"| `{name}` | {value} |\n" for name, value in rows.items() if value is not None)
        return f"{mark}{head}\n| --- | --- |\n{lines}"

    def test_a_table_that_agrees_with_its_header_passes(self):
        self.assertEqual(self.faults(self.table()), [])

    def test_each_default_that_differs_is_found(self):
        wrong = {"share": "0.6", "first": "2", "second": "none", "names": "3", "bytes": "1 GiB", "pause": "10 ms", "mode": "`Mode::Slow`",
                 "on": "false", "limit": "true", "text": "`a`", "other.seven": "8"}  # fmt: skip
        self.assertEqual(wrong.keys(), ROWS.keys())
        for name, value in wrong.items():
            found = self.faults(self.table(**{name: value}))
            self.assertEqual(len(found), 1, (name, found))
            self.assertIn(f"the default of `{name}`", found[0])

    def test_each_member_without_a_row_is_found(self):
        for name in ROWS:
            found = self.faults(self.table(**{name: None}))
            self.assertEqual(len(found), 1, (name, found))
            self.assertIn(f"has no row for the member `{name.partition('.')[0]}`", found[0])

    def test_a_row_of_no_member_is_found(self):
        for name in ("then", "secret", "fixed", "said", "doubled", "other.eight", "seven"):
            self.assertIn(f"`{name}` is no member", self.faults(self.table(**{name: "1"}))[0])

    def test_two_members_may_share_a_row(self):
        both = {"first": None, "second": None, "first`, `second": "1, 2"}
        self.assertEqual(self.faults(self.table(**both)), [])
        self.assertIn("the default of `second`", self.faults(self.table(**(both | {"first`, `second": "1, 3"})))[0])

    def test_members_that_are_left_out_are_named(self):
        self.assertEqual(self.faults(self.table(MARK.replace(" -->", "; not: share -->"), share=None)), [])
        found = self.faults(self.table(MARK.replace(" -->", "; not: shares -->")))
        self.assertIn("leaves out shares, which is no member", found[0])

    def test_rows_of_types_are_no_members(self):
        table = self.table(head="| option | default | where |").replace(" |\n| ---", " |\n| ---", 1)
        rows = "".join(f"| `{name}` | {value} | member |\n" for name, value in ROWS.items())
        table = f"{MARK}| option | default | where |\n| --- | --- | --- |\n{rows}| `Fast` | yes | type |\n"
        self.assertEqual(self.faults(table), [])
        self.assertIn("`Fast` is no member", self.faults(table.replace("yes | type", "yes | member"))[0])

    def test_a_table_of_defaults_says_whose_they_are(self):
        self.assertIn("without <!-- members", self.faults(self.table(mark=""))[0])
        self.assertEqual(self.faults(self.table(mark="<!-- no members -->\n", then="1")), [])

    def test_a_struct_that_is_not_there_is_found(self):
        for gone in ("a/settings.hpp Gone", "a/gone.hpp Settings"):
            mark = f"<!-- members: {gone} -->\n"
            self.assertIn("has no struct", self.faults(self.table(mark=mark))[0])


FEATURES = """
areas = ["loop"]
[status]
none = "-"
tested = "tested"
ran = "H100"
not_run = "not run yet"
[[feature]]
name = "X"
area = "loop"
page = "policy/x.md"
cpu = "tested"
gpu = "ran"
ran = "case 1"
processes = "none"
gpus = "not_run"
[[missing]]
name = "a Hub"
instead = "files"
first = true
[[missing]]
name = "Windows"
instead = "Linux"
first = true
"""


class Features(OnPages):
    def block(self, view):
        return f"<!-- features: {view} -->\n<!-- end of features -->\n"

    def test_each_view_can_be_filled(self):
        self.write("docs/features.toml", FEATURES)
        for view in check.features.VIEWS:
            self.assertIn("differs from docs/features.toml", self.faults(self.block(view))[0])
            check.fill(self.root)
            self.assertEqual(check.check(self.root), [])

    def test_what_a_view_says_is_the_files(self):
        self.write("docs/features.toml", FEATURES)
        self.write("README.md", f"{MARKED}[x](docs/policy/x.md)\n{self.block('status')}")
        check.fill(self.root)
        text = (self.root / "README.md").read_text()
        self.assertIn("| [X](docs/policy/x.md) | tested | H100 | - | not run yet |", text)
        self.write("docs/features.toml", FEATURES.replace('gpu = "ran"', 'gpu = "not_run"'))
        self.assertIn("README.md: differs", check.check(self.root)[0])

    def test_faults_of_the_file_are_found(self):
        for before, after, said in (
            ('cpu = "tested"\n', "", "has no cpu"),
            ('cpu = "tested"', 'cpu = "perhaps"', "no status"),
            ('area = "loop"', 'area = "other"', "no area"),
            ("policy/x.md", "policy/y.md", "no page"),
            ('ran = "case 1"\n', "", "has no `ran`"),
        ):
            self.write("docs/features.toml", FEATURES.replace(before, after))
            self.assertIn(said, self.faults(self.block("status"))[0])

    def test_a_block_without_an_end_or_with_another_view_is_found(self):
        self.write("docs/features.toml", FEATURES)
        self.assertIn("without its end", self.faults("<!-- features: status -->\n")[0])
        self.assertIn("no view nothing", self.faults(self.block("nothing"))[0])


if __name__ == "__main__":
    unittest.main()
