// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json.hpp>
#include <frugal/report/html/run_folder.hpp>
#include <frugal/report/profile/hot_spots_file.hpp>

#include "support/files.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

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
