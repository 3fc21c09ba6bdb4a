// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/profile/window_profile.hpp>

#include <string>

namespace frugal_test::watch_profile_window_profile {

using namespace frugal::watch;
using Where = TracedEvent::Where;

TEST_CASE("a window's verdict and hot spots leave out what a validation did") {
  auto const range_of = [](std::string_view name, Span span) {
    return TracedEvent{.name = std::string(name), .span = span, .where = Where::range};
  };
  auto const op = [](std::string name, Span span) {
    return TracedEvent{.name = std::move(name), .span = span};
  };
  Trace const trace{
      .span = {0, 2'000'000},
      .events = {range_of(range::forward, {0, 1'000'000}), op("aten::mm", {0, 900'000}),
                 range_of(range::policies, {1'000'000, 2'000'000}),
                 range_of(range::validation, {1'000'000, 2'000'000}),
                 op("aten::conv2d", {1'000'000, 2'000'000})},
      .memory = {{500'000, 64}, {600'000, -64}}};
  frugal::WindowProfile const found = analyse(trace);
  CHECK(found.seconds == doctest::Approx(0.002));
  CHECK(found.device_idle == doctest::Approx(0.1));
  CHECK(found.bound == Bound::compute);
  REQUIRE_FALSE(found.hot_spots.empty());
  CHECK(text_of(found.hot_spots[0]) == "aten::mm 90%");
  for (HotSpot const& each : found.hot_spots) CHECK(each.name != "aten::conv2d");
  CHECK(found.peak.bytes == 64);
  CHECK(found.peak.seconds == doctest::Approx(0.0005));
  // The ranges name the validation, with its share of the whole window.
  CHECK(found.ranges[0].microseconds == doctest::Approx(1000));
}

TEST_CASE("many short calls next to a long one are launch-bound only if they take longer") {
  for (std::uint64_t const length : {20'000U, 2'000'000U}) {
    Trace trace{.span = {0, length + 100'000}};
    trace.events.push_back({.name = "aten::mm", .span = {0, length}});
    for (std::uint64_t i = 0; i < 50; ++i) {
      std::uint64_t const at = length + 2000 * i;
      trace.events.push_back({.name = "aten::add", .span = {at, at + 2000}});
    }
    CHECK(analyse(trace).bound == (length < 100'000 ? Bound::launch : Bound::compute));
  }
}

TEST_CASE("a device hardly works if its operators take less than the given share of the step") {
  auto const working = [](std::uint64_t nanoseconds) {
    Trace trace{.span = {0, 1000}};
    trace.events.push_back({.name = "aten::mm", .span = {0, nanoseconds}});
    return analyse(std::move(trace));
  };
  CHECK(hardly_works(working(190), 0.2));
  CHECK_FALSE(hardly_works(working(210), 0.2));
  CHECK_FALSE(hardly_works(working(0), 0));  // which asks for windows of any device
}

TEST_CASE("a trace without events is host-bound, and nothing fails") {
  frugal::WindowProfile const found = analyse({.span = {0, 100}});
  CHECK(found.device_idle == doctest::Approx(1));
  CHECK(found.bound == Bound::host);
  CHECK(found.hot_spots.empty());
  CHECK(analyse({}).seconds == 0);
}

}  // namespace frugal_test::watch_profile_window_profile
