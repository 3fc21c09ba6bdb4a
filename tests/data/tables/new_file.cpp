// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/tables/new_file.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

TEST_CASE("a new file has its name once it is complete") {
  frugal_test::support::TemporaryFolder const folder;
  {
    frugal::detail::NewTableFile file(folder / "a.parquet");
    std::ofstream(file.partial()) << "rows";
    CHECK_FALSE(fs::exists(folder / "a.parquet"));
    file.commit();
  }
  CHECK(frugal_test::support::text_of(folder / "a.parquet") == "rows");
  CHECK(frugal_test::support::entries(folder.path()) == 1);
}

TEST_CASE("without commit nothing is left") {
  frugal_test::support::TemporaryFolder const folder;
  {
    frugal::detail::NewTableFile const file(folder / "a");
    std::ofstream(file.partial()) << "half";
  }
  CHECK(frugal_test::support::entries(folder.path()) == 0);
}

TEST_CASE("a file that is there already stays as it is") {
  frugal_test::support::TemporaryFolder const folder;
  std::ofstream(folder / "a") << "old";
  CHECK_THROWS_AS(frugal::detail::NewTableFile(folder / "a"), frugal::StoreError);
  frugal::detail::NewTableFile late(folder / "b");
  std::ofstream(late.partial()) << "new";
  std::ofstream(folder / "b") << "old";
  CHECK_THROWS_AS(late.commit(), frugal::StoreError);
  CHECK(frugal_test::support::text_of(folder / "b") == "old");
}
