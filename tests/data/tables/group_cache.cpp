// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/tables/group_cache.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Cache = frugal::detail::GroupCache<std::string>;

struct Maker {
  Cache& cache;
  std::atomic<int> made{0};

  std::string get(std::uint64_t key, std::uint64_t bytes = 10) {
    return *cache.get(key, [&] {
      ++made;
      return Cache::Made{std::make_shared<std::string const>(std::to_string(key)), bytes};
    });
  }
};

}  // namespace

TEST_CASE("a group is made once, and again after it had to go") {
  Cache cache(25);
  Maker maker{cache};
  CHECK(maker.get(1) == "1");
  CHECK(maker.get(2) == "2");
  CHECK(maker.get(1) == "1");
  CHECK(maker.made == 2);
  CHECK(cache.bytes() == 20);
  CHECK(maker.get(3) == "3");  // 2 is the least recently used
  CHECK(cache.bytes() == 20);
  CHECK(maker.get(1) == "1");
  CHECK(maker.made == 3);
  CHECK(maker.get(2) == "2");
  CHECK(maker.made == 4);
  CHECK(cache.decoded() == 4);
}

TEST_CASE("a group above the limit is the only one that stays") {
  Cache cache(25);
  Maker maker{cache};
  maker.get(1);
  maker.get(2, 1000);
  CHECK(cache.bytes() == 1000);
  maker.get(2, 1000);
  CHECK(maker.made == 2);
  maker.get(3);
  CHECK(cache.bytes() == 10);
}

TEST_CASE("an error goes to the caller, and the next call tries again") {
  Cache cache(100);
  Maker maker{cache};
  auto const fail = [&]() -> Cache::Made { throw std::runtime_error("damaged"); };
  CHECK_THROWS_WITH(cache.get(1, fail), "damaged");
  CHECK(cache.bytes() == 0);
  CHECK(maker.get(1) == "1");
}

TEST_CASE("threads that want one group share it") {
  Cache cache(40);
  Maker maker{cache};
  std::atomic<int> wrong{0};
  constexpr int threads = 8;
  constexpr int rounds = 200;
  std::barrier begin(threads);
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        begin.arrive_and_wait();
        auto const key = static_cast<std::uint64_t>(round);
        if (maker.get(key) != std::to_string(key)) ++wrong;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(wrong == 0);
  CHECK(maker.made == rounds);
  CHECK(cache.bytes() <= 40);
}

TEST_CASE("groups that are decoded again and again are advised against") {
  Cache cache(std::uint64_t{10} << 20);
  Maker maker{cache};
  std::uint64_t const size = std::uint64_t{4} << 20;
  for (std::uint64_t key = 0; key < 4; ++key) maker.get(key, size);
  CHECK(cache.warning(4).empty());  // each was decoded once
  maker.get(0, size);
  CHECK(cache.warning(2).empty());  // two of them fit
  CHECK(
      cache.warning(4) ==
      "the order reads from 4 groups of rows at a time, and cache_bytes (10485760) holds fewer, "
      "so each is decoded again and again: raise cache_bytes to 32 MiB, read through a ShardOrder "
      "with a smaller ShuffleWindow, or write smaller groups");
}
