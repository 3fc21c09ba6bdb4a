// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/base/json.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/profile/window_profile.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

namespace frugal_test::watch_profile_bound {

using namespace frugal::watch;
using Where = TracedEvent::Where;

TracedEvent range_of(std::string_view name, Span span) {
  return {.name = std::string(name), .span = span, .where = Where::range};
}
TracedEvent op(Span span) { return {.name = "aten::mm", .span = span}; }
TracedEvent kernel(Span span) { return {.name = "gemm", .span = span, .where = Where::device}; }

Division divided(Trace const& trace) { return divide(trace, training_of(trace)); }

TEST_CASE("on the CPU an operator that reads data is no work of the step") {
  // 0-40 data, of which 10-20 stack samples; 40-100 the step, of which 40-90 in operators.
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::data, {0, 40}), op({10, 20}),
                               range_of(range::forward, {40, 100}), op({40, 90})}};
  Division const found = divided(trace);
  CHECK(found.busy == doctest::Approx(0.5));
  CHECK(found.data == doctest::Approx(0.4));
  CHECK(found.host == doctest::Approx(0.1));
  CHECK(found.launch == 0);
  CHECK(judge(found, false) == Bound::input);
  CHECK(advice_for(Bound::input, found, false).find("docs/data/loading.md") != std::string::npos);
}

TEST_CASE("data that is read while the device works costs nothing") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::data, {0, 90}), kernel({5, 100})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(found.busy == doctest::Approx(0.95));
  CHECK(found.data == doctest::Approx(0.05));
  CHECK(judge(found, true) == Bound::compute);
}

TEST_CASE(
    "a device that waits for the host's operators is launch-bound, and CudaGraph is the lever") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::forward, {0, 100}), op({0, 80}), kernel({10, 20}),
                               kernel({40, 50})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(found.busy == doctest::Approx(0.2));
  CHECK(found.launch == doctest::Approx(0.6));
  CHECK(found.host == doctest::Approx(0.2));
  CHECK(judge(found, true) == Bound::launch);
  CHECK(advice_for(Bound::launch, found, true).find("docs/policy/cuda_graph.md") !=
        std::string::npos);
}

TEST_CASE("a device that waits for neither data nor operators is host-bound") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::policies, {0, 70}), op({70, 100}), kernel({70, 95})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(judge(found, true) == Bound::host);
  CHECK(found.policies == doctest::Approx(0.7));
  CHECK(advice_for(Bound::host, found, true).find("less often") != std::string::npos);
  Division elsewhere = found;
  elsewhere.policies = 0;
  CHECK(advice_for(Bound::host, elsewhere, true).find("item()") != std::string::npos);
}

TEST_CASE("validations are no part of a step") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::validation, {0, 60}), op({60, 100})}};
  Division const found = divided(trace);
  CHECK(found.step_time == 40);
  CHECK(found.busy == doctest::Approx(1));
  CHECK(judge(found, false) == Bound::compute);
}

TEST_CASE("a CPU that is busy with operators as short as their calls is launch-bound") {
  Division busy{.step_time = 100, .busy = 0.9, .host = 0.1, .short_calls = 0.7};
  CHECK(judge(busy, false) == Bound::launch);
  CHECK(judge(busy, true) == Bound::compute);
  busy.short_calls = 0.3;
  CHECK(judge(busy, false) == Bound::compute);
}

TEST_CASE("a replayed graph's wait for data is what the source has measured, within idle time") {
  Trace trace{.span = {0, 1000},
              .events = {kernel({0, 400})},
              .on_accelerator = true,
              .waited_seconds = 500e-9};
  CHECK(divided(trace).data == doctest::Approx(0.5));
  CHECK(judge(divided(trace), true) == Bound::input);
  trace.waited_seconds = 1;
  CHECK(divided(trace).data == doctest::Approx(0.6));
}

TEST_CASE("the shares of any division add up to 1") {
  Trace const trace{.span = {0, 100},
                    .events = {range_of(range::data, {0, 30}), op({20, 50}), op({45, 60}),
                               kernel({25, 35}), kernel({90, 150})},
                    .on_accelerator = true};
  Division const found = divided(trace);
  CHECK(found.busy + found.data + found.launch + found.host == doctest::Approx(1));
}

TEST_CASE("an empty window has no step time and no shares") {
  Division const found = divided({});
  CHECK(found.step_time == 0);
  CHECK(found.data == 0);
  CHECK(percent(0.374) == "37%");
}

}  // namespace frugal_test::watch_profile_bound

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

namespace frugal_test::policy_profile_hot_spots_file {

using namespace support;
using frugal::WindowProfile;
using frugal::detail::HotSpotsFile;

/// The steps of the file's windows, as the reports read it.
std::vector<std::uint64_t> steps_in(std::filesystem::path const& path) {
  std::vector<std::uint64_t> steps;
  for (auto const& each : frugal::html::parse_windows(text_of(path), path)) {
    steps.push_back(static_cast<std::uint64_t>(each.step));
  }
  return steps;
}

bool add(HotSpotsFile& file, std::uint64_t step) {
  WindowProfile window{.step = step};
  return file.add(window, [] { return 0.0; });
}

TEST_CASE("a window's overhead includes its file, which has that once the next window is written") {
  TemporaryFolder const folder;
  HotSpotsFile file(folder / "hot_spots.json");
  auto const overheads = [&] {
    std::vector<double> all;
    for (auto const& each : frugal::html::parse_windows(text_of(folder / "hot_spots.json"), "")) {
      all.push_back(each.overhead_seconds);
    }
    return all;
  };
  WindowProfile window{.step = 5};
  bool written = false;
  CHECK(file.add(window, [&] {
    bool const before = !std::exchange(written, true);
    CHECK(std::filesystem::exists(folder / "hot_spots.json") != before);
    return before ? 1.0 : 1.25;
  }));
  CHECK(window.overhead_seconds == 1.25);
  CHECK(overheads() == std::vector{1.0});
  REQUIRE(add(file, 9));
  CHECK(overheads() == std::vector{1.25, 0.0});
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("the file has the last thousand windows, which its reader shows") {
  TemporaryFolder const folder;
  std::filesystem::path const path = folder / "hot_spots.json";
  {
    std::ofstream out(path);  // of a run that has had 1200
    out << "{\"version\":1,\"windows\":[";
    for (int step = 1; step <= 1200; ++step) {
      out << (step == 1 ? "\n" : ",\n") << "{\"step\":" << step << ",\"hot_spots\":[]}";
    }
    out << "\n]}\n";
  }
  HotSpotsFile file(path);
  file.resume_at(1150);
  REQUIRE(add(file, 1160));
  auto steps = steps_in(path);
  CHECK(steps.size() == HotSpotsFile::most_windows);
  CHECK(steps.front() == 152);  // 152 to 1150 are 999
  CHECK(steps.back() == 1160);
  REQUIRE(add(file, 1170));
  steps = steps_in(path);
  CHECK(steps.size() == 1000);
  CHECK(steps.front() == 153);
  CHECK(steps.back() == 1170);
  // All of them are in the file: the reader itself shows the last thousand.
  auto const all = frugal::detail::Json::parse(text_of(path));
  CHECK(all->find("windows")->items().size() == 1000);
}

TEST_CASE("a resumed run keeps the windows up to its checkpoint") {
  TemporaryFolder const folder;
  HotSpotsFile first(folder / "hot_spots.json");
  for (std::uint64_t const step : {5U, 16U, 27U}) REQUIRE(add(first, step));
  HotSpotsFile second(folder / "hot_spots.json");
  second.resume_at(16);
  REQUIRE(add(second, 30));
  CHECK(steps_in(folder / "hot_spots.json") == std::vector<std::uint64_t>{5, 16, 30});
}

TEST_CASE("what is no such file is replaced") {
  TemporaryFolder const folder;
  std::filesystem::path const path = folder / "profile/hot_spots.json";
  std::filesystem::create_directories(path.parent_path());
  for (std::string const text :
       {"", "{", "[1]", R"({"windows":3})", R"({"windows":[1,{"step":-1}]})"}) {
    std::ofstream(path) << text;
    HotSpotsFile file(path);
    file.resume_at(100);
    CHECK(add(file, 101));
    CHECK(steps_in(path) == std::vector<std::uint64_t>{101});
  }
}

TEST_CASE("a file that cannot be written is no part either, and the window has its overhead") {
  TemporaryFolder const folder;
  std::filesystem::create_directories(folder / "hot_spots.json/within");
  HotSpotsFile file(folder / "hot_spots.json");
  WindowProfile window{.step = 5};
  CHECK_FALSE(file.add(window, [] { return 0.5; }));
  CHECK(window.overhead_seconds == 0.5);
  CHECK(entries(folder.path()) == 1);
  std::ofstream(folder / "no_folder") << "x";
  HotSpotsFile nowhere(folder / "no_folder/hot_spots.json");
  CHECK_FALSE(nowhere.add(window, [] { return 0.75; }));
  CHECK(window.overhead_seconds == 0.75);
}

}  // namespace frugal_test::policy_profile_hot_spots_file
