// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/idx/inflate.hpp>

#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>

namespace frugal_test::data_inflate {

using frugal::InflateReader;

// It points into itself: a copy that outlives it would dangle.
static_assert(!std::is_move_constructible_v<InflateReader>);
static_assert(!std::is_copy_constructible_v<InflateReader>);
static_assert(!std::is_move_assignable_v<InflateReader>);

TEST_CASE("plain input reads unchanged, in pieces of any size") {
  std::istringstream input("plain text");
  InflateReader reader(input, "x");
  std::string out(10, ' ');
  auto const bytes = std::as_writable_bytes(std::span(out));
  CHECK(reader.read(bytes.first(3)) == 3);
  CHECK(reader.read(bytes.subspan(3)) == 7);
  CHECK(out == "plain text");
  CHECK(reader.read(bytes) == 0);
  CHECK(reader.offset() == 10);
}

}  // namespace frugal_test::data_inflate
