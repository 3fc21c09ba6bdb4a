// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/cache/cache_store.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_cache_cache_store {

using frugal::detail::CacheEntry;
using frugal::detail::CacheSegment;
using frugal::detail::CacheSegmentWriter;
using frugal::detail::CacheStore;
using frugal_test::support::entries;
using frugal_test::support::TemporaryFolder;

CacheEntry add(CacheSegmentWriter& writer, std::uint64_t sample, std::string const& text) {
  CacheEntry entry{.sample = sample, .source_bytes = 7};
  writer.add(entry, std::as_bytes(std::span(text)));
  return entry;
}
std::string text_of(CacheSegment const& segment, CacheEntry const& entry) {
  auto const bytes = segment.bytes(entry);
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

TEST_CASE("a reader sees what is written meanwhile, each entry once") {
  TemporaryFolder const folder;
  CacheSegmentWriter writer(folder.path(), {.key = 5, .capacity = 4096});
  auto const reader = CacheSegment::open(writer.index_path(), 5);
  REQUIRE(reader);
  CHECK(reader->news(10).empty());
  auto const first = add(writer, 3, "three");
  CHECK(first.offset == 0);
  auto news = reader->news(10);
  REQUIRE(news.size() == 1);
  CHECK(news[0] == first);
  CHECK(text_of(*reader, news[0]) == "three");
  add(writer, 4, "four");
  add(writer, 99, "of another set");
  news = reader->news(10);
  REQUIRE(news.size() == 1);
  CHECK(text_of(*reader, news[0]) == "four");
  CHECK(reader->disk_bytes() == 64 + 3 * (48 + 64));
}

TEST_CASE("when its writer has ended a segment is read once more, and stays readable") {
  TemporaryFolder const folder;
  std::optional<CacheSegmentWriter> writer;
  writer.emplace(folder.path(), frugal::detail::CacheSegmentHeader{.key = 5, .capacity = 100});
  auto const path = writer->index_path();
  auto const reader = CacheSegment::open(path, 5);
  auto const entry = add(*writer, 1, "one");
  writer.reset();
  CHECK(reader->news(10).size() == 1);
  CHECK(reader->news(10).empty());
  CHECK(text_of(*reader, entry) == "one");
  CHECK(CacheSegment::open(path, 6) == nullptr);  // of another key
}

TEST_CASE("a segment has room for its capacity, the last sample without padding") {
  TemporaryFolder const folder;
  CacheSegmentWriter writer(folder.path(), {.key = 5, .capacity = 100});
  CHECK(writer.has_room(100));
  CHECK_FALSE(writer.has_room(101));
  add(writer, 0, "x");
  CHECK(writer.has_room(36));
  CHECK_FALSE(writer.has_room(37));
  auto const last = add(writer, 1, std::string(36, 'y'));
  auto const reader = CacheSegment::open(writer.index_path(), 5);
  CHECK(reader->news(2).size() == 2);
  CHECK(text_of(*reader, last) == std::string(36, 'y'));
}

using frugal::detail::cache_entries;
using frugal::detail::CacheSegmentHeader;

std::vector<std::byte> index_of(std::vector<CacheEntry> const& entries) {
  std::vector<std::byte> bytes;
  for (CacheEntry const& entry : entries) {
    frugal::detail::append_bytes(bytes, entry.file_bytes());
  }
  return bytes;
}

std::vector<CacheEntry> three() {
  return {{.sample = 4, .offset = 0, .bytes = 100, .source_bytes = 7, .hash = 11},
          {.sample = 0, .offset = 128, .bytes = 0, .hash = 12},
          {.sample = 9, .offset = 128, .bytes = 72, .source_bytes = 9, .hash = 13}};
}

TEST_CASE("entries come back as they were written") {
  CHECK(cache_entries(index_of(three()), 10, 200) == three());
  CHECK(cache_entries({}, 10, 200).empty());
}

TEST_CASE("part of an entry at the end is left alone") {
  auto const bytes = index_of(three());
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    CHECK(cache_entries(std::span(bytes).first(size), 10, 200).size() == size / 48);
  }
}

TEST_CASE("an entry with any byte changed is passed over, and those behind it are not") {
  auto const whole = index_of(three());
  for (std::size_t at = 48; at < 96; ++at) {
    auto bytes = whole;
    bytes[at] ^= std::byte{0x40};
    auto const entries = cache_entries(bytes, 10, 200);
    REQUIRE(entries.size() == 2);
    CHECK(entries[0] == three()[0]);
    CHECK(entries[1] == three()[2]);
  }
}

TEST_CASE("an entry outside of the data or of the set is passed over, although its hash is right") {
  std::uint64_t const most = ~std::uint64_t{0};
  for (CacheEntry const& entry :
       {CacheEntry{.sample = 10, .bytes = 1}, CacheEntry{.sample = most, .bytes = 1},
        CacheEntry{.offset = 200, .bytes = 1}, CacheEntry{.offset = most, .bytes = 1},
        CacheEntry{.offset = most, .bytes = most}, CacheEntry{.offset = 1, .bytes = 200},
        CacheEntry{.bytes = most}}) {
    CHECK(cache_entries(entry.file_bytes(), 10, 200).empty());
  }
  CHECK(cache_entries(CacheEntry{.sample = 9, .offset = 200}.file_bytes(), 10, 200).size() == 1);
}

TEST_CASE("a header is read back, and refused if a byte differs") {
  CacheSegmentHeader const header{.key = 77, .capacity = 1 << 20};
  auto const bytes = header.file_bytes();
  REQUIRE(bytes.size() == 64);
  auto const found = CacheSegmentHeader::parse(bytes);
  REQUIRE(found);
  CHECK(found->key == 77);
  CHECK(found->capacity == 1 << 20);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto changed = bytes;
    changed[at] ^= std::byte{1};
    CHECK_FALSE(CacheSegmentHeader::parse(changed));
    CHECK_FALSE(CacheSegmentHeader::parse(std::span(bytes).first(at)));
  }
}

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

std::string text_of(std::uint64_t i) {
  return "sample " + std::to_string(i) + std::string(i * 7 % 50, '.');
}
bool put(CacheStore& store, std::uint64_t i) {
  std::string const text = text_of(i);
  return store.put(i, std::as_bytes(std::span(text)), 10 + i);
}
std::string found(CacheStore const& store, std::uint64_t i) {
  auto const bytes = store.find(i);
  if (!bytes) return "nothing";
  return {reinterpret_cast<char const*>(bytes->data()), bytes->size()};
}
/// Those that are there and right.
std::uint64_t right(CacheStore const& store, std::uint64_t samples) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    std::string const text = found(store, i);
    CHECK((text == text_of(i) || text == "nothing"));
    count += text == text_of(i);
  }
  return count;
}
std::vector<std::filesystem::path> files(std::filesystem::path const& folder,
                                         std::string const& extension) {
  std::vector<std::filesystem::path> paths;
  for (auto const& path : frugal::entries_of(folder)) {
    if (path.extension() == extension) paths.push_back(path);
  }
  return paths;
}

TEST_CASE("what is put is found, at once and by the next process") {
  TemporaryFolder const folder;
  {
    CacheStore store(folder.path(), "key", 100, no_limit);
    CHECK(found(store, 3) == "nothing");
    for (std::uint64_t i = 0; i < 100; i += 2) CHECK(put(store, i));
    CHECK(right(store, 100) == 50);
    CHECK(store.put(5, {}, 0));
    CHECK(found(store, 5).empty());
  }
  CacheStore const again(folder.path(), "key", 100, no_limit);
  CHECK(again.totals().cached == 51);
  CHECK(found(again, 98) == text_of(98));
  CHECK(found(again, 5).empty());
  CHECK(found(again, 1) == "nothing");
}

TEST_CASE("totals count each sample once, and the inputs if all are known") {
  TemporaryFolder const folder;
  CacheStore store(folder.path(), "key", 10, no_limit);
  CHECK(put(store, 1));
  CHECK(put(store, 2));
  CHECK(put(store, 2));
  CHECK(store.totals().cached == 2);
  CHECK(store.totals().bytes == text_of(1).size() + text_of(2).size());
  CHECK(store.totals().source_bytes == 23);
  CHECK(store.put(3, {}, frugal::detail::unknown_bytes));
  CHECK_FALSE(store.totals().source_bytes);
}

TEST_CASE("keys have nothing in common") {
  TemporaryFolder const folder;
  CacheStore one(folder.path(), "key 1", 10, no_limit);
  CacheStore const other(folder.path(), "key 2", 10, no_limit);
  CHECK(put(one, 1));
  CHECK(one.folder() != other.folder());
  CHECK(found(CacheStore(folder.path(), "key 2", 10, no_limit), 1) == "nothing");
}

TEST_CASE("a key of the same hash is refused, not served") {
  TemporaryFolder const folder;
  auto const path = CacheStore(folder.path(), "key", 10, no_limit).folder() / "key.txt";
  CHECK(support::text_of(path) == "key");
  std::ofstream(path) << "another key";
  CHECK_THROWS_AS(CacheStore(folder.path(), "key", 10, no_limit), frugal::DataError);
}

TEST_CASE("a segment of another key is passed over") {
  TemporaryFolder const folder;
  CacheStore one(folder.path(), "key 1", 10, no_limit);
  CHECK(put(one, 1));
  auto const other = CacheStore(folder.path(), "key 2", 10, no_limit).folder();
  for (auto const& path : frugal::entries_of(one.folder())) {
    if (path.filename() != "key.txt") std::filesystem::copy(path, other / path.filename());
  }
  CHECK(found(CacheStore(folder.path(), "key 2", 10, no_limit), 1) == "nothing");
}

TEST_CASE("segments end at their capacity, and larger samples have one of their own") {
  TemporaryFolder const folder;
  {
    CacheStore store(folder.path(), "key", 40, no_limit, 300);
    for (std::uint64_t i = 0; i < 40; ++i) CHECK(put(store, i));
    CHECK(store.put(7, {}, 0));
    CHECK(files(store.folder(), ".data").size() > 8);
    CHECK(right(store, 40) == 40);
  }
  CacheStore store(folder.path(), "key", 41, no_limit, 300);
  std::string const large(5000, 'x');
  CHECK(store.put(40, std::as_bytes(std::span(large)), 0));
  CHECK(right(store, 40) == 40);
  CHECK(found(store, 40) == large);
}

TEST_CASE("segments that nobody writes any more hold no descriptors") {
  TemporaryFolder const folder;
  CacheStore store(folder.path(), "key", 40, no_limit, 300);
  CHECK(put(store, 0));
  std::size_t const open_files = entries("/proc/self/fd");
  for (std::uint64_t i = 1; i < 40; ++i) CHECK(put(store, i));
  CHECK(files(store.folder(), ".data").size() > 8);
  CHECK(entries("/proc/self/fd") == open_files);
  CHECK(right(store, 40) == 40);
  // In another process all of them but the last, which is still being written.
  CacheStore const next(folder.path(), "key", 40, no_limit, 300);
  CHECK(entries("/proc/self/fd") <= open_files + 4);
  CHECK(right(next, 40) == 40);
}

TEST_CASE("the limit holds on disk, and is said") {
  for (std::uint64_t const limit : {std::uint64_t{0}, std::uint64_t{200}, std::uint64_t{2000}}) {
    CAPTURE(limit);
    TemporaryFolder const folder;
    CacheStore store(folder.path(), "key", 100, limit);
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < 100; ++i) kept += put(store, i);
    CHECK(kept < 100);
    CHECK((kept > 0) == (limit > 0));
    CHECK_FALSE(store.keeps());
    CHECK(store.why() == "the limit of " + std::to_string(limit) + " bytes is reached");
    CHECK(right(store, 100) == kept);
    std::uint64_t bytes = 0;
    for (auto const& path : frugal::entries_of(store.folder())) {
      if (path.filename() != "key.txt") bytes += std::filesystem::file_size(path);
    }
    CHECK(bytes <= limit);
    // What is there counts in the next process, too.
    CacheStore next(folder.path(), "key", 100, limit);
    CHECK(next.totals().disk_bytes == bytes);
    CHECK_FALSE(put(next, 99));
  }
}

TEST_CASE("a folder that cannot be written to keeps nothing, and says why") {
  TemporaryFolder const folder;
  CacheStore store(folder.path(), "key", 10, no_limit);
  std::filesystem::remove_all(store.folder());
  CHECK_FALSE(put(store, 1));
  CHECK_FALSE(store.keeps());
  CHECK(store.why().find("the call open failed") != std::string::npos);
  CHECK(found(store, 1) == "nothing");
}

TEST_CASE("damaged bytes are found when they are read, and can be put again") {
  TemporaryFolder const folder;
  std::filesystem::path data;
  {
    CacheStore store(folder.path(), "key", 10, no_limit);
    for (std::uint64_t i = 0; i < 10; ++i) put(store, i);
    data = files(store.folder(), ".data").at(0);
  }
  std::string bytes = support::text_of(data);
  bytes[bytes.find("sample 4")] ^= 1;
  std::ofstream(data, std::ios::binary | std::ios::trunc) << bytes;
  for (int run = 0; run < 2; ++run) {
    CacheStore store(folder.path(), "key", 10, no_limit);
    CHECK(found(store, 4) == (run == 0 ? "nothing" : text_of(4)));
    CHECK(found(store, 4) == (run == 0 ? "nothing" : text_of(4)));
    if (run == 0) CHECK(store.totals().damaged == 1);
    CHECK(put(store, 4));
    CHECK(right(store, 10) == 10);
    CHECK(files(store.folder(), ".data").size() == 2);  // once is enough
  }
}

TEST_CASE("an index that is cut anywhere loses only what is cut") {
  TemporaryFolder const folder;
  std::filesystem::path index;
  {
    CacheStore store(folder.path(), "key", 10, no_limit);
    for (std::uint64_t i = 0; i < 10; ++i) put(store, i);
    index = files(store.folder(), ".index").at(0);
  }
  for (std::uint64_t size = 64 + 10 * 48; size-- > 0;) {
    std::filesystem::resize_file(index, size);
    CacheStore const store(folder.path(), "key", 10, no_limit);
    CHECK(right(store, 10) == (size < 64 ? 0 : (size - 64) / 48));
  }
}

TEST_CASE("data that is cut loses the samples behind the cut") {
  TemporaryFolder const folder;
  std::filesystem::path data;
  {
    CacheStore store(folder.path(), "key", 10, no_limit);
    for (std::uint64_t i = 0; i < 10; ++i) put(store, i);
    data = files(store.folder(), ".data").at(0);
  }
  for (std::uint64_t size = std::filesystem::file_size(data); size > 0; size -= 32) {
    std::filesystem::resize_file(data, size);
    CacheStore const store(folder.path(), "key", 10, no_limit);
    CHECK(right(store, 10) <= size / 64 + 1);
    CHECK(right(store, 10) >= size / 128);
  }
  std::filesystem::remove(data);
  CHECK(right(CacheStore(folder.path(), "key", 10, no_limit), 10) == 0);
}

TEST_CASE("threads fill and read one store") {
  TemporaryFolder const folder;
  constexpr std::uint64_t samples = 400;
  CacheStore store(folder.path(), "key", samples, no_limit, 4096);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < 2 * samples; ++n) {
        std::uint64_t const i = (n * 7 + t * 100) % samples;
        std::string const text = found(store, i);
        if (text == "nothing") put(store, i);
        wrong += text != "nothing" && text != text_of(i);
        if (n % 50 == 0) store.refresh();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(right(store, samples) == samples);
  CHECK(store.totals().cached == samples);
}

/// Runs `work` in a child process that ends with its result.
template <class Work>
pid_t child(Work&& work) {
  pid_t const pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) ::_exit(work());
  return pid;
}

TEST_CASE("a process that is killed loses at most the sample that it was writing") {
  TemporaryFolder const folder;
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  pid_t const pid = child([&] {
    CacheStore store(folder.path(), "key", 100000, no_limit);
    for (std::uint64_t i = 0;; i = (i + 1) % 100000) {
      put(store, i);
      if (::write(pipe[1], "x", 1) != 1) return 1;
    }
  });
  std::uint64_t done = 0;
  for (char byte = 0; done < 300; ++done) REQUIRE(::read(pipe[0], &byte, 1) == 1);
  ::kill(pid, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WIFSIGNALED(status));
  ::close(pipe[1]);
  for (char byte = 0; ::read(pipe[0], &byte, 1) == 1;) ++done;  // what the pipe still had
  ::close(pipe[0]);
  CacheStore store(folder.path(), "key", 100000, no_limit);
  std::uint64_t const there = right(store, 100000);
  CHECK(there >= done);
  CHECK(there <= done + 1);
  CHECK(put(store, 99999));  // the next process goes on
  CHECK(right(store, 100000) == there + 1);
}

TEST_CASE("two processes fill one cache at the same time, and read each other's samples") {
  TemporaryFolder const folder;
  constexpr std::uint64_t samples = 300;
  // Each computes what it does not find, the second from the other end; each result is one byte.
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  auto const fill = [&](bool turned) {
    CacheStore store(folder.path(), "key", samples, no_limit);
    for (std::uint64_t n = 0; n < samples; ++n) {
      std::uint64_t const i = turned ? samples - 1 - n : n;
      store.refresh();
      if (store.find(i)) continue;
      if (!put(store, i) || ::write(pipe[1], "x", 1) != 1) return 1;
    }
    return right(store, samples) == samples ? 0 : 2;
  };
  std::array<pid_t, 2> const pids{child([&] { return fill(false); }),
                                  child([&] { return fill(true); })};
  ::close(pipe[1]);
  for (pid_t const pid : pids) {
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  std::uint64_t computed = 0;
  for (char byte = 0; ::read(pipe[0], &byte, 1) == 1;) ++computed;
  ::close(pipe[0]);
  CHECK(computed >= samples);
  CHECK(computed <= 2 * samples);
  CacheStore const store(folder.path(), "key", samples, no_limit);
  CHECK(right(store, samples) == samples);
  CHECK(store.totals().cached == samples);
}

TEST_CASE("a process that was forked writes a segment of its own") {
  TemporaryFolder const folder;
  CacheStore store(folder.path(), "key", 10, no_limit);
  CHECK(put(store, 1));
  pid_t const pid = child([&] {
    bool const good =
        put(store, 2) && found(store, 1) == text_of(1) && found(store, 2) == text_of(2);
    return good ? 0 : 1;
  });
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(put(store, 3));
  CHECK(found(store, 3) == text_of(3));
  CHECK(right(CacheStore(folder.path(), "key", 10, no_limit), 10) == 3);
}

TEST_CASE("a process sees what another wrote after it began, and while that one lives") {
  TemporaryFolder const folder;
  CacheStore early(folder.path(), "key", 10, no_limit);
  CHECK(put(early, 0));
  CacheStore late(folder.path(), "key", 10, no_limit);
  CHECK(put(late, 1));
  CHECK(put(early, 2));
  late.refresh();
  CHECK(found(late, 0) == text_of(0));
  CHECK(found(late, 2) == text_of(2));
  CHECK(put(early, 3));
  CacheStore third(folder.path(), "key", 10, no_limit);
  CHECK(put(third, 4));
  late.refresh();
  CHECK(found(late, 3) == text_of(3));
  CHECK(found(late, 4) == text_of(4));
  CHECK(put(late, 5));
  CHECK(right(late, 10) == 6);
}

TEST_CASE("a segment that was made in the clock tick of the last look is found") {
  TemporaryFolder const folder;
  CacheStore early(folder.path(), "key", 10, no_limit);
  auto const seen = std::filesystem::last_write_time(early.folder());
  CacheStore late(folder.path(), "key", 10, no_limit);
  CHECK(put(late, 1));
  std::filesystem::last_write_time(early.folder(), seen);  // as a coarse clock leaves it
  early.refresh();
  CHECK(found(early, 1) == text_of(1));
}

TEST_CASE("a segment whose header is being written is read later") {
  TemporaryFolder const folder;
  CacheStore writer(folder.path(), "key", 10, no_limit);
  CHECK(put(writer, 1));
  auto const index = files(writer.folder(), ".index").at(0);
  auto const whole = support::text_of(index);
  std::filesystem::remove(index);
  std::ofstream(index, std::ios::binary) << whole.substr(0, 30);
  CacheStore reader(folder.path(), "key", 10, no_limit);
  std::ofstream(index, std::ios::binary) << whole;
  reader.refresh();
  CHECK(found(reader, 1) == text_of(1));
}

TEST_CASE("the limit counts what another process wrote since the last look") {
  TemporaryFolder const folder;
  constexpr std::uint64_t limit = 2000;
  CacheStore one(folder.path(), "key", 100, limit);
  CacheStore other(folder.path(), "key", 100, limit);
  CHECK(put(other, 99));  // before the other is there
  std::uint64_t kept = 1;
  while (put(one, kept)) ++kept;
  CHECK(kept > 5);
  CHECK_FALSE(put(other, 98));
  CHECK(other.totals().disk_bytes <= limit);
}

TEST_CASE("a process without free descriptors computes, and does not end") {
  TemporaryFolder const folder;
  CacheStore store(folder.path(), "key", 10, no_limit);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit const none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK_NOTHROW(store.refresh());
  CHECK_FALSE(put(store, 1));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(store.why().find("Too many open files") != std::string::npos);
}

}  // namespace frugal_test::data_cache_cache_store
