// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <frugal/base/file_id.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <fstream>

namespace frugal_test::store_file_stamp {

using frugal::detail::FileStamp;
using frugal_test::support::TemporaryFolder;

FileStamp stamp_of(std::filesystem::path const& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return FileStamp::of(status);
}

TEST_CASE("a stamp is the same until the file is written to or replaced") {
  TemporaryFolder const folder;
  std::ofstream(folder / "a") << "12345";
  FileStamp const first = stamp_of(folder / "a");
  CHECK(first.size == 5);
  CHECK(stamp_of(folder / "a") == first);
  std::ofstream(folder / "a", std::ios::app) << "6";
  FileStamp const longer = stamp_of(folder / "a");
  CHECK_FALSE(longer == first);
  CHECK((longer.id == first.id));
  std::ofstream(folder / "b") << "123456";
  std::filesystem::rename(folder / "b", folder / "a");
  CHECK_FALSE((stamp_of(folder / "a").id == longer.id));
}

TEST_CASE("times have nanoseconds, and a time that is set back does not hide a change") {
  TemporaryFolder const folder;
  std::ofstream(folder / "a") << "12345";
  FileStamp const first = stamp_of(folder / "a");
  timespec const times[] = {{.tv_sec = 7, .tv_nsec = 9}, {.tv_sec = 7, .tv_nsec = 9}};
  REQUIRE(::utimensat(AT_FDCWD, (folder / "a").c_str(), times, 0) == 0);
  FileStamp const set_back = stamp_of(folder / "a");
  CHECK(set_back.modified == 7'000'000'009);
  CHECK(set_back.changed >= first.changed);
  CHECK(set_back.changed != set_back.modified);
}

}  // namespace frugal_test::store_file_stamp
