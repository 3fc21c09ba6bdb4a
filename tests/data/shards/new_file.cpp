// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/new_file.hpp>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace frugal_test::data_shards_new_file {

using frugal::detail::NewFile;
using frugal::detail::NewFolder;
using frugal_test::support::entries;
using frugal_test::support::TemporaryFolder;
using frugal_test::support::text_of;

void write(NewFile& file, std::string_view text) { file.write(std::as_bytes(std::span(text))); }

TEST_CASE("a file has its name when it is published, and not before") {
  TemporaryFolder const folder;
  NewFile file(folder / "a");
  write(file, "whole");
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
  CHECK(file.path() == folder / "a");
  file.publish();
  CHECK(text_of(folder / "a") == "whole");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file that is not published leaves nothing") {
  TemporaryFolder const folder;
  {
    NewFile file(folder / "a");
    write(file, "half");
    CHECK(entries(folder.path()) == 1);
  }
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a file that exists stays as it is") {
  TemporaryFolder const folder;
  std::ofstream(folder / "a") << "first";
  {
    NewFile file(folder / "a");
    write(file, "second");
    CHECK_THROWS_AS(file.publish(), frugal::StoreError);
  }
  CHECK(text_of(folder / "a") == "first");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("two writers of one name do not meet") {
  TemporaryFolder const folder;
  NewFile one(folder / "a"), other(folder / "a");
  write(one, "one");
  write(other, "other");
  other.publish();
  CHECK_THROWS_AS(one.publish(), frugal::StoreError);
  CHECK(text_of(folder / "a") == "other");
}

TEST_CASE("what a killed process of the same number left behind is not in the way") {
  TemporaryFolder const folder;
  for (int i = 0; i < 100; ++i) {
    std::ofstream(folder /
                  (".a-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".partial"));
  }
  NewFile file(folder / "a");
  write(file, "whole");
  file.publish();
  CHECK(text_of(folder / "a") == "whole");
}

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

}  // namespace frugal_test::data_shards_new_file
