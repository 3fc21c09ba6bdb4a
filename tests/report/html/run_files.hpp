// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/curate/curation.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

// Files of runs, for pages.
namespace frugal_test::run_files {

inline void put(std::filesystem::path const& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

inline constexpr std::string_view head =
    R"({"event":"begin","step":0,"epoch":0,"samples":0,"seconds":0,"parameters":421642,"seed":3})"
    "\n"
    R"({"event":"price","step":0,"epoch":0,"samples":0,"seconds":0,"device":"A100","currency":"USD","per_hour":36,"per":"device","devices":2,"source":"given"})"
    "\n";
inline std::string step(int at, std::string const& more = "") {
  return R"({"event":"step","step":)" + std::to_string(at) + R"(,"epoch":0,"samples":)" +
         std::to_string(32 * at) + R"(,"seconds":)" + std::to_string(at) + R"(,"loss":)" +
         std::to_string(1.0 / at) + more + "}\n";
}

/// 30 of 1200 samples of 2 KiB, of which 10 are copies. A sample takes half a second at $36 an
/// hour.
inline void put_duplicates(std::filesystem::path const& path) {
  frugal::Curation found{.name = "letters", .identity = {}, .method = "Jaccard 0.8"};
  found.samples = 1200;
  found.bytes = found.samples * 2048;
  found.price = {.per_hour = 36, .seconds_per_sample = 0.5};
  for (std::uint64_t i = 1; i <= 30; ++i) {
    bool const copy = i % 3 == 0;
    found.removed.push_back({.index = i,
                             .similarity = copy ? 1 : 0.9,
                             .copy = copy,
                             .through_similarity = 0.9,
                             .bytes = 2048});
  }
  frugal::write_curation(path, found);
}

}  // namespace frugal_test::run_files
