// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/curate/whole_file.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::data_curate_whole_file {

using frugal::detail::read_whole_file;
using frugal::detail::write_whole_file;

TEST_CASE("a file is replaced as a whole, and nothing is left next to it") {
  support::TemporaryFolder folder;
  std::ofstream(folder / "a.new") << "of a process that was killed";
  for (std::string const& text :
       {std::string("first"), std::string("\0second\n", 8), std::string()}) {
    write_whole_file(folder / "a", text);
    CHECK(read_whole_file(folder / "a") == text);
    CHECK(support::entries(folder.path()) == 1);
  }
}

TEST_CASE("a folder that is not there, and a file that is missing, are StoreErrors") {
  support::TemporaryFolder folder;
  CHECK_THROWS_AS(write_whole_file(folder / "none/a", "x"), frugal::StoreError);
  CHECK_THROWS_AS(static_cast<void>(read_whole_file(folder / "a")), frugal::StoreError);
  std::filesystem::create_directory(folder / "d");
  CHECK_THROWS_AS(write_whole_file(folder / "d", "x"), frugal::StoreError);
}

}  // namespace frugal_test::data_curate_whole_file
