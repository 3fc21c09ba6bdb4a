// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/text_width.hpp>

#include <string>
#include <vector>

namespace frugal_test::watch_text_width {

using namespace frugal::watch;

// The widths are those of Python's wcwidth 0.9.4.
TEST_CASE("letters take one column, East Asian ones and emoji two, combining marks none") {
  CHECK(text_width("") == 0);
  CHECK(text_width("loss") == 4);
  CHECK(text_width("pr\u00e9cision") == 9);
  CHECK(text_width("e\u0301") == 1);
  CHECK(text_width("\u7cbe\u5ea6") == 4);
  CHECK(text_width("\uc815\ud655\ub3c4") == 6);
  CHECK(text_width("\U0001f680") == 2);
  CHECK(text_width("\u03bc\u00b2") == 2);
}

TEST_CASE("a text is truncated between characters, and a wide one does not fit half") {
  CHECK(truncated("loss", 4) == "loss");
  CHECK(truncated("loss", 3) == "los");
  CHECK(truncated("loss", 0).empty());
  CHECK(truncated("pr\u00e9", 2) == "pr");
  CHECK(truncated("pr\u00e9", 3) == "pr\u00e9");
  CHECK(truncated("\u7cbe\u5ea6", 3) == "\u7cbe");
  CHECK(truncated("\u7cbe\u5ea6", 1).empty());
  CHECK(truncated("e\u0301x", 1) == "e\u0301");
}

TEST_CASE(
    "control characters, of both sets, and those that turn the direction become question marks") {
  CHECK(printable("a\x1b[2Jb\n\t\x7f") == "a?[2Jb???");
  CHECK(printable("\xc2\x9b"
                  "2J") == "?2J");  // CSI as one character
  CHECK(printable("a\u202eb\u2028\u2029\u202a") == "a?b???");
  CHECK(printable("\u2066a\u2067b\u2068c\u2069") == "?a?b?c?");
  CHECK(printable("pr\u00e9cision \u7cbe") == "pr\u00e9cision \u7cbe");
}

TEST_CASE("bytes that are not UTF-8 become question marks, one each") {
  CHECK(printable("a\xff"
                  "b") == "a?b");
  CHECK(printable("\xe7\xb2") == "??");            // cut
  CHECK(printable("\xc0\xaf") == "??");            // overlong
  CHECK(printable("\xed\xa0\x80") == "???");       // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond Unicode
  CHECK(text_width("\xff\xfe") == 2);
  CHECK(truncated("\xff\xfe", 1) == "\xff");
}

using frugal::watch::columns;
using frugal::watch::wrapped;

TEST_CASE("a line breaks between words, where the next one would not fit") {
  CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped("one two three", 6) == std::vector<std::string>{"one", "two", "three"});
  CHECK(wrapped("one two three", 13) == std::vector<std::string>{"one two three"});
  CHECK(wrapped("a  b", 9) == std::vector<std::string>{"a b"});
}

TEST_CASE("a word that does not fit has a line of its own, and no text is one empty line") {
  CHECK(wrapped("a mountainous b", 5) == std::vector<std::string>{"a", "mountainous", "b"});
  CHECK(wrapped("", 5) == std::vector<std::string>{""});
}

TEST_CASE("columns are as wide as their widest cell, with two spaces between") {
  CHECK(columns({{"a", "bb", "c"}, {"aaa", "b", "ccc"}}, {9, 9, 9}) ==
        "a    bb  c\n"
        "aaa  b   ccc\n");
}

TEST_CASE("a cell wider than its column wraps, and its neighbours do not move") {
  CHECK(columns({{"1", "one two three", "end"}, {"2", "four", ""}}, {9, 7, 9}) ==
        "1  one two  end\n"
        "   three\n"
        "2  four\n");
}

TEST_CASE("a word longer than its column pushes only what is on its line") {
  CHECK(columns({{"mountainous", "x", "z"}, {"a", "yyyyy", "z"}}, {4, 9, 9}) ==
        "mountainous  x  z\n"
        "a     yyyyy  z\n");
  CHECK(columns({{"mounts", "x"}}, {4, 9}) == "mounts  x\n");
}

TEST_CASE("a table is cut at its widest columns, and never within a word") {
  std::vector<std::vector<std::string>> const rows{{"a", "one two three", "long words"}};
  CHECK(widths_within(rows, 100) == std::vector<std::size_t>{1, 13, 10});
  CHECK(widths_within(rows, 28) == std::vector<std::size_t>{1, 13, 10});
  CHECK(widths_within(rows, 24) == std::vector<std::size_t>{1, 9, 10});
  CHECK(widths_within(rows, 1) == std::vector<std::size_t>{1, 5, 5});
}

}  // namespace frugal_test::watch_text_width
