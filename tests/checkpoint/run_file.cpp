// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/run_file.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace frugal_test::store_run_file {

using frugal::detail::Links;
using frugal::detail::open_run_file;
using frugal::detail::read_run_file;
using namespace support;

TEST_CASE("a link under a name of frugal's own is not opened, and what is behind it stays") {
  TemporaryFolder const folder;
  write_text(folder / "behind", "someone's");
  std::filesystem::create_symlink(folder / "behind", folder / "name");
  errno = 0;
  CHECK(open_run_file(folder / "name", O_WRONLY | O_CREAT | O_TRUNC) == -1);
  CHECK(errno == ELOOP);
  CHECK(text_of(folder / "behind") == "someone's");
  CHECK(read_run_file(folder / "name", 100).empty());
  CHECK(frugal::detail::why_of(folder / "name", ELOOP) ==
        "it is a symbolic link, and such a one is followed only where a path is set");
}

TEST_CASE("a link to nothing makes no file where it leads") {
  TemporaryFolder const folder;
  std::filesystem::create_symlink(folder / "behind", folder / "name");
  CHECK(open_run_file(folder / "name", O_WRONLY | O_CREAT) == -1);
  CHECK_FALSE(std::filesystem::exists(folder / "behind"));
}

TEST_CASE("a link that the program has named is followed, and so is one to the folder") {
  TemporaryFolder const folder;
  write_text(folder / "behind", "text");
  std::filesystem::create_symlink(folder / "behind", folder / "name");
  int const named = open_run_file(folder / "name", O_RDONLY, Links::follow);
  CHECK(named >= 0);
  ::close(named);
  std::filesystem::create_directory_symlink(folder.path(), folder / "run");
  CHECK(read_run_file(folder / "run" / "behind", 100) == "text");
  CHECK(read_run_file(folder / "behind", 2) == "te");
  CHECK(frugal::detail::links_of("") == Links::refuse);
  CHECK(frugal::detail::links_of("/dev/stdout") == Links::follow);
}

TEST_CASE("a file that is opened is closed in a program that this one starts") {
  TemporaryFolder const folder;
  int const file = open_run_file(folder / "new", O_WRONLY | O_CREAT);
  REQUIRE(file >= 0);
  CHECK((::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
  ::close(file);
}

}  // namespace frugal_test::store_run_file
