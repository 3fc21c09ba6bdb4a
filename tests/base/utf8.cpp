// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/utf8.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::base_utf8 {

using namespace std::string_literals;

/// The text with its invalid bytes replaced.
std::string replaced(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    auto const next = frugal::detail::code_point_at(text, at);
    REQUIRE(next.bytes >= 1);
    frugal::detail::append_utf8(made, next.value);
    at += next.bytes;
  }
  return made;
}

TEST_CASE("every code point is written and read back") {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    frugal::detail::append_utf8(text, c);
    auto const read = frugal::detail::code_point_at(text, 0);
    bool const same = read.value == c && read.bytes == text.size() && read.valid;
    if (!same) FAIL_CHECK(static_cast<unsigned>(c));
  }
}

// What bytes.decode('utf-8', 'replace') of Python 3.11 gives; "?" stands for U+FFFD.
TEST_CASE("invalid bytes are replaced as Python and the Unicode standard replace them") {
  std::vector<std::pair<std::string, std::string>> const cases{
      {"a\x80z"s, "a?z"},                                  // a continuation byte alone
      {"\xc0\xaf"s, "??"},                                 // overlong: neither byte begins anything
      {"\xe0\x80\xaf"s, "???"},                            // overlong
      {"\xed\xa0\x80"s, "???"},                            // a surrogate
      {"\xf4\x90\x80\x80"s, "????"},                       // above U+10FFFF
      {"\xf5\xff"s, "??"},                                 // no lead bytes
      {"\xe2\x82"s, "?"},                                  // cut off after two of three
      {"\xf0\x9f\x98"s, "?"},                              // cut off after three of four
      {"\xf0\x9f\x98z"s, "?z"},                            // likewise, within a text
      {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"s, "????A"},  // table 3-11 of the standard
      {"\xc3"s, "?"},
  };
  for (auto const& [bytes, expected] : cases) {
    std::string want;
    for (char const c : expected) want += c == '?' ? "\xef\xbf\xbd"s : std::string(1, c);
    CHECK(replaced(bytes) == want);
  }
}

TEST_CASE("the first invalid byte is found, and code points are counted") {
  CHECK(frugal::detail::first_invalid_utf8("h\xc3\xa9llo") == 6);
  CHECK(frugal::detail::first_invalid_utf8("h\xc3\xa9\xe2\x82") == 3);
  CHECK(frugal::detail::count_code_points("h\xc3\xa9\xf0\x9f\x98\x80") == 3);
}

TEST_CASE("text that is not UTF-8 becomes UTF-8, and other text is unchanged") {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      std::string const text{'a', static_cast<char>(first), static_cast<char>(second)};
      std::string const out = frugal::detail::as_utf8(text);
      REQUIRE(frugal::detail::is_utf8(out));
      if (frugal::detail::is_utf8(text)) REQUIRE(out == text);
    }
  }
}

TEST_CASE("as_utf8 replaces each invalid byte by itself") {
  CHECK(frugal::detail::as_utf8("l\xffss") == "l\xef\xbf\xbdss");
  CHECK(frugal::detail::as_utf8("\xe2\x82z") == "\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST_CASE("the largest character and those beyond it, surrogates and overlong forms") {
  using frugal::detail::is_utf8;
  CHECK(is_utf8("\xf4\x8f\xbf\xbf"));
  CHECK_FALSE(is_utf8("\xf4\x90\x80\x80"));
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));
  CHECK_FALSE(is_utf8("\xc0\x80"));
  CHECK_FALSE(is_utf8("\xe0\x80\x80"));
}

TEST_CASE("an excerpt is not cut within a character") {
  using frugal::detail::beginning;
  CHECK(beginning("h\xc3\xa9llo", 2) == "h \xe2\x80\xa6");
  CHECK(beginning("h\xc3\xa9llo", 3) == "h\xc3\xa9 \xe2\x80\xa6");
  CHECK(beginning("h\xc3\xa9llo", 6) == "h\xc3\xa9llo");
  CHECK(beginning("\x80\x80\x80", 2) == " \xe2\x80\xa6");
}

}  // namespace frugal_test::base_utf8
