// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/seen_file.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <string>

namespace frugal_test::policy_checkpoint_seen_file {

using frugal::detail::SeenFile;

TEST_CASE("a process sees the file in the same folder alone, and only while it is there") {
  support::TemporaryFolder const folder, other;
  std::string text;
  {
    SeenFile const file(folder.path());
    text = file.text();
    CHECK(SeenFile::is_seen(folder.path(), text, 1));
    CHECK_FALSE(SeenFile::is_seen(other.path(), text, 1));
    // A file of this name that another machine has written.
    CHECK_FALSE(SeenFile::is_seen(folder.path(), text + "x", 1));
    CHECK_FALSE(SeenFile::is_seen(folder / "below", "../" + text, 1));
    CHECK_FALSE(SeenFile::is_seen(folder.path(), "no text", 1));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK_FALSE(SeenFile::is_seen(folder.path(), text, 1));
}

TEST_CASE("where the file cannot be written nobody is asked: the first save says why") {
  support::TemporaryFolder const folder;
  SeenFile const file(folder / "missing");
  CHECK(file.text() == "");
  CHECK(SeenFile::is_seen(folder.path(), file.text(), 1));
}

}  // namespace frugal_test::policy_checkpoint_seen_file
