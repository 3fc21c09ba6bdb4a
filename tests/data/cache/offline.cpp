// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/cache/offline.hpp>

#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/error.hpp>

#include <frugal/data/transform_clock.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_cache_offline {

using frugal::offline;
using frugal::OfflineSettings;
using frugal::SampleKey;
using frugal::detail::variant_of;
using frugal_test::support::TemporaryFolder;
using namespace std::chrono_literals;

struct Numbers {
  std::uint64_t size() const { return 50; }
  std::uint64_t get(std::uint64_t i) const { return 1000 * i; }
  std::string identity() const { return "numbers"; }
};

/// Adds the variant that it was called for; counts its calls.
struct Jitter {
  static constexpr int version = 1;
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  std::string settings() const { return ""; }
  std::uint64_t operator()(std::uint64_t sample, SampleKey const& key) const {
    ++*calls;
    CHECK(sample == 1000 * key.index);
    return sample + 100 * key.seed + key.epoch;
  }
};

/// A clock that goes on by `step` at every second reading.
struct Clock {
  std::chrono::nanoseconds step;
  std::shared_ptr<int> readings = std::make_shared<int>(0);
  std::chrono::nanoseconds operator()() const { return step * (++*readings / 2); }
};

OfflineSettings settings(TemporaryFolder const& folder, std::uint64_t variants = 2) {
  return {.cache = {.folder = folder.path(), .out = nullptr}, .variants = variants};
}

TEST_CASE("of K epochs in a row each variant of a sample comes once") {
  TemporaryFolder const folder;
  Jitter const jitter;
  auto const set = offline(Numbers{}, jitter, settings(folder, 4));
  static_assert(frugal::SampleSet<decltype(set)>);
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < set.size(); ++i) {
      std::set<std::uint64_t> seen;
      for (std::uint64_t epoch = 4 * round; epoch < 4 * round + 4; ++epoch) {
        seen.insert(set.get({.index = i, .seed = 7, .epoch = epoch}) - 1000 * i);
      }
      CHECK(seen == std::set<std::uint64_t>{0, 1, 2, 3});
    }
  }
  CHECK(*jitter.calls == 200);  // four of each, made once
  CHECK(set.report().cached == 200);
}

TEST_CASE("the variant is a function of seed, epoch and index, and differs between them") {
  std::map<std::uint64_t, int> first_epoch, orders;
  int moved = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    SampleKey const key{.index = i, .seed = 3, .epoch = 0};
    std::uint64_t const variant = variant_of(key, 3);
    CHECK(variant == variant_of(key, 3));
    ++first_epoch[variant];
    ++orders[variant * 3 + variant_of({.index = i, .seed = 3, .epoch = 1}, 3)];
    moved += variant != variant_of({.index = i, .seed = 4, .epoch = 0}, 3);
  }
  // Each of 3 variants, and of 6 orders, as often as chance has it: within five deviations.
  for (auto const& [variant, count] : first_epoch) CHECK(std::abs(count - 1000) < 130);
  CHECK(orders.size() == 6);
  for (auto const& [order, count] : orders) CHECK(std::abs(count - 500) < 105);
  CHECK(std::abs(moved - 2000) < 130);
}

TEST_CASE("a run with another seed reads the same variants") {
  TemporaryFolder const folder;
  Jitter const first, second;
  auto const one = offline(Numbers{}, first, settings(folder, 2));
  for (std::uint64_t i = 0; i < 100; ++i) {
    static_cast<void>(one.get({.index = i / 2, .seed = 1, .epoch = i % 2}));
  }
  auto const other = offline(Numbers{}, second, settings(folder, 2));
  for (std::uint64_t i = 0; i < 100; ++i) {
    static_cast<void>(other.get({.index = i / 2, .seed = 9, .epoch = 5 + i % 2}));
  }
  CHECK(*first.calls == 100);
  CHECK(*second.calls == 0);
}

TEST_CASE("another K or another seed of the variants has another cache") {
  TemporaryFolder const folder;
  auto const two = offline(Numbers{}, Jitter{}, settings(folder, 2));
  auto const three = offline(Numbers{}, Jitter{}, settings(folder, 3));
  auto seeded = settings(folder);
  seeded.seed = 1;
  auto const other = offline(Numbers{}, Jitter{}, seeded);
  CHECK(two.folder() != three.folder());
  CHECK(two.folder() != other.folder());
  CHECK(other.get({.index = 3, .seed = 0, .epoch = 0}) / 100 == 31);
  CHECK(two.identity() != other.identity());
  CHECK_THROWS_AS(offline(Numbers{}, Jitter{}, settings(folder, 0)), frugal::SettingsError);
}

TEST_CASE("with one variant every epoch has the same samples") {
  TemporaryFolder const folder;
  auto const set = offline(Numbers{}, Jitter{}, settings(folder, 1));
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    CHECK(set.get({.index = 4, .seed = 2, .epoch = epoch}) == 4000);
  }
}

std::string said(std::chrono::nanoseconds step) {
  TemporaryFolder const folder;
  std::ostringstream out;
  auto const set = offline(
      Numbers{}, Jitter{},
      {.cache = {.folder = folder.path(), .out = &out}, .variants = 2, .clock = Clock{step}});
  for (std::uint64_t pass = 0; pass < 3; ++pass) {
    for (std::uint64_t i = 0; i < 49; ++i) static_cast<void>(set.get({.index = i, .epoch = pass}));
  }
  return out.str();
}

TEST_CASE("below 20 ms a sample it advises against itself, once, with what it measured") {
  CHECK(said(3500us) ==
        "frugal: the augmentation takes 3.50 ms a sample, and Offline pays from 20 ms on. Apply it "
        "in the loader: that gives a new variant every epoch, and not one of 2.\n");
  CHECK(said(19999us).starts_with("frugal: the augmentation takes 20.00 ms"));
  CHECK(said(20ms).empty());
  CHECK(said(1s).empty());
}

TEST_CASE("the input's bytes count once, however many variants there are") {
  TemporaryFolder const folder;
  auto const set = offline(Numbers{}, Jitter{}, settings(folder, 4));
  for (std::uint64_t i = 0; i < 200; ++i)
    static_cast<void>(set.get({.index = i / 4, .epoch = i % 4}));
  CHECK(set.report().bytes_before == 50 * 8);
  CHECK(set.report().bytes_after == 200 * 8);
}

TEST_CASE("a loader sees the time of a miss as the transform's, and a hit as reading") {
  struct Slow : Jitter {
    std::uint64_t operator()(std::uint64_t sample, SampleKey const& key) const {
      std::this_thread::sleep_for(5ms);
      return Jitter::operator()(sample, key);
    }
  };
  TemporaryFolder const folder;
  auto const set = offline(Numbers{}, Slow{}, settings(folder, 1));
  frugal::detail::TransformClock clock;
  frugal::detail::MeasuredTransforms const measured(clock);
  static_cast<void>(set.get({.index = 1}));
  double const miss = clock.seconds;
  CHECK(miss >= 0.005);
  static_cast<void>(set.get({.index = 1}));
  CHECK(clock.seconds == miss);
}

TEST_CASE("a variant has a name in errors") {
  TemporaryFolder const folder;
  CHECK(offline(Numbers{}, Jitter{}, settings(folder, 2)).name(7) == "sample 7");
}

}  // namespace frugal_test::data_cache_offline
