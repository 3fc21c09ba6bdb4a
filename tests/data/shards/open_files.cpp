// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/open_files.hpp>

#include <doctest/doctest.h>

#include "support/files.hpp"
#include "support/no_more_files.hpp"
#include "support/tar_files.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_shards_open_files {

using frugal::ChangedError;
using frugal::DataError;
using frugal::File;
using frugal::IoError;
using frugal::detail::FilePool;
using frugal::detail::FileStamp;
using frugal::detail::PooledFile;
using frugal::detail::stamp_of;
using namespace support;

std::string read(PooledFile const& file, std::size_t size = 1, std::uint64_t offset = 0) {
  std::string out(size, '\0');
  file.read(offset, out);
  return out;
}

int code_of(std::function<void()> const& call) {
  try {
    call();
  } catch (IoError const& error) {
    return error.code;
  }
  return 0;
}

std::string why_changed(PooledFile const& file) {
  try {
    read(file);
  } catch (ChangedError const& error) {
    CHECK(error.fault().where == file.path().string());
    return error.fault().why;
  }
  return "nothing was thrown";
}

/// Does `change` until the clock of the file system has moved on, and leaves the time of the
/// content as it was.
void change(std::filesystem::path const& path, std::function<void()> const& change) {
  FileStamp const before = stamp_of(File::open(path));
  auto const time = std::filesystem::last_write_time(path);
  do {
    change();
    std::filesystem::last_write_time(path, time);
  } while (stamp_of(File::open(path)).changed == before.changed);
}

TEST_CASE("more files than may be open at a time are read, too") {
  TemporaryFolder folder;
  FilePool pool(2);
  std::size_t const before = entries("/proc/self/fd");
  std::vector<PooledFile> files;
  for (int i = 0; i < 5; ++i) {
    files.emplace_back(write_bytes(folder / std::to_string(i), "content " + std::to_string(i)),
                       pool);
    CHECK(entries("/proc/self/fd") <= before + 2);
  }
  for (std::size_t const i : {0U, 1U, 2U, 3U, 4U, 0U, 2U}) {
    CHECK(read(files[i], 9) == "content " + std::to_string(i));
    CHECK(entries("/proc/self/fd") <= before + 2);
  }
  CHECK_THROWS_AS(read(files[1], 10), DataError);
  CHECK(read(files[1], 1, 8) == "1");
  files.clear();
  CHECK(entries("/proc/self/fd") == before);
}

TEST_CASE("threads read files that others close meanwhile") {
  TemporaryFolder folder;
  FilePool pool(1);
  std::vector<PooledFile> files;
  for (std::size_t i = 0; i < 8; ++i) {
    files.emplace_back(write_bytes(folder / std::to_string(i), std::to_string(i)), pool);
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 200; ++i) {
        std::size_t const which = (i * 3 + t) % 8;
        if (read(files[which]) != std::to_string(which)) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}

TEST_CASE("a file that cannot be opened is the error of the system, with its code") {
  TemporaryFolder folder;
  CHECK(code_of([&] { PooledFile(folder / "gone"); }) == ENOENT);
  CHECK_THROWS_AS(PooledFile(folder.path()), frugal::StoreError);
  auto const path = write_bytes(folder / "there", "x");
  NoMoreFiles const none;
  CHECK(code_of([&] { PooledFile{path}; }) == EMFILE);
}

TEST_CASE("where the process may open no more files, the pool gives up its own") {
  TemporaryFolder folder;
  FilePool pool(10);
  PooledFile const first(write_bytes(folder / "1", "1"), pool);
  auto const second = write_bytes(folder / "2", "2");
  int const next = ::open("/dev/null", O_RDONLY);
  REQUIRE(next >= 0);
  ::close(next);
  NoMoreFiles const none(next);
  CHECK(read(PooledFile(second, pool)) == "2");
  CHECK(read(first) == "1");
}

TEST_CASE("a file that changes under its reader is an error before its bytes are used") {
  TemporaryFolder folder;
  FilePool pool(1);
  auto const path = write_bytes(folder / "shard", "one");
  auto const other = write_bytes(folder / "other", "two");
  SUBCASE("written to in place, with size and time as they were") {
    PooledFile const file(path, pool);
    change(path, [&] { write_bytes(path, "two"); });
    CHECK(why_changed(file).starts_with("its time of change (ctime) is another"));
  }
  SUBCASE("shorter") {
    PooledFile const file(path, pool);
    std::filesystem::resize_file(path, 1);
    CHECK(why_changed(file) == "it had 3 bytes, and has 1");
  }
  SUBCASE("replaced while it is closed") {
    PooledFile const file(path, pool);
    PooledFile const closes(other, pool);
    std::filesystem::rename(write_bytes(folder / "new", "two"), path);
    CHECK(why_changed(file) == "another file has its name");
  }
  SUBCASE("removed while it is closed") {
    PooledFile const file(path, pool);
    PooledFile const closes(other, pool);
    std::filesystem::remove(path);
    CHECK(why_changed(file) == "it is no longer there");
  }
  SUBCASE("removed while it is open") {
    PooledFile const file(path, pool);
    FileStamp const before = file.stamp();
    File const held = File::open(path);
    do {  // the file system's clock has to move on
      std::filesystem::create_hard_link(path, folder / "link");
      std::filesystem::remove(folder / "link");
    } while (stamp_of(held).changed == before.changed);
    std::filesystem::remove(path);
    CHECK(why_changed(file).starts_with("its time of change (ctime) is another"));
  }
}

TEST_CASE("a file that cannot be opened again now has not changed") {
  TemporaryFolder folder;
  FilePool pool(1);
  PooledFile const file(write_bytes(folder / "1", "1"), pool);
  {
    PooledFile const closes(write_bytes(folder / "2", "2"), pool);
    NoMoreFiles const none;
    CHECK(code_of([&] { read(file); }) == EMFILE);
  }
  CHECK(read(file) == "1");
}

TEST_CASE("a forked process reads on") {
  TemporaryFolder folder;
  PooledFile const file(write_bytes(folder / "1", "1"));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) read(file);
  });
  for (int i = 0; i < 20; ++i) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(read(file) == "1" ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  stop = true;
  reader.join();
}

}  // namespace frugal_test::data_shards_open_files
