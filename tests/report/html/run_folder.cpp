// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/html/run_folder.hpp>

#include "report/html/run_files.hpp"
#include "support/files.hpp"

#include <cmath>
#include <string>

namespace frugal_test::html_profile_windows {

using namespace run_files;
using frugal::html::parse_windows;
using frugal::html::ProfileWindow;

ProfileWindow window_of(std::string const& spots) {
  auto windows = parse_windows(
      R"({"version":1,"windows":[{"step":7,"hot_spots":[)" + spots + "]}]}", "hot_spots.json");
  REQUIRE(windows.size() == 1);
  return windows[0];
}

TEST_CASE("an operation of several threads may have a share above 1") {
  ProfileWindow const window = window_of(
      R"({"name":"mm","share":3.5,"calls":4,"microseconds":12},{"name":"add","share":0})");
  REQUIRE(window.hot_spots.size() == 2);
  CHECK(window.hot_spots[0].share == 3.5);
  CHECK(window.hot_spots[0].calls == 4);
  CHECK(window.hot_spots[0].microseconds == 12);
  CHECK(std::isnan(window.hot_spots[1].microseconds));
  CHECK(window.damaged == 0);
}

TEST_CASE("a damaged hot spot is left out and counted, and the others stay") {
  ProfileWindow const window =
      window_of(R"({"share":0.5},{"name":"a","share":-1},{"name":"b"},{"name":"c","share":null},)"
                R"(7,{"name":"mm","share":0.5})");
  REQUIRE(window.hot_spots.size() == 1);
  CHECK(window.hot_spots[0].name == "mm");
  CHECK(window.damaged == 5);
}

TEST_CASE("a page says how many hot spots it leaves out") {
  support::TemporaryFolder const folder;
  put(folder / "metrics.jsonl", step(1));
  put(folder / "profile" / "hot_spots.json",
      R"({"version":1,"windows":[{"hot_spots":[{"name":"mm","share":1.5},{"name":"a"}]},)"
      R"({"hot_spots":[{"share":1}]}]})");
  auto const run = frugal::html::read_run_folder(folder.path());
  CHECK(run.windows.size() == 2);
  REQUIRE(run.notes.size() == 1);
  CHECK(run.notes[0] ==
        "profile/hot_spots.json has 2 hot spots without a name or a share, which the page leaves "
        "out.");
}

TEST_CASE("a text that is no file of windows is refused") {
  for (char const* text : {"", "[", "{}", R"({"version":2,"windows":[]})", R"({"version":1})",
                           R"({"version":1,"windows":[{}]})"}) {
    CHECK_THROWS_AS(static_cast<void>(parse_windows(text, "x")), frugal::DataError);
  }
}

}  // namespace frugal_test::html_profile_windows
