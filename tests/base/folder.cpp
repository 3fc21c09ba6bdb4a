// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/folder.hpp>

#include <sys/fsuid.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/files.hpp"

namespace frugal_test::store_folder {

namespace fs = std::filesystem;
using frugal_test::support::TemporaryFolder;

/// In a test that runs as root: for the file system, this thread is somebody else.
class Unprivileged {
 public:
  Unprivileged() {
    if (root_) ::setfsuid(65534);
  }
  Unprivileged(Unprivileged const&) = delete;
  Unprivileged& operator=(Unprivileged const&) = delete;
  ~Unprivileged() {
    if (root_) ::setfsuid(0);
  }

 private:
  bool root_ = ::geteuid() == 0;
};

std::optional<frugal::IoError> refused(fs::path const& path) {
  try {
    frugal::create_folders(path);
  } catch (frugal::IoError const& error) {
    return error;
  }
  return std::nullopt;
}

bool says(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("folders are created with those above them, and existing ones are no error") {
  TemporaryFolder const folder;
  frugal::create_folders(folder.path() / "a" / "b" / "");
  frugal::create_folders(folder.path() / "a" / "b" / "c");
  CHECK(fs::is_directory(folder.path() / "a" / "b" / "c"));
}

TEST_CASE(
    "without permission, the error names the folder, the path wanted, the owner and the mode") {
  TemporaryFolder const folder;
  fs::path const closed = fs::canonical(folder.path()) / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms(0555));
  fs::path const wanted = closed / "runs" / "demo" / "checkpoints";
  auto const error = [&] {
    Unprivileged const nobody;
    return refused(wanted);
  }();
  REQUIRE(error);
  CHECK(error->code == EACCES);
  CHECK(error->fault().what == "the folder " + (closed / "runs").string() + " cannot be created");
  CHECK(error->fault().where == "mkdir, on the way to " + wanted.string());
  CHECK(says(error->fault().why, "Permission denied"));
  CHECK(says(error->fault().why, "'" + closed.string() + "' has owner "));
  CHECK(says(error->fault().why, "mode 555"));
  CHECK(says(error->fault().fix, "Give this user write permission"));
}

TEST_CASE("a file on the way to a folder is named") {
  TemporaryFolder const folder;
  fs::path const file = fs::canonical(folder.path()) / "file";
  std::ofstream(file) << "text";
  for (fs::path const& wanted : {file / "run", file}) {
    auto const error = refused(wanted);
    REQUIRE(error);
    CHECK(says(error->fault().what, "the folder " + file.string() + " cannot be created"));
    CHECK(says(error->fault().why, "'" + file.string() + "' is not a folder"));
    CHECK(says(error->fault().fix, "Remove it, or set another run directory"));
  }
}

TEST_CASE("no space and a read-only file system say what to do") {
  fs::path const path = "/somewhere/run";
  auto const full = frugal::detail::folder_error(path, path, ENOSPC);
  CHECK(full.code == ENOSPC);
  CHECK(full.fault().where == "mkdir");
  CHECK(says(full.fault().why, "No space left on device"));
  CHECK(says(full.fault().fix, "Make room on that disk"));
  auto const read_only = frugal::detail::folder_error(path, "/somewhere", EROFS);
  CHECK(says(read_only.fault().why, "Read-only file system"));
  CHECK(says(read_only.fault().fix, "Set a run directory on a disk that can be written"));
}

TEST_CASE("the first missing folder of a path is found") {
  TemporaryFolder const folder;
  fs::create_directories(folder.path() / "a");
  CHECK(frugal::detail::first_missing(folder.path() / "a" / "b" / "c") ==
        folder.path() / "a" / "b");
  CHECK(frugal::detail::first_missing(folder.path() / "a") == folder.path() / "a");
}

}  // namespace frugal_test::store_folder
