// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/folder_set.hpp>

#include <frugal/core/source/sample_set.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_folder_set {

using frugal::FolderSet;
using support::TemporaryFolder;

static_assert(frugal::IdentifiedSet<FolderSet>);

void put(std::filesystem::path const& path, std::string const& text) {
  std::filesystem::create_directories(path.parent_path());
  support::write_bytes(path, text);
}

std::string fault_of(std::filesystem::path const& root,
                     frugal::FolderSettings const& settings = {}) {
  try {
    (void)FolderSet(root, settings);
  } catch (frugal::DataError const& error) {
    return error.fault().what + ": " + error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("folders are classes in the order of their names, and files come by folder and name") {
  TemporaryFolder folder;
  put(folder / "b/z.txt", "bz");
  put(folder / "b/deep/a.txt", "bda");
  put(folder / "a/2.JPG", "a2");
  put(folder / "a/10.jpg", "a10");
  put(folder / "README.md", "no sample");
  put(folder / ".cache/x.jpg", "no class");
  put(folder / "a/.hidden", "no sample");
  FolderSet const set(folder.path());
  CHECK(set.classes() == std::vector<std::string>{"a", "b"});
  REQUIRE(set.size() == 4);
  std::vector<std::string> contents;
  std::vector<std::int64_t> labels;
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    contents.push_back(set.get(i).bytes);
    labels.push_back(set.get(i).label);
    CHECK(set.label(i) == labels.back());
  }
  // As sorted(os.walk(class)) and sorted(names) give them.
  CHECK(contents == std::vector<std::string>{"a10", "a2", "bz", "bda"});
  CHECK(labels == std::vector<std::int64_t>{0, 0, 1, 1});
  CHECK(set.get(1).extension == "jpg");
  CHECK(set.name(3) == (folder / "b/deep/a.txt").string());
}

TEST_CASE("endings choose the files, whatever their capitals") {
  TemporaryFolder folder;
  put(folder / "a/1.JPG", "1");
  put(folder / "a/1.txt", "2");
  CHECK(FolderSet(folder.path(), {.endings = {".jpg", ".png"}}).size() == 1);
  CHECK(fault_of(folder.path(), {.endings = {".gif"}}) ==
        "a class has no files: no file in it is a sample");
}

TEST_CASE("a folder without classes, and a path that is none, are refused") {
  TemporaryFolder folder;
  CHECK(fault_of(folder.path()) == "the folder has no classes: it has no folder in it");
  CHECK(fault_of(folder / "gone") == "the folder has no classes: it is no folder");
}

TEST_CASE("a file that is gone is an error of its sample") {
  TemporaryFolder folder;
  put(folder / "a/1.txt", "1");
  put(folder / "a/2.txt", "2");
  FolderSet const set(folder.path());
  std::filesystem::remove(folder / "a/1.txt");
  CHECK_THROWS_AS(set.get(0), frugal::DataError);
  CHECK(set.get(1).bytes == "2");
  CHECK_THROWS_AS(set.get(2), frugal::DataError);
}

TEST_CASE("a link to a folder above does not go round in circles") {
  TemporaryFolder folder;
  put(folder / "a/1.txt", "1");
  std::filesystem::create_directory_symlink(folder.path(), folder / "a/up");
  std::filesystem::create_symlink(folder / "a/1.txt", folder / "a/link.txt");
  CHECK(FolderSet(folder.path()).size() == 2);
}

TEST_CASE("the identity follows the files' sizes and names") {
  TemporaryFolder folder;
  put(folder / "a/1.txt", "1");
  auto const before = FolderSet(folder.path()).identity();
  CHECK(FolderSet(folder.path()).identity() == before);
  put(folder / "a/1.txt", "longer");
  auto const changed = FolderSet(folder.path()).identity();
  CHECK(changed != before);
  put(folder / "a/2.txt", "2");
  CHECK(FolderSet(folder.path()).identity() != changed);
}

}  // namespace frugal_test::data_shards_folder_set
