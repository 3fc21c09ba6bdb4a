// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/tar_members.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace frugal_test::data_shards_tar_members {

using frugal::DataError;
using frugal::detail::PooledFile;
using frugal::detail::TarMembers;
using namespace support;

TEST_CASE("members come in order, with where their content begins") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.tar",
                                tar_member("d/", "", '5') + tar_member("a.txt", "abc") +
                                    tar_member("l.txt", "", '2') + tar_member("b", "") + tar_end());
  TarMembers members(PooledFile(path), TarMembers::Filters::none);
  REQUIRE(members.next());
  CHECK_FALSE(members.current().plain);
  REQUIRE(members.next());
  CHECK(members.current().plain);
  CHECK(members.current().name == "a.txt");
  CHECK(members.current().size == 3);
  CHECK(members.position() == 1024);
  CHECK(members.content(3) == "abc");
  REQUIRE(members.next());
  CHECK_FALSE(members.current().plain);
  REQUIRE(members.next());
  CHECK(members.content(0).empty());
  CHECK_FALSE(members.next());
}

TEST_CASE("content above the limit, or beyond the file, is refused before memory is taken") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.tar", tar_header("a.bin", std::uint64_t{1} << 60));
  TarMembers members(PooledFile(path), TarMembers::Filters::none);
  REQUIRE(members.next());
  CHECK(members.current().size == std::uint64_t{1} << 60);
  CHECK_THROWS_AS(members.content(1000), DataError);
  CHECK_THROWS_AS(members.content(std::uint64_t{1} << 62), DataError);
}

TEST_CASE("what is no tar file is refused with the file") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.tar", std::string(2000, 'x'));
  CHECK_THROWS_WITH_AS(TarMembers(PooledFile(path), TarMembers::Filters::none),
                       doctest::Contains(path.c_str()), DataError);
  CHECK_THROWS_AS(TarMembers(PooledFile(folder / "missing.tar"), TarMembers::Filters::all),
                  frugal::StoreError);
}

TEST_CASE("a file that changes while it is read is no damaged one") {
  TemporaryFolder folder;
  auto const path =
      write_bytes(folder / "t.tar", tar_member("a.bin", std::string(1 << 20, 'a')) + tar_end());
  TarMembers members(PooledFile(path), TarMembers::Filters::none);
  REQUIRE(members.next());
  std::filesystem::resize_file(path, 1000);
  CHECK_THROWS_AS(members.content(1 << 20), frugal::ChangedError);
}

}  // namespace frugal_test::data_shards_tar_members
