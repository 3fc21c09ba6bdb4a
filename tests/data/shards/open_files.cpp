// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/open_files.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_shards_open_files {

using frugal::DataError;
using frugal::detail::OpenFiles;
using namespace support;

TEST_CASE("more shards than may be open at a time are read, too") {
  TemporaryFolder folder;
  std::vector<std::filesystem::path> paths;
  for (int i = 0; i < 5; ++i) {
    paths.push_back(write_bytes(folder / std::to_string(i), "content " + std::to_string(i)));
  }
  OpenFiles const files(paths, 2);
  std::size_t const before = entries("/proc/self/fd");
  for (std::size_t const i : {0U, 1U, 2U, 3U, 4U, 0U, 2U}) {
    std::string out(9, '\0');
    files.read(i, 0, out);
    CHECK(out == "content " + std::to_string(i));
    CHECK(entries("/proc/self/fd") <= before + 2);
  }
  std::string out(10, '\0');
  CHECK_THROWS_AS(files.read(1, 0, out), DataError);
}

TEST_CASE("threads read files that others close meanwhile") {
  TemporaryFolder folder;
  std::vector<std::filesystem::path> paths;
  for (std::size_t i = 0; i < 8; ++i) {
    paths.push_back(write_bytes(folder / std::to_string(i), std::to_string(i)));
  }
  OpenFiles const files(paths, 1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 200; ++i) {
        std::size_t const which = (i * 3 + t) % 8;
        char out = 0;
        files.read(which, 0, {&out, 1});
        if (out != static_cast<char>('0' + which)) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}

TEST_CASE("a file that is gone is an error that names it") {
  TemporaryFolder folder;
  OpenFiles const files({folder / "gone"});
  char out = 0;
  CHECK_THROWS_WITH_AS(files.read(0, 0, {&out, 1}),
                       ("frugal: a shard cannot be read (" + (folder / "gone").string() +
                        ", byte 0): No such file or directory. Do not change or move shards while "
                        "they are read.")
                           .c_str(),
                       DataError);
}

}  // namespace frugal_test::data_shards_open_files
