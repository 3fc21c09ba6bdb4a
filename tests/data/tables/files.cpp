// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/tables/files.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

namespace fs = std::filesystem;

TEST_CASE("a folder stands for its files of that ending, by name") {
  frugal_test::support::TemporaryFolder const folder;
  for (char const* name : {"b.csv", "a.csv", "c.txt"}) std::ofstream(folder / name) << "x";
  CHECK(frugal::detail::table_files({folder.path()}, ".csv") ==
        std::vector<fs::path>{folder / "a.csv", folder / "b.csv"});
  CHECK(frugal::detail::table_files({folder / "c.txt", folder.path()}, ".csv") ==
        std::vector<fs::path>{folder / "c.txt", folder / "a.csv", folder / "b.csv"});
  CHECK_THROWS_AS(frugal::detail::table_files({folder.path()}, ".avro"), frugal::SettingsError);
  CHECK_THROWS_AS(frugal::detail::table_files({}, ".csv"), frugal::SettingsError);
}

TEST_CASE("a file's identity changes with its size and time") {
  frugal_test::support::TemporaryFolder const folder;
  std::ofstream(folder / "a") << "x";
  auto const before = frugal::detail::file_identity(folder / "a");
  CHECK(frugal::detail::file_identity(folder / "a") == before);
  fs::last_write_time(folder / "a", fs::last_write_time(folder / "a") + std::chrono::seconds(1));
  CHECK(frugal::detail::file_identity(folder / "a") != before);
}

TEST_CASE("a name that is taken is refused") {
  frugal_test::support::TemporaryFolder const folder;
  frugal::detail::require_free(folder / "a");
  std::ofstream(folder / "a") << "x";
  CHECK_THROWS_AS(frugal::detail::require_free(folder / "a"), frugal::StoreError);
}

TEST_CASE("a row is found in its group") {
  frugal::detail::GroupIndex index;
  for (std::uint64_t const rows : {3U, 1U, 4U}) index.add(rows);
  CHECK(index.size() == 8);
  CHECK(index.sizes() == std::vector<std::uint64_t>{3, 1, 4});
  std::vector<std::size_t> groups;
  for (std::uint64_t i = 0; i < 8; ++i) groups.push_back(index.group(i));
  CHECK(groups == std::vector<std::size_t>{0, 0, 0, 1, 2, 2, 2, 2});
  CHECK(index.first(0) == 0);
  CHECK(index.first(2) == 4);
}
