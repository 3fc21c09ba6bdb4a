// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/text_width.hpp>

#include <string>

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

}  // namespace frugal_test::watch_text_width
