// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/structured/axis_values.hpp>

#include <string>
#include <utility>
#include <vector>

namespace frugal_test::model_structured_spaces {

using frugal::detail::Axis;
using frugal::detail::Spaces;

std::vector<std::int64_t> sizes(Spaces const& spaces, Axis const& axis) {
  std::vector<std::int64_t> all;
  for (auto const space : spaces.resolved(axis)) all.push_back(spaces.size(space));
  return all;
}

TEST_CASE("axes that stand for the same have the same spaces, and their locks") {
  Spaces spaces;
  Axis const one = spaces.axis(8);
  Axis const other = spaces.axis(8);
  Axis const third = spaces.axis(8);
  CHECK(spaces.resolved(one) != spaces.resolved(other));
  spaces.lock(other, "first reason");
  spaces.unify(one, third, "");
  CHECK(spaces.locked(spaces.resolved(third).front()).empty());
  spaces.unify(one, other, "");
  CHECK(spaces.resolved(one) == spaces.resolved(other));
  CHECK(spaces.locked(spaces.resolved(third).front()) == "first reason");
  spaces.lock(one, "second reason");
  CHECK(spaces.locked(spaces.resolved(one).front()) == "first reason");
  CHECK(spaces.axis(1).empty());
}

TEST_CASE("a flattened axis is split where its parts are, the outermost first") {
  Spaces spaces;
  Axis const channels = spaces.axis(6);
  Axis const places = spaces.locked_axis(4, "places");
  Axis const flat{channels.front(), places.front()};
  Axis const columns = spaces.axis(24);
  spaces.unify(flat, columns, "");
  CHECK(sizes(spaces, columns) == std::vector<std::int64_t>{6, 4});
  CHECK(spaces.resolved(columns) == spaces.resolved(flat));
  CHECK(spaces.locked(spaces.resolved(columns)[0]).empty());
  CHECK(spaces.locked(spaces.resolved(columns)[1]) == "places");
  // Once more, with what is split already, and from the other side.
  Axis const rows = spaces.axis(24);
  spaces.unify(rows, columns, "");
  CHECK(spaces.resolved(rows) == spaces.resolved(columns));
  // In three parts.
  Axis const deeper{spaces.make(2), spaces.make(3), spaces.make(4)};
  spaces.unify(deeper, rows, "");
  CHECK(sizes(spaces, columns) == std::vector<std::int64_t>{2, 3, 4});
  CHECK(spaces.resolved(channels) == Axis{spaces.resolved(deeper)[0], spaces.resolved(deeper)[1]});
}

TEST_CASE(
    "axes of which neither is a multiple of the other are locked, and so are those of two sizes") {
  Spaces spaces;
  Axis const one{spaces.make(4), spaces.make(3)};
  Axis const other{spaces.make(3), spaces.make(4)};
  spaces.unify(one, other, "they do not fit");
  for (auto const space : spaces.resolved(one)) CHECK(spaces.locked(space) == "they do not fit");
  for (auto const space : spaces.resolved(other)) CHECK(spaces.locked(space) == "they do not fit");
  Axis const five = spaces.axis(5);
  spaces.unify(five, spaces.axis(7), "two sizes");
  CHECK(spaces.locked(spaces.resolved(five).front()) == "two sizes");
}

TEST_CASE("what was split from a locked space is locked") {
  Spaces spaces;
  Axis const whole = spaces.locked_axis(12, "why");
  auto const [outer, inner] = spaces.split(whole.front(), 3);
  CHECK(spaces.size(outer) == 3);
  CHECK(spaces.size(inner) == 4);
  CHECK(spaces.locked(inner) == "why");
  CHECK(spaces.resolved(whole) == Axis{outer, inner});
}

}  // namespace frugal_test::model_structured_spaces
