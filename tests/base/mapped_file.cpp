// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/mapped_file.hpp>

#include <support/files.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace frugal_test::store_mapped_file {

using frugal::MappedFile;
using support::TemporaryFolder;

std::string content(MappedFile const& file) {
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

std::filesystem::path written(std::filesystem::path const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// Three pages and a part, all different.
std::string pages() {
  std::string text;
  while (text.size() < 3 * 4096 + 17) text += std::to_string(text.size()) + '\n';
  return text;
}

frugal::Fault fault_of(std::filesystem::path const& path) {
  try {
    MappedFile const file(path);
  } catch (frugal::StoreError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

TEST_CASE("a mapped file has the bytes of the file, to the last") {
  TemporaryFolder const folder;
  CHECK(content(MappedFile(written(folder / "file", pages()))) == pages());
}

TEST_CASE("an empty file is mapped to no bytes") {
  TemporaryFolder const folder;
  CHECK(MappedFile(written(folder / "empty", "")).bytes().empty());
  CHECK(MappedFile().bytes().empty());
}

TEST_CASE("a mapping moves with its owner, and its bytes keep their address") {
  TemporaryFolder const folder;
  MappedFile first(written(folder / "first", pages()));
  auto const* const place = first.bytes().data();
  MappedFile second(std::move(first));
  CHECK(second.bytes().data() == place);
  MappedFile third(written(folder / "third", "another"));
  third = std::move(second);
  CHECK(third.bytes().data() == place);
  CHECK(content(third) == pages());
}

TEST_CASE("a mapped file is unchanged when another takes its name, or it is removed") {
  TemporaryFolder const folder;
  MappedFile const file(written(folder / "file", pages()));
  std::filesystem::rename(written(folder / "new", "new"), folder / "file");
  CHECK(content(file) == pages());
  std::filesystem::remove(folder / "file");
  CHECK(content(file) == pages());
}

TEST_CASE("no descriptor stays open after a mapping, or after a refused file") {
  auto const open = [] {
    auto const folder = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  TemporaryFolder const folder;
  auto const before = open();
  MappedFile const file(written(folder / "file", pages()));
  (void)fault_of(folder.path());
  CHECK(open() == before);
}

TEST_CASE("a missing file is refused by name and with the system's reason") {
  TemporaryFolder const folder;
  auto const fault = fault_of(folder / "absent");
  CHECK(fault.what == "the call open failed");
  CHECK(fault.where == (folder / "absent").string());
  CHECK(fault.why == "No such file or directory");
}

TEST_CASE("a folder is refused as a folder") {
  TemporaryFolder const folder;
  CHECK(fault_of(folder.path()).why == "it is a folder");
}

TEST_CASE("a pipe is refused, without waiting for its writer") {
  TemporaryFolder const folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(fault_of(folder / "pipe").why == "it is not a regular file");
  CHECK(fault_of("/dev/zero").why == "it is not a regular file");
}

}  // namespace frugal_test::store_mapped_file
