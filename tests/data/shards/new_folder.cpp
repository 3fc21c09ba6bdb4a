// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/new_folder.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <filesystem>

namespace frugal_test::data_shards_new_folder {

using frugal::detail::NewFolder;
using support::TemporaryFolder;

TEST_CASE("a folder has its name when it is complete, and not before") {
  TemporaryFolder folder;
  {
    NewFolder made(folder / "deep/set/");
    CHECK(made.path() == folder / "deep/set");
    support::write_bytes(made.partial() / "file", "content");
    CHECK_FALSE(std::filesystem::exists(folder / "deep/set"));
    made.publish();
  }
  CHECK(support::text_of(folder / "deep/set/file") == "content");
  CHECK_FALSE(std::filesystem::exists(folder / "deep/set.partial"));
}

TEST_CASE("a folder that is given up leaves nothing") {
  TemporaryFolder folder;
  {
    support::write_bytes(NewFolder(folder / "set").partial() / "file", "content");
  }
  CHECK(support::entries(folder.path()) == 0);
}

TEST_CASE("a folder or partial folder that is there is left as it is") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "set");
  CHECK_THROWS_AS(NewFolder(folder / "set"), frugal::SettingsError);
  std::filesystem::create_directories(folder / "other.partial");
  CHECK_THROWS_AS(NewFolder(folder / "other"), frugal::SettingsError);
  CHECK(support::entries(folder.path()) == 2);
  // One that comes into being meanwhile, too.
  NewFolder late(folder / "late");
  std::filesystem::create_directories(folder / "late");
  CHECK_THROWS_AS(late.publish(), frugal::SettingsError);
}

}  // namespace frugal_test::data_shards_new_folder
