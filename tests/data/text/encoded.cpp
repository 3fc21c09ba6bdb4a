// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/text/encoded.hpp>

#include <cstddef>
#include <utility>

namespace frugal_test::data_text_encoded {

using frugal::Encoded;
using Pair = std::pair<std::size_t, std::size_t>;

TEST_CASE("tokens are appended and cut with their types and spans") {
  Encoded one, two;
  one.push(7, 0, {0, 3});
  one.push(8, 0, {4, 6});
  two.push(9, 1, {0, 1});
  one.append(two);
  one.resize(1);
  one.append(two);
  Encoded expected;
  expected.push(7, 0, {0, 3});
  expected.push(9, 1, {0, 1});
  CHECK(one == expected);
  CHECK(one.size() == 2);
}

// Values of tokenizers 0.23, strategy longest_first; tests/interop/wordpiece.py compares many more.
TEST_CASE("the longer of two texts is cut first, and the odd token is the longer's") {
  using frugal::detail::longest_first;
  CHECK(longest_first(3, 4, 7) == Pair{3, 4});
  CHECK(longest_first(3, 9, 7) == Pair{3, 4});
  CHECK(longest_first(9, 3, 7) == Pair{4, 3});
  CHECK(longest_first(9, 9, 7) == Pair{3, 4});
  CHECK(longest_first(10, 9, 7) == Pair{4, 3});
  CHECK(longest_first(0, 9, 4) == Pair{0, 4});
  CHECK(longest_first(5, 5, 0) == Pair{0, 0});
  CHECK(longest_first(5, 5, frugal::detail::no_token_limit) == Pair{5, 5});
}

}  // namespace frugal_test::data_text_encoded
