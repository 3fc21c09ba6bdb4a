// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/marks.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::checkpoint_heartbeat {

using frugal::detail::Heartbeat;
using support::TemporaryFolder;

TEST_CASE("the last beat is read") {
  TemporaryFolder const folder;
  {
    Heartbeat const heart(folder / "heartbeat");
    heart.beat({.step = 1234567, .seconds = 100.25});
    heart.beat({.step = 8, .seconds = 0.5});
  }
  auto const last = Heartbeat::read(folder / "heartbeat");
  REQUIRE(last);
  CHECK(last->step == 8);
  CHECK(last->seconds == 0.5);
}

TEST_CASE("a missing, empty or malformed heartbeat is nothing") {
  TemporaryFolder const folder;
  CHECK_FALSE(Heartbeat::read(folder / "heartbeat"));
  std::ofstream(folder / "empty").flush();
  CHECK_FALSE(Heartbeat::read(folder / "empty"));
  std::ofstream(folder / "garbage") << "step by step";
  CHECK_FALSE(Heartbeat::read(folder / "garbage"));
}

TEST_CASE("impossible numbers are nothing") {
  TemporaryFolder const folder;
  auto const reads = [&](std::string const& text) {
    std::ofstream(folder / "heartbeat") << text;
    return Heartbeat::read(folder / "heartbeat").has_value();
  };
  CHECK(reads("step 00000000000000000012 seconds 0000000000001.500000\n"));
  for (std::string const text :
       {"step -21 seconds 5.0\n", "step 18446744073709551595 seconds 5.0\n",
        "step 21 seconds -5.0\n", "step 99999999999999999999 seconds 5.0\n",
        "step 21 seconds nan\n", "step 21 seconds inf\n", "step 21 seconds 5.0",
        "step 21 seconds 5.0 and more\n", "step 21seconds 5.0\n", "step 21 seconds \n"}) {
    CAPTURE(text);
    CHECK_FALSE(reads(text));
  }
}

TEST_CASE("a heartbeat does not follow a symbolic link") {
  TemporaryFolder const folder;
  std::ofstream(folder / "thesis.txt") << "three years of work";
  std::filesystem::create_symlink("thesis.txt", folder / "heartbeat");
  Heartbeat(folder / "heartbeat").beat({.step = 1, .seconds = 1});
  CHECK(support::text_of(folder / "thesis.txt") == "three years of work");
}

TEST_CASE("a heartbeat that cannot be written is no error") {
  Heartbeat const heart("/nowhere/at/all");
  CHECK_NOTHROW(heart.beat({.step = 1, .seconds = 1}));
}

}  // namespace frugal_test::checkpoint_heartbeat

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
