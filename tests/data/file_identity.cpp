// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/file_identity.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_file_identity {

namespace fs = std::filesystem;
using frugal::detail::FilesIdentity;
using frugal::detail::ReadOf;
using support::TemporaryFolder;
using Values = std::map<std::string, std::string>;

fs::path write(fs::path const& path, std::string const& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Values identified(std::vector<fs::path> const& files, ReadOf read = ReadOf::parts) {
  FilesIdentity all(files.size(), read);
  for (fs::path const& file : files) all.add(file);
  frugal::DataIdentity to;
  all.identify(to);
  return to.values();
}

TEST_CASE("files that were moved, or fetched again, are the same") {
  TemporaryFolder const folder;
  fs::path const here = write(folder / "a" / "x.tar", "12345");
  fs::path const there = write(folder / "b" / "x.tar", "12345");
  fs::last_write_time(there, fs::last_write_time(there) - std::chrono::hours(7));
  CHECK(identified({here}) == identified({there}));
  CHECK(identified({here}).at("files").starts_with("1, 5 bytes"));
}

TEST_CASE("another name, size, content or order of files is another set") {
  TemporaryFolder const folder;
  fs::path const a = write(folder / "a", "12345");
  fs::path const b = write(folder / "b", "67890");
  CHECK(identified({a}).at("files") != identified({b}).at("files"));
  CHECK(identified({a}).at("content") != identified({b}).at("content"));
  CHECK(identified({a, b}) != identified({b, a}));
  Values const before = identified({a, b});
  write(a, "12346");
  CHECK(identified({a, b}).at("files") == before.at("files"));
  CHECK(identified({a, b}).at("content") != before.at("content"));
  write(a, "1234567");
  CHECK(identified({a, b}).at("files") != before.at("files"));
}

TEST_CASE("two files whose bytes were exchanged are another set") {
  TemporaryFolder const folder;
  fs::path const a = write(folder / "a", std::string(100'000, 'x'));
  fs::path const b = write(folder / "b", std::string(100'000, 'y'));
  Values const before = identified({a, b});
  write(a, std::string(100'000, 'y'));
  write(b, std::string(100'000, 'x'));
  CHECK(identified({a, b}) != before);
}

TEST_CASE("the ends of a large file are read, and all of it if that is asked for") {
  TemporaryFolder const folder;
  std::string text(1'000'000, 'x');
  fs::path const file = write(folder / "a", text);
  Values const parts = identified({file});
  Values const whole = identified({file}, ReadOf::whole);
  auto const changed = [&](std::size_t at) {
    std::string other = text;
    other[at] = 'y';
    write(file, other);
  };
  changed(0);
  CHECK(identified({file}) != parts);
  changed(999'999);
  CHECK(identified({file}) != parts);
  changed(100'000);  // between the blocks
  CHECK(identified({file}) == parts);
  CHECK(identified({file}, ReadOf::whole) != whole);
}

TEST_CASE("of many files some are opened, and the names of all count") {
  TemporaryFolder const folder;
  std::size_t const count = FilesIdentity::most_read + 2;  // every second one is opened
  std::vector<fs::path> files;
  for (std::size_t i = 0; i < count; ++i) {
    files.push_back(write(folder / std::to_string(i), "x"));
  }
  Values const before = identified(files);
  write(files[1], "y");
  CHECK(identified(files) == before);
  write(files[2], "y");
  CHECK(identified(files).at("content") != before.at("content"));
  std::swap(files[1], files[3]);
  CHECK(identified(files).at("files") != before.at("files"));
}

TEST_CASE("a file that is gone counts as empty: training names it") {
  TemporaryFolder const folder;
  CHECK(identified({folder / "gone"}).at("files").starts_with("1, 0 bytes"));
}

}  // namespace frugal_test::data_file_identity
