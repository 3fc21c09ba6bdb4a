// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/base/whole_file.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/full_disk.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::store_whole_file {

using frugal::detail::Durable;
using frugal::detail::read_whole_file;
using frugal::detail::write_whole_file;

TEST_CASE("a file is replaced as a whole, and nothing is left next to it") {
  for (Durable const durable : {Durable::yes, Durable::no}) {
    support::TemporaryFolder folder;
    std::ofstream(folder / "a.new") << "of a process that was killed";
    for (std::string const& text :
         {std::string("first"), std::string("\0second\n", 8), std::string()}) {
      write_whole_file(folder / "a", text, durable);
      CHECK(read_whole_file(folder / "a") == text);
      CHECK(support::entries(folder.path()) == 1);
    }
  }
}

TEST_CASE("a full disk keeps the old file, and nothing is left next to it") {
  for (Durable const durable : {Durable::yes, Durable::no}) {
    support::TemporaryFolder folder;
    std::ofstream(folder / "a") << "old";
    {
      support::FullDisk const full;
      CHECK_THROWS_AS(write_whole_file(folder / "a", "new", durable), frugal::StoreError);
    }
    CHECK(read_whole_file(folder / "a") == "old");
    CHECK(support::entries(folder.path()) == 1);
  }
}

TEST_CASE("a folder that is not there, and a file that is missing, are StoreErrors") {
  support::TemporaryFolder folder;
  CHECK_THROWS_AS(write_whole_file(folder / "none/a", "x", Durable::no), frugal::StoreError);
  CHECK_THROWS_AS(static_cast<void>(read_whole_file(folder / "a")), frugal::StoreError);
  std::filesystem::create_directory(folder / "d");
  CHECK_THROWS_AS(write_whole_file(folder / "d", "x", Durable::no), frugal::StoreError);
  CHECK(support::entries(folder.path()) == 1);
}

}  // namespace frugal_test::store_whole_file
