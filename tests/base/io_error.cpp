// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/io_error.hpp>

#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/files.hpp"

namespace frugal_test::store_permissions {

namespace fs = std::filesystem;
using frugal::detail::nearest_existing;
using frugal::detail::permissions_text;
using frugal_test::support::TemporaryFolder;

TEST_CASE("the closest folder that exists is found, however far above the path it is") {
  TemporaryFolder const folder;
  fs::path const here = fs::canonical(folder.path());
  CHECK(nearest_existing(here / "a" / "b" / "c") == here);
  CHECK(nearest_existing(here / "a" / "..") == here);
  CHECK(nearest_existing(here / "") == here);
  CHECK(nearest_existing("/there-is-no-such-folder/at-all") == "/");
}

TEST_CASE("owner, group and mode are named, and who asks") {
  TemporaryFolder const folder;
  fs::path const here = fs::canonical(folder.path());
  fs::permissions(here, fs::perms(0750));
  std::string const ids =
      " has owner " + std::to_string(::geteuid()) + ", group " + std::to_string(::getegid()) +
      " and mode 750, and this process runs as user " + std::to_string(::geteuid());
  CHECK(permissions_text(here / "a") == "'" + here.string() + "'" + ids);
}

}  // namespace frugal_test::store_permissions
