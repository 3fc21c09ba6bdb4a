// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/columns.hpp>

#include <string>
#include <vector>

namespace frugal_test::watch_columns {

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

}  // namespace frugal_test::watch_columns
