// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/shard_paths.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::data_shards_shard_paths {

using frugal::expand_braces;
using frugal::shard_paths;
using Names = std::vector<std::string>;

TEST_CASE("braces expand as in the shell") {
  CHECK(expand_braces("a.tar") == Names{"a.tar"});
  CHECK(expand_braces("s-{8..11}.tar") == Names{"s-8.tar", "s-9.tar", "s-10.tar", "s-11.tar"});
  CHECK(expand_braces("s-{08..11}.tar") == Names{"s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar"});
  CHECK(expand_braces("{000..2}") == Names{"000", "001", "002"});
  CHECK(expand_braces("{0..2}") == Names{"0", "1", "2"});
  CHECK(expand_braces("{2..0}") == Names{"2", "1", "0"});
  CHECK(expand_braces("{a,b,}x") == Names{"ax", "bx", "x"});
  CHECK(expand_braces("{a,b}-{1..2}") == Names{"a-1", "a-2", "b-1", "b-2"});
}

TEST_CASE("braces that are no pattern stand for themselves") {
  for (char const* name : {"a{b.tar", "a{}.tar", "a{x}.tar", "a{1..}.tar", "a}b{"}) {
    CAPTURE(name);
    CHECK(expand_braces(name) == Names{name});
  }
  CHECK(expand_braces("{x}{1..2}") == Names{"{x}1", "{x}2"});
}

TEST_CASE("more than a million shards are a slip of the pen") {
  CHECK_THROWS_AS(expand_braces("{0..1000000}"), frugal::SettingsError);
  CHECK_THROWS_AS(expand_braces("{0..18446744073709551615}"), frugal::SettingsError);
  CHECK_THROWS_AS(expand_braces("{0..9999}{0..9999}"), frugal::SettingsError);
}

TEST_CASE("a folder gives the files with these endings in the order of their names") {
  support::TemporaryFolder folder;
  for (char const* name : {"b.tar", "a.tar", "c.txt", ".d.tar", "a.tar.index"}) {
    support::write_bytes(folder / name, "x");
  }
  CHECK(shard_paths(folder.path().string(), {".tar"}) ==
        std::vector{folder / "a.tar", folder / "b.tar"});
  CHECK_THROWS_AS(shard_paths(folder.path().string(), {".zip", ".gz"}), frugal::DataError);
}

}  // namespace frugal_test::data_shards_shard_paths
