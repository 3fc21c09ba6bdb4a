// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/cold_storage.hpp>

#include <chrono>
#include <string>

namespace frugal_test::store_cold_storage {

using frugal::ColdCommand;
using frugal::ColdFolder;
using frugal::Command;

Command const put = {"cp", "{file}", "/cold/{name}"};
Command const get = {"cp", "/cold/{name}", "{file}"};
Command const verify = {"cmp", "{file}", "/cold/{name}"};

std::string refused(frugal::ColdStorage const& storage) {
  try {
    frugal::detail::require_usable(storage);
  } catch (frugal::SettingsError const& error) {
    return error.fault().where + ": " + error.fault().why;
  }
  return "";
}

TEST_CASE("a folder and commands that can be verified are usable") {
  CHECK(refused(ColdFolder{"/cold"}).empty());
  CHECK(refused(ColdCommand{.put = put, .get = get, .verify = {}}).empty());
  CHECK(refused(ColdCommand{.put = put, .get = {}, .verify = verify}).empty());
  CHECK(refused(ColdCommand{.put = put, .get = get, .verify = verify}).empty());
}

TEST_CASE("a folder without a name is refused") {
  CHECK(refused(ColdFolder{}) == "ColdFolder::folder: it is empty");
}

TEST_CASE("commands that would store every checkpoint under one name, or none, are refused") {
  std::string const both = ": it does not mention both {file} and {name}";
  for (Command const& command : {Command{}, {"cp", "{file}", "/cold"}, {"touch", "/cold/{name}"}}) {
    CHECK(refused(ColdCommand{.put = command, .get = get, .verify = {}}) ==
          "ColdCommand::put" + both);
    if (command.empty()) continue;
    CHECK(refused(ColdCommand{.put = put, .get = command, .verify = {}}) ==
          "ColdCommand::get" + both);
  }
}

TEST_CASE("commands with a time limit of zero are refused") {
  CHECK(refused(ColdCommand{
            .put = put, .get = get, .verify = {}, .patience = std::chrono::seconds(0)}) ==
        "ColdCommand::patience: it is not above 0");
}

TEST_CASE("commands that never verify what they store are refused") {
  CHECK(refused(ColdCommand{.put = put, .get = {}, .verify = {}}) ==
        "ColdCommand::get: neither get nor verify is there");
  CHECK(refused(ColdCommand{.put = put, .get = get, .verify = {"true"}}) ==
        "ColdCommand::verify: it does not mention {name}");
}

TEST_CASE("a command gets the local file, the remote name, the size and the hash") {
  CHECK(frugal::detail::for_object({"x", "{file}", "s3://b/{name}", "{size}", "{hash}"}, "/a/b",
                                   {.name = "n.tar.zst", .size = 12, .hash = 0xab}) ==
        Command{"x", "/a/b", "s3://b/n.tar.zst", "12", "00000000000000ab"});
}

}  // namespace frugal_test::store_cold_storage
