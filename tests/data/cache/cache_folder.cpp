// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_folder.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace frugal_test::data_cache_cache_folder {

using frugal::detail::CacheFolderLock;
using frugal_test::support::TemporaryFolder;

TEST_CASE("those who share a folder do not exclude each other, but one who wants it alone") {
  TemporaryFolder const folder;
  auto const path = folder / "a" / "b";
  {
    auto const one = CacheFolderLock::shared(path);
    auto const other = CacheFolderLock::shared(path);
    CHECK(std::filesystem::is_directory(path));
    CHECK_FALSE(CacheFolderLock::alone(path));
  }
  CHECK(CacheFolderLock::alone(path));
}

TEST_CASE("what is no folder cannot be had alone, nor shared") {
  TemporaryFolder const folder;
  CHECK_FALSE(CacheFolderLock::alone(folder / "missing"));
  std::ofstream(folder / "file") << "x";
  CHECK_FALSE(CacheFolderLock::alone(folder / "file"));
  CHECK_THROWS_AS(CacheFolderLock::shared(folder / "file"), frugal::StoreError);
}

TEST_CASE("a lock goes with its object") {
  TemporaryFolder const folder;
  auto lock = std::optional(CacheFolderLock::shared(folder / "a"));
  {
    CacheFolderLock const moved(std::move(*lock));
    lock.reset();
    CHECK_FALSE(CacheFolderLock::alone(folder / "a"));
  }
  CHECK(CacheFolderLock::alone(folder / "a"));
}

}  // namespace frugal_test::data_cache_cache_folder
