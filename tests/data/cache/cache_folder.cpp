// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_folder.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/data/cache/cache_store.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <thread>

namespace frugal_test::data_cache_cache_folder {

using frugal::remove_unused_keys;
using frugal::detail::CacheFolderLock;
using frugal::detail::CacheStore;
using frugal_test::support::entries;
using frugal_test::support::TemporaryFolder;

TEST_CASE("those who share a folder do not exclude each other, but one who wants it alone") {
  TemporaryFolder const folder;
  auto const path = folder / "a" / "b";
  {
    auto const one = CacheFolderLock::shared(path);
    auto const other = CacheFolderLock::shared(path);
    CHECK(std::filesystem::is_directory(path));
    CHECK_FALSE(CacheFolderLock::alone(path));
  }
  CHECK(CacheFolderLock::alone(path));
}

TEST_CASE("what is no folder cannot be had alone, nor shared") {
  TemporaryFolder const folder;
  CHECK_FALSE(CacheFolderLock::alone(folder / "missing"));
  std::ofstream(folder / "file") << "x";
  CHECK_FALSE(CacheFolderLock::alone(folder / "file"));
  CHECK_THROWS_AS(CacheFolderLock::shared(folder / "file"), frugal::StoreError);
}

TEST_CASE("a lock goes with its object") {
  TemporaryFolder const folder;
  auto lock = std::optional(CacheFolderLock::shared(folder / "a"));
  {
    CacheFolderLock const moved(std::move(*lock));
    lock.reset();
    CHECK_FALSE(CacheFolderLock::alone(folder / "a"));
  }
  CHECK(CacheFolderLock::alone(folder / "a"));
}

/// A cache of one sample.
struct Store : CacheStore {
  Store(std::filesystem::path const& folder, std::string const& key)
      : CacheStore(folder, key, 1, std::numeric_limits<std::uint64_t>::max()) {
    put(0, std::as_bytes(std::span(key)), 0);
  }
  bool has_it() const { return find(0).has_value(); }
};

TEST_CASE("the keys that nobody uses are removed, and no others") {
  TemporaryFolder const folder;
  std::filesystem::path old;
  {
    Store const one(folder.path(), "old 1"), other(folder.path(), "old 2");
    old = one.folder();
  }
  Store used(folder.path(), "used");
  std::uint64_t bytes = 0;
  for (auto const& file : frugal::entries_of(old)) bytes += std::filesystem::file_size(file);
  auto const done = remove_unused_keys(folder.path());
  CHECK(done.removed == 2);
  CHECK(done.bytes == 2 * bytes);
  CHECK(done.in_use == 1);
  CHECK(entries(folder.path()) == 1);
  CHECK(used.has_it());
  CHECK(Store(folder.path(), "used").totals().cached == 1);
  CHECK(remove_unused_keys(folder.path()).removed == 0);
}

TEST_CASE("what is no key stays") {
  TemporaryFolder const folder;
  std::filesystem::create_directories(folder / "0123456789abcdef");
  std::ofstream(folder / "0123456789abcdef" / "key.txt") << "not its hash";
  std::filesystem::create_directories(folder / "fedcba9876543210");
  std::ofstream(folder / "notes.txt") << "mine";
  std::ofstream(folder / "notes.removed") << "mine too";
  auto const done = remove_unused_keys(folder.path());
  CHECK(done.removed == 0);
  CHECK(done.in_use == 0);
  CHECK(entries(folder.path()) == 4);
  CHECK(remove_unused_keys(folder / "missing").removed == 0);
}

TEST_CASE("what a call that was killed left behind is removed by the next one") {
  TemporaryFolder const folder;
  auto const aside = Store(folder.path(), "old").folder().string() + "-0123456789abcdef.removed";
  std::filesystem::rename(Store(folder.path(), "old").folder(), aside);
  remove_unused_keys(folder.path());
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a key that another process uses stays until that one has ended") {
  TemporaryFolder const folder;
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  pid_t const pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    Store const store(folder.path(), "key");
    if (::write(pipe[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(pipe[0], &byte, 1) == 1);
  CHECK(remove_unused_keys(folder.path()).in_use == 1);
  ::kill(pid, SIGKILL);
  REQUIRE(::waitpid(pid, nullptr, 0) == pid);
  CHECK(remove_unused_keys(folder.path()).removed == 1);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("one who begins to use a key while it is removed has a folder all the same") {
  TemporaryFolder const folder;
  std::atomic<bool> ends{false};
  std::thread remover([&] {
    while (!ends) remove_unused_keys(folder.path());
  });
  int good = 0;
  for (int i = 0; i < 200; ++i) {
    Store const store(folder.path(), "key");
    good += store.has_it() && store.keeps() && std::filesystem::exists(store.folder() / "key.txt");
  }
  ends = true;
  remover.join();
  CHECK(good == 200);
}

}  // namespace frugal_test::data_cache_cache_folder
