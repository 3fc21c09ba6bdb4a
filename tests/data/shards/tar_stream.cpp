// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/tar_stream.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::data_shards_tar_stream {

using frugal::DataError;
using frugal::TarStream;
using namespace support;

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
