// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <doctest/doctest.h>

#include <frugal/checkpoint/tar.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace frugal_test::store_tar {

using frugal::File;
using frugal::FormatError;
using frugal::detail::TarReader;
using frugal::detail::TarWriter;
using support::TemporaryFolder;

using Files = std::map<std::string, std::string>;

void write(std::filesystem::path const& path, Files const& files) {
  File file = File::create(path);
  TarWriter writer(file, path, 3);
  for (auto const& [name, text] : files) {
    writer.begin(name, text.size(), 1'700'000'000);
    writer.write(support::bytes_of(text));
  }
  writer.finish();
}

Files read(std::filesystem::path const& path) {
  TarReader reader(path);
  Files files;
  while (auto const entry = reader.next()) {
    std::string text(static_cast<std::size_t>(entry->size) + 1, '\0');
    text.resize(reader.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
    CHECK(text.size() == entry->size);
    files[entry->name] = text;
  }
  return files;
}

TEST_CASE("files are restored unchanged, empty ones and long names too") {
  TemporaryFolder folder;
  Files const files = {{"a", ""},
                       {"b.bin", std::string("\0\xff\n", 3) + std::string(100'000, 'x')},
                       {std::string(200, 'n'), "long"}};
  write(folder / "t", files);
  CHECK(read(folder / "t") == files);
}

TEST_CASE("names outside of ASCII are restored in any locale") {
  TemporaryFolder folder;
  // Programs start in the locale "C", which is ASCII.
  Files const files = {{"mod\xc3\xa8le.safetensors", "w"}, {"\xe6\xa8\xa1\xe5\x9e\x8b", "x"}};
  write(folder / "t", files);
  CHECK(read(folder / "t") == files);
}

/// A sink that accepts a fixed number of bytes.
struct Full {
  std::size_t left;
  void write(std::span<std::byte const> bytes) {
    if (bytes.size() > left) throw frugal::detail::io_error("write", "sink", ENOSPC);
    left -= bytes.size();
  }
};

TEST_CASE(
    "exceptions of the sink reach the caller, wherever they happen, and nothing crashes or leaks") {
  // Generated digits, so that zstd cannot shrink them to nothing.
  std::string text;
  for (unsigned i = 0, x = 1; i < 400'000; ++i, x = x * 1664525 + 1013904223) {
    text += static_cast<char>(x >> 24);
  }
  for (std::size_t const room : {0U, 1U, 100'000U, 200'000U, 399'000U}) {
    Full sink{room};
    auto const run = [&] {
      TarWriter writer(sink, "here", 3);
      writer.begin("a", text.size(), 0);
      for (std::size_t at = 0; at < text.size(); at += 10'000) {
        writer.write(support::bytes_of(text.substr(at, 10'000)));
      }
      writer.finish();
    };
    CHECK_THROWS_AS(run(), frugal::IoError);
  }
}

TEST_CASE("a writer abandoned in the middle of a file writes nothing more to the sink") {
  Full sink{0};
  {
    TarWriter writer(sink, "here", 3);
    writer.begin("a", std::size_t{1} << 40, 0);
    writer.write(support::bytes_of("a few of a terabyte"));
  }
  CHECK(sink.left == 0);
}

TEST_CASE("more bytes than a file was begun with are an error") {
  TemporaryFolder folder;
  File file = File::create(folder / "t");
  TarWriter writer(file, folder / "t", 3);
  writer.begin("a", 3, 0);
  CHECK_THROWS_AS(writer.write(support::bytes_of("four")), frugal::StoreError);
}

TEST_CASE("a file that is not an archive is damaged") {
  TemporaryFolder folder;
  support::write_text(folder / "text", "hello, this is no archive\n");
  CHECK_THROWS_AS(read(folder / "text"), FormatError);
  CHECK_THROWS_AS(TarReader(folder / "missing"), frugal::IoError);
}

/// The header of one entry in POSIX (ustar) format, with arbitrary contents.
std::string header(std::string const& name, std::string const& size, char type,
                   std::string const& link = "") {
  std::string block(512, '\0');
  auto const set = [&](std::size_t at, std::string const& text) {
    block.replace(at, text.size(), text);
  };
  set(0, name);
  set(100, "0000644");
  set(108, "0000000");
  set(116, "0000000");
  set(124, size);
  set(136, "00000000000");
  block[156] = type;
  set(157, link);
  set(257, std::string("ustar\0"
                       "00",
                       8));
  set(148, "        ");
  unsigned sum = 0;
  for (char const c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  std::memcpy(block.data() + 148, digits, 7);
  return block;
}

TEST_CASE("links, folders, devices and pipes are not files, and are refused") {
  TemporaryFolder folder;
  std::string const end(1024, '\0');
  for (char const type : {'1', '2', '3', '4', '5', '6'}) {
    CAPTURE(type);
    support::write_text(folder / "t", header("a", "00000000000", type, "/etc/passwd") + end);
    CHECK_THROWS_AS(read(folder / "t"), FormatError);
  }
  support::write_text(folder / "t",
                      header("a", "00000000002", '0') + "hi" + std::string(510, '\0') + end);
  CHECK(read(folder / "t") == Files{{"a", "hi"}});  // otherwise the header above would prove
                                                    // nothing
}

TEST_CASE("a false size is damage and allocates nothing") {
  TemporaryFolder folder;
  for (std::string const size : {"77777777777", "00000000777"}) {
    support::write_text(folder / "t", header("a", size, '0') + "hi");
    auto const all = [&] {
      TarReader reader(folder / "t");
      auto const entry = reader.next();
      REQUIRE(entry);
      std::string piece(100, '\0');
      while (reader.read(std::as_writable_bytes(std::span(piece.data(), piece.size()))) != 0) {
      }
    };
    CHECK_THROWS_AS(all(), FormatError);
  }
}

}  // namespace frugal_test::store_tar
