// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/html_text.hpp>

#include <string>

namespace frugal_test::store_html_text {

TEST_CASE("text for HTML has no markup, no quotes and no forbidden characters") {
  using frugal::detail::as_html;
  CHECK(as_html("<a href='x'>&\"\n\t") == "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\n\t");
  CHECK(as_html(std::string("\0\x1b\xff", 3)) == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(as_html("Zo\xc3\xab") == "Zo\xc3\xab");
}

TEST_CASE("numbers read as people write them") {
  CHECK(frugal::detail::grouped(0) == "0");
  CHECK(frugal::detail::grouped(999) == "999");
  CHECK(frugal::detail::grouped(1000) == "1,000");
  CHECK(frugal::detail::grouped(1234567890) == "1,234,567,890");
  CHECK(frugal::detail::fixed(0.125, 2) == "0.12");
  CHECK(frugal::detail::fixed(1e300, 1).size() == 303);
  CHECK(frugal::detail::percent_of(1, 3) == "33.33%");
  CHECK(frugal::detail::percent_of(0, 0) == "0%");
}

TEST_CASE("an excerpt is not cut within a character") {
  using frugal::detail::beginning;
  CHECK(beginning("h\xc3\xa9llo", 2) == "h \xe2\x80\xa6");
  CHECK(beginning("h\xc3\xa9llo", 3) == "h\xc3\xa9 \xe2\x80\xa6");
  CHECK(beginning("h\xc3\xa9llo", 6) == "h\xc3\xa9llo");
  CHECK(beginning("\x80\x80\x80", 2) == " \xe2\x80\xa6");
}

}  // namespace frugal_test::store_html_text
