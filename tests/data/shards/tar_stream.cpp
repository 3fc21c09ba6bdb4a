// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/tar_stream.hpp>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::data_shards_tar_stream {

using frugal::DataError;
using frugal::detail::PooledFile;
using frugal::detail::TarMembers;
using namespace support;
using frugal::TarStream;

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

/// What a stream gives until its end: "key: extension=bytes ...", or the error's reason.
std::vector<std::string> told(std::filesystem::path const& path,
                              std::uint64_t most = std::uint64_t{1} << 32) {
  TarStream stream(path, most);
  std::vector<std::string> out;
  for (int i = 0; i < 100; ++i) {
    try {
      auto const sample = stream.next();
      if (!sample) return out;
      out.push_back(sample->key + ":");
      for (auto const& field : sample->fields) {
        out.back() += " " + field.extension + "=" + field.bytes;
      }
    } catch (DataError const& error) {
      out.push_back("! " + error.fault().why);
    }
  }
  return {"no end"};
}

TEST_CASE("neighbours with one key are one sample, as in a TarSet") {
  TemporaryFolder folder;
  auto const path = write_bytes(
      folder / "t.tar", tar_member("__meta__/x.json", "{}") + tar_member("a.txt", "1") +
                            tar_member("README", "text") + tar_member("a.cls", "7") +
                            tar_member("b.txt", "2") + tar_member("a.txt", "3") + tar_end());
  CHECK(told(path) == std::vector<std::string>{"a: txt=1 cls=7", "b: txt=2", "a: txt=3"});
}

TEST_CASE("a bad member costs its sample, each unsafe name is told of, and the stream goes on") {
  TemporaryFolder folder;
  std::string const up = "! a member's name leads out of its folder (..)";
  std::string const root = "! a member's name is an absolute path";
  auto const path =
      write_bytes(folder / "t.tar", tar_member("../v.txt", "v") + tar_member("/w.txt", "w") +
                                        tar_member("a.txt", "1") + tar_member("../x.txt", "x") +
                                        tar_member("a.cls", "7") + tar_member("/y.txt", "y") +
                                        tar_member("b.txt", "2") + tar_member("b.txt", "again") +
                                        tar_member("c.txt", "3") + tar_end());
  CHECK(told(path) == std::vector<std::string>{up, root, "a: txt=1 cls=7", up, root,
                                               "! the sample has a member of that name already",
                                               "c: txt=3"});
}

TEST_CASE("any number of unsafe names within a sample is told of, and takes bounded memory") {
  TemporaryFolder folder;
  std::string bytes = tar_member("a.txt", "1");
  for (int i = 0; i < 2500; ++i) bytes += tar_member("../x.txt", "");
  auto const path = write_bytes(folder / "t.tar", bytes + tar_member("b.txt", "2") + tar_end());
  TarStream stream(path);
  CHECK(stream.next()->key == "a");
  int errors = 0;
  std::optional<frugal::PackedSample> last;
  while (!last) {
    try {
      last = stream.next();
    } catch (DataError const&) {
      ++errors;
    }
  }
  CHECK(errors == 2500);
  CHECK(last->key == "b");
  CHECK_FALSE(stream.next());
}

TEST_CASE("a stream ends at its damage") {
  TemporaryFolder folder;
  std::string const bytes = tar_member("a.txt", "1") + tar_member("b.txt", std::string(5000, 'b'));
  auto const cut = told(write_bytes(folder / "cut.tar", bytes.substr(0, bytes.size() - 2000)));
  REQUIRE(cut.size() == 2);
  CHECK(cut[0] == "a: txt=1");
  CHECK(cut[1].starts_with("! "));
  CHECK_THROWS_AS(told(write_bytes(folder / "none.tar", std::string(2000, 'x'))), DataError);
  CHECK(told(write_bytes(folder / "large.tar", bytes + tar_end()), 4999).back() ==
        "! it has 5000 bytes, and at most 4999 are read");
}

}  // namespace frugal_test::data_shards_tar_stream
