// SPDX-License-Identifier: Apache-2.0
// needs: archive
// Exactly once per epoch: the sets of shards/ x orders x workers x kills and resumes x world sizes.
#include "data/loading/exactly_once.hpp"

#include <doctest/doctest.h>

#include <frugal/data/shards/folder_set.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/tar_shard_writer.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/files.hpp"
#include "support/tar_files.hpp"

namespace frugal_test::data_shards_exactly_once {

using exactly_once::check_set;
using support::TemporaryFolder;

constexpr int samples = 61;

/// The files of all cases, made once.
TemporaryFolder const& files() {
  static TemporaryFolder const folder;
  static bool const made = [] {
    frugal::TarShardWriter writer(folder / "tar", {.samples = 9});
    for (int i = 0; i < samples; ++i) {
      std::string const number = std::to_string(i);
      writer.add("s" + number, {{"txt", "text"}, {"cls", number}});
      // In the order of the folder's set: by class, then by name.
      auto const of_class = folder / ("classes/" + std::to_string(i / 20));
      std::filesystem::create_directories(of_class);
      support::write_bytes(of_class / std::to_string(100 + i), number);
    }
    writer.finish();
    return true;
  }();
  REQUIRE(made);
  return folder;
}

struct TarCase {
  static auto set() { return frugal::TarSet((files() / "tar").string()); }
  static std::int64_t id(frugal::TarSample const& sample) { return sample.integer("cls"); }
};
struct FolderCase {
  static auto set() { return frugal::FolderSet(files() / "classes"); }
  static std::int64_t id(frugal::LabelledFile const& file) { return std::stoll(file.bytes); }
};

TEST_CASE_TEMPLATE(
    "a set of shards gives each sample once, with any workers, kills and world sizes", Case,
    TarCase, FolderCase) {
  check_set<Case>();
}

}  // namespace frugal_test::data_shards_exactly_once
