// SPDX-License-Identifier: Apache-2.0
// needs: archive
// Exactly once per epoch: the sets of shards/ x orders x workers x kills and resumes x world sizes.
#include "data/loading/exactly_once.hpp"

#include <doctest/doctest.h>

#include <frugal/data/shards/folder_set.hpp>
#include <frugal/data/shards/shard_order.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/tar_shard_writer.hpp>
#include <frugal/data/shards/text_lines.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/tar_files.hpp"

namespace frugal_test::data_shards_exactly_once {

using exactly_once::check_runs;
using exactly_once::check_set;
using exactly_once::Life;
using exactly_once::on;
using exactly_once::Run;
using support::TemporaryFolder;

constexpr int samples = 61;

/// The files of all cases, made once.
TemporaryFolder const& files() {
  static TemporaryFolder const folder;
  static bool const made = [] {
    frugal::TarShardWriter writer(folder / "tar", {.samples = 9});
    std::string lines;
    for (int i = 0; i < samples; ++i) {
      std::string const number = std::to_string(i);
      writer.add("s" + number, {{"txt", "text"}, {"cls", number}});
      lines += number + "\n";
      // In the order of the folder's set: by class, then by name.
      auto const of_class = folder / ("classes/" + std::to_string(i / 20));
      std::filesystem::create_directories(of_class);
      support::write_bytes(of_class / std::to_string(100 + i), number);
    }
    writer.finish();
    support::write_bytes(folder / "lines.txt", lines);
    return true;
  }();
  REQUIRE(made);
  return folder;
}

struct TarCase {
  static auto set() { return frugal::TarSet((files() / "tar").string()); }
  static std::int64_t id(frugal::TarSample const& sample) { return sample.integer("cls"); }
};
struct LinesCase {
  static auto set() { return frugal::TextLines(files() / "lines.txt"); }
  static std::int64_t id(std::string const& line) { return std::stoll(line); }
};
struct FolderCase {
  static auto set() { return frugal::FolderSet(files() / "classes"); }
  static std::int64_t id(frugal::LabelledFile const& file) { return std::stoll(file.bytes); }
};

TEST_CASE_TEMPLATE(
    "a set of shards gives each sample once, with any workers, kills and world sizes", Case,
    TarCase, LinesCase, FolderCase) {
  check_set<Case>();
}

TEST_CASE_TEMPLATE(
    "an order of shards gives each sample once, with any workers, kills and world sizes", Case,
    TarCase, LinesCase) {
  auto const sizes = [] {
    auto all = Case::set().shard_sizes();
    return all.size() > 1 ? all : frugal::blocks_of(all[0], 9);
  }();
  for (frugal::ShuffleWindow const window :
       {frugal::ShuffleWindow{.shards = 3}, frugal::ShuffleWindow{.samples = 20}}) {
    auto const order = [&](std::uint64_t, Life const& life) {
      return frugal::ShardOrder(sizes, {.batch = life.batch}, window, "set");
    };
    for (int const workers : {0, 1, 2, 4, 8}) {
      CAPTURE(workers);
      for (int world = 1; world <= 4; ++world) {
        std::vector<Run> all;
        for (Run const& run : exactly_once::runs) all.push_back(on(world, run));
        check_runs<Case>(all, workers, order);
      }
      check_runs<Case>(exactly_once::runs_of_changing_worlds, workers, order);
    }
  }
}

}  // namespace frugal_test::data_shards_exactly_once
