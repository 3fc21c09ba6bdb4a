// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/profile/hot_spots.hpp>

#include <string>
#include <utility>
#include <vector>

namespace frugal_test::watch_profile_hot_spots {

using namespace frugal::watch;
using Where = TracedEvent::Where;

TracedEvent op(std::string name, Span span, std::uint64_t thread = 1, std::uint64_t id = 0) {
  return {.name = std::move(name), .span = span, .thread = thread, .id = id};
}

std::uint64_t nanoseconds_of(std::vector<HotSpot> const& spots, std::string const& name) {
  for (HotSpot const& each : spots) {
    if (each.name == name) return static_cast<std::uint64_t>(each.microseconds * 1e3 + 0.5);
  }
  return 0;
}

TEST_CASE("self time is what no nested operator has, and nested ones count once") {
  // linear of 100 ns has t (10), addmm (70), in which copy (20) is.
  Trace const trace{.span = {0, 200},
                    .events = {op("copy", {30, 50}), op("linear", {0, 100}), op("addmm", {20, 90}),
                               op("t", {5, 15}), op("t", {100, 110})}};
  auto const spots = hot_spots(trace, 200);
  CHECK(nanoseconds_of(spots, "linear") == 20);
  CHECK(nanoseconds_of(spots, "addmm") == 50);
  CHECK(nanoseconds_of(spots, "copy") == 20);
  CHECK(nanoseconds_of(spots, "t") == 20);
  REQUIRE(spots.size() == 4);
  CHECK(spots[0].name == "addmm");
  CHECK(spots[0].share == doctest::Approx(0.25));
  CHECK(spots[0].calls == 1);
}

TEST_CASE("operators of two threads do not nest in each other") {
  Trace const trace{.span = {0, 100}, .events = {op("a", {0, 100}, 1), op("b", {10, 60}, 2)}};
  auto const spots = hot_spots(trace, 100);
  CHECK(nanoseconds_of(spots, "a") == 100);
  CHECK(nanoseconds_of(spots, "b") == 50);
}

TEST_CASE("an operator that ends after its parent takes from it what they share") {
  Trace const trace{.span = {0, 100}, .events = {op("a", {0, 50}), op("b", {40, 70})}};
  auto const spots = hot_spots(trace, 100);
  CHECK(nanoseconds_of(spots, "a") == 40);
  CHECK(nanoseconds_of(spots, "b") == 30);
}

TEST_CASE("an accelerator's time is counted under the operator that launched it") {
  TracedEvent const gemm{
      .name = "sgemm_128x64", .span = {100, 160}, .where = Where::device, .launched_by = 7};
  TracedEvent const replayed{.name = "elementwise", .span = {160, 170}, .where = Where::device};
  Trace const trace{.span = {0, 200},
                    .events = {op("aten::mm", {0, 10}, 1, 7), gemm, replayed},
                    .on_accelerator = true};
  auto const spots = hot_spots(trace, 200);
  REQUIRE(spots.size() == 2);
  CHECK(spots[0].name == "aten::mm");
  CHECK(spots[0].share == doctest::Approx(0.3));
  CHECK(spots[1].name == "elementwise");
}

TEST_CASE("only the longest are named, and an empty trace has none") {
  Trace const trace{.span = {0, 10}, .events = {op("a", {0, 5}), op("b", {5, 7}), op("c", {7, 8})}};
  auto const spots = hot_spots(trace, 10, 2);
  REQUIRE(spots.size() == 2);
  CHECK(spots[1].name == "b");
  CHECK(hot_spots({}, 0).empty());
}

TEST_CASE("ranges are counted by their whole time") {
  TracedEvent outer = op("frugal::forward", {0, 60});
  outer.where = Where::range;
  Trace const trace{.span = {0, 100}, .events = {outer, op("aten::mm", {0, 50})}};
  auto const found = ranges(trace, 100);
  REQUIRE(found.size() == 1);
  CHECK(found[0].share == doctest::Approx(0.6));
}

}  // namespace frugal_test::watch_profile_hot_spots
