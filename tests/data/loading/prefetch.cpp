// SPDX-License-Identifier: Apache-2.0
#include "data/sources.hpp"

#include <doctest/doctest.h>

#include <frugal/core/source/range.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_prefetch {

using namespace frugal_test::data_sources;
using namespace std::chrono_literals;
using frugal::Batch;
using frugal::Prefetch;
using frugal::TensorDataset;
using frugal::WorkerError;

static_assert(frugal::SizedSource<Prefetch<TensorDataset>>);

/// A source without a size that runs a given action at its nth batch.
template <class Deed>
struct Troubled {
  TensorDataset inner;
  int at;
  Deed deed;
  int given = 0;

  void seek(frugal::Cursor const& cursor) { inner.seek(cursor), given = 0; }
  std::optional<Batch> next() {
    if (given++ == at) deed();
    return inner.next();
  }
};
template <class Deed>
Troubled<Deed> troubled(int at, Deed deed) {
  return {TensorDataset(numbered(40), {.batch = 4}), at, std::move(deed)};
}

TEST_CASE("LibTorch's error about a batch reaches the trainer without stack frames") {
  Prefetch source(troubled(2, [] { at::ones({2, 3}).matmul(at::ones({2, 3})); }));
  source.seek({.seed = 1});
  source.next();
  source.next();
  std::string text;
  try {
    source.next();
  } catch (WorkerError const& error) {
    text = error.what();
  }
  CAPTURE(text);
  CHECK(text.find("mat1 and mat2 shapes cannot be multiplied") != std::string::npos);
  CHECK(text.find("Exception raised from") == std::string::npos);
  CHECK(text.find("frame #") == std::string::npos);
}

TEST_CASE("a prefetched source gives the batches of the plain one, bit for bit and in order") {
  for (std::size_t const depth : {1U, 4U, 64U}) {
    Prefetch source(TensorDataset(numbered(203), {.batch = 8}), {.depth = depth});
    TensorDataset plain(numbered(203), {.batch = 8});
    for (frugal::Cursor const cursor :
         {frugal::Cursor{.seed = 1}, {.seed = 1, .epoch = 1}, {.seed = 1, .position = 77}}) {
      CHECK(same(epoch_of(source, cursor), epoch_of(plain, cursor)));
      CHECK_FALSE(source.next().has_value());
    }
  }
}

TEST_CASE("a prefetched source without a seek begins at its source's position") {
  TensorDataset plain(numbered(40), {.batch = 8});
  plain.seek({.seed = 7, .position = 16});
  Prefetch source{TensorDataset(plain)};
  CHECK(same(rest(source), rest(plain)));
}

TEST_CASE("a prefetched source has the size of its source, if any") {
  Prefetch const source(TensorDataset(numbered(203), {.batch = 8}));
  CHECK(source.samples() == 203);
  CHECK(source.batches() == 26);
  auto const nothing = [] {};
  static_assert(frugal::Source<Prefetch<Troubled<decltype(nothing)>>>);
  static_assert(!frugal::SizedSource<Prefetch<Troubled<decltype(nothing)>>>);
}

TEST_CASE("seeking in the middle discards what was read ahead") {
  Prefetch source(TensorDataset(numbered(80), {.batch = 8}), {.depth = 6});
  TensorDataset plain(numbered(80), {.batch = 8});
  source.seek({.seed = 3});
  source.next();
  source.next();
  // Two batches were consumed, however many were read: a resume continues there.
  frugal::Cursor const cursor{.seed = 3, .position = 16};
  CHECK(same(epoch_of(source, cursor), epoch_of(plain, cursor)));
}

TEST_CASE("a prefetched range of batches works like any source") {
  std::vector<Batch> const batches{numbered(3), numbered(2)};
  Prefetch source(frugal::as_source(batches));
  CHECK(same(epoch_of(source, {}), batches));
  CHECK(same(epoch_of(source, {.position = 3}), {numbered(2)}));
}

TEST_CASE("a prefetched source that is moved in the middle continues") {
  Prefetch source(TensorDataset(numbered(40), {.batch = 8}));
  source.seek({.seed = 2});
  source.next();
  Prefetch moved = std::move(source);
  TensorDataset plain(numbered(40), {.batch = 8});
  plain.seek({.seed = 2, .position = 8});
  CHECK(same(rest(moved), rest(plain)));
}

TEST_CASE("a source that throws is reported at its batch, after earlier ones") {
  Prefetch source(troubled(2, [] { throw std::runtime_error("bad shard 7"); }));
  source.seek({.seed = 1, .epoch = 5, .position = 12});
  CHECK(source.next().has_value());
  CHECK(source.next().has_value());
  for (int again = 0; again < 2; ++again) {
    try {
      source.next();
      FAIL("nothing was thrown");
    } catch (WorkerError const& error) {
      CHECK(error.fault().where == "batch 2 after sample 12 of epoch 5");
      CHECK(error.fault().why == "bad shard 7");
      CHECK_THROWS_WITH_AS(std::rethrow_if_nested(error), "bad shard 7", std::runtime_error);
    }
  }
}

TEST_CASE("a source that failed can be sought and read again") {
  Prefetch source(troubled(0, [failed = false]() mutable {
    if (!std::exchange(failed, true)) throw 42;
  }));
  CHECK_THROWS_AS(source.next(), WorkerError);
  source.seek({.seed = 1});
  TensorDataset plain(numbered(40), {.batch = 4});
  CHECK(same(rest(source), epoch_of(plain, {.seed = 1})));
}

TEST_CASE("a source that hangs ends in an error; the rest of the program continues without it") {
  auto const let_go = std::make_shared<std::promise<void>>();
  auto const gone = std::make_shared<std::promise<void>>();
  {
    Prefetch source(
        troubled(1, [free = let_go->get_future().share(),
                     last = std::shared_ptr<void>(
                         nullptr, [gone](void*) { gone->set_value(); })] { free.wait(); }),
        {.patience = 100ms});
    source.seek({});
    CHECK(source.next().has_value());
    try {
      source.next();
      FAIL("nothing was thrown");
    } catch (WorkerError const& error) {
      CHECK(error.fault().where == "batch 1 after sample 0 of epoch 0");
      CHECK(error.fault().why == "no batch came for 0.1 s");
    }
    CHECK_THROWS_AS(source.seek({}), WorkerError);
    CHECK_THROWS_AS(source.seek({}), WorkerError);
  }
  let_go->set_value();
  gone->get_future().wait();  // the thread returned to its own state, and freed it
}

TEST_CASE("seeking a prefetched source to an invalid position throws at once") {
  Prefetch source(TensorDataset(numbered(40)));
  CHECK_THROWS_AS(source.seek({.position = 41}), frugal::StateError);
}

TEST_CASE("the worker records no gradients, uses its own thread count, and does not change ours") {
  int const ours = at::get_num_threads();
  auto const seen = std::make_shared<std::pair<bool, int>>(true, 0);
  Prefetch source(
      troubled(0, [seen] { *seen = {at::GradMode::is_enabled(), at::get_num_threads()}; }),
      {.threads = 1});
  CHECK(source.next().has_value());
  CHECK_FALSE(seen->first);
  CHECK(seen->second == 1);
  CHECK(at::GradMode::is_enabled());
  CHECK(at::get_num_threads() == ours);
}

/// A source that detects reads while it should be paused.
struct Still {
  TensorDataset inner;
  std::shared_ptr<std::atomic<bool>> still;
  std::shared_ptr<std::atomic<int>> disturbed;

  void seek(frugal::Cursor const& cursor) { inner.seek(cursor); }
  std::optional<Batch> next() {
    *disturbed += still->load();
    auto batch = inner.next();
    *disturbed += still->load();
    return batch;
  }
};

TEST_CASE("a paused source is not read until resumed, and no batch is lost or repeated") {
  static_assert(frugal::PausableSource<Prefetch<TensorDataset>>);
  auto const still = std::make_shared<std::atomic<bool>>(false);
  auto const disturbed = std::make_shared<std::atomic<int>>(0);
  Prefetch source(Still{TensorDataset(numbered(400), {.batch = 4}), still, disturbed},
                  {.depth = 2});
  CHECK(source.pause());  // there is no worker yet
  source.resume();
  TensorDataset plain(numbered(400), {.batch = 4});
  plain.seek({});
  source.seek({});
  int batches = 0;
  while (auto batch = source.next()) {
    ++batches;
    CHECK(batch->data.equal(plain.next()->data));
    CHECK(source.pause());
    *still = true;
    *still = false;
    source.resume();
  }
  CHECK(batches == 100);
  CHECK(*disturbed == 0);
  CHECK(source.pause());  // the worker has ended
}

TEST_CASE("the time that training waits for a prefetched source is measured, whatever the source") {
  static_assert(frugal::WaitedSource<Prefetch<TensorDataset>>);
  Prefetch source(TensorDataset(numbered(40), {.batch = 4}));
  CHECK(source.waited() == 0);
  CHECK(source.warning().empty());
  source.seek({});
  while (source.next()) {
  }
  CHECK(source.waited() > 0);
  // Nothing was done between the batches: all of the ten steps' time was spent in next().
  Prefetch slow(troubled(5, [] {}));
  slow.seek({});
  while (slow.next()) {
  }
  CHECK(slow.waited() > 0);
}

TEST_CASE("a source that cannot be paused within the patience reports that, and continues") {
  std::promise<void> promise, reading;
  auto const released = promise.get_future().share();
  auto const wait = [released, &reading] {
    reading.set_value();
    released.wait();
  };
  Prefetch source(troubled(0, wait), {.patience = 10ms});
  source.seek({});
  reading.get_future().wait();
  CHECK_FALSE(source.pause());
  promise.set_value();
  source.resume();
  int batches = 0;
  for (bool more = true; more;) {
    try {
      more = source.next().has_value();
      batches += more;
    } catch (WorkerError const&) {
      // 10 ms are short on a busy machine.
    }
  }
  CHECK(batches == 10);
}

}  // namespace frugal_test::data_prefetch
