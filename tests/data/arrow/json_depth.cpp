// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: arrow
#include <frugal/data/arrow/json_depth.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace frugal_test::data_arrow_json_depth {

using frugal::detail::JsonDepth;

bool shallow(std::string_view text) { return JsonDepth().take(text); }

TEST_CASE("64 levels are taken, and one more is not, in one piece or byte by byte") {
  std::string const most = std::string(32, '[') + std::string(32, '{');
  CHECK(shallow(most));
  CHECK_FALSE(shallow(most + "["));
  CHECK_FALSE(shallow(most + "\n{"));  // a value may go on behind a line feed
  JsonDepth depth;
  for (char const c : "{\"a\":1}\n" + most) CHECK(depth.take({&c, 1}));
  CHECK_FALSE(depth.take("{"));
  CHECK(depth.line() == 2);
}

TEST_CASE("what closes again is no depth, and brackets in strings are none") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\"a\": [[]], \"b\": \"[[{\\\"[\\\\\"}\n";
  CHECK(shallow(text));
  CHECK(shallow("\"" + std::string(1000, '[')));
  CHECK_FALSE(
      shallow("\"\\\\\"" + std::string(65, '[')));  // the string ends behind two backslashes
}

TEST_CASE("what is no JSON hides no depth: a parser may begin at any line") {
  CHECK_FALSE(shallow("\"never closed\n" + std::string(65, '[')));
  CHECK_FALSE(shallow("\"\\\n" + std::string(65, '[')));
  CHECK_FALSE(shallow(std::string(1000, ']') + "\n" + std::string(65, '[')));
}

}  // namespace frugal_test::data_arrow_json_depth
