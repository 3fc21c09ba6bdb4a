// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/command.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <string>

namespace frugal_test::store_command {

using frugal::Command;
using frugal::detail::filled;
using frugal::detail::run_command;

std::string why(Command const& command) {
  try {
    run_command(command);
  } catch (frugal::StoreError const& error) {
    return error.fault().why;
  }
  return "it ended well";
}

TEST_CASE("placeholders are replaced wherever they stand, once") {
  CHECK(filled({"cp", "{file}", "s3://b/{name}.{hash}", "{other}", "{", "}{file"},
               {{"file", "/a/{name}"}, {"name", "x"}, {"hash", "1f"}}) ==
        Command{"cp", "/a/{name}", "s3://b/x.1f", "{other}", "{", "}{file"});
}

TEST_CASE("a command that exits with 0 succeeds") { CHECK_NOTHROW(run_command({"true"})); }

TEST_CASE("a command that exits otherwise is an error with its exit code and output") {
  CHECK(why({"sh", "-c", "echo out; echo err >&2; exit 9"}) ==
        "exit code 9, and it said \"out\nerr\"");
  CHECK(why({"false"}) == "exit code 1, and it said nothing");
  CHECK(why({"sh", "-c", "kill -9 $$"}) == "signal 9, and it said nothing");
}

TEST_CASE("a command that is missing, or empty, is an error") {
  CHECK(why({"no-such-program-of-frugal"}).find("No such file or directory") != std::string::npos);
  CHECK(why({}) == "it is empty");
}

TEST_CASE("arguments reach the program unchanged, whatever a shell would make of them") {
  support::TemporaryFolder folder;
  std::string const name = (folder / "a b; $(touch c) `d` * 'e").string();
  run_command({"touch", name});
  CHECK(std::filesystem::exists(name));
}

TEST_CASE("a command with endless output does not hang") {
  CHECK(why({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 1"}).size() < 4000);
}

TEST_CASE("a command gets an empty input and not the trainer's terminal") {
  CHECK_NOTHROW(run_command({"sh", "-c", "! read line"}));
}

}  // namespace frugal_test::store_command
