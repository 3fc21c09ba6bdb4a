// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include <doctest/doctest.h>

#include <frugal/core/source/range.hpp>
#include <frugal/data/limited.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/error.hpp>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace frugal_test::data_limited {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::Cursor;
using frugal::Limited;
using frugal::TensorDataset;

TensorDataset numbers(std::int64_t n, std::int64_t batch, bool drop_last = false) {
  return TensorDataset(numbered(n), {.batch = batch, .drop_last = drop_last});
}

/// A set of samples, for a loader.
struct Set {
  std::uint64_t count = 100;
  std::uint64_t size() const { return count; }
  Batch get(std::uint64_t i) const {
    auto const first = static_cast<std::int64_t>(i);
    return {at::arange(first * 6, first * 6 + 6, at::kFloat).view({2, 3}),
            at::scalar_tensor(first * 10, at::kLong)};
  }
};

TEST_CASE("an epoch is the first batches of the source's, in the source's order") {
  TensorDataset whole = numbers(100, 8);
  Limited first(numbers(100, 8), 3);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    auto expected = epoch_of(whole, {.seed = 5, .epoch = epoch});
    expected.resize(3);
    CHECK(same(epoch_of(first, {.seed = 5, .epoch = epoch}), expected));
    CHECK_FALSE(first.next());
  }
  auto const one = samples_in(epoch_of(first, {.seed = 5, .epoch = 0}));
  CHECK(one != samples_in(epoch_of(first, {.seed = 5, .epoch = 1})));
}

TEST_CASE("without a seek it is at the beginning of epoch 0") {
  Limited first(numbers(100, 8), 3);
  auto const read = rest(first);
  CHECK(same(read, epoch_of(first, {})));
}

TEST_CASE("from any place the rest of the epoch follows, with any batch size") {
  Limited first(numbers(100, 8), 5);
  auto const all = samples_in(epoch_of(first, {.seed = 1, .epoch = 2}));
  REQUIRE(all.size() == 40);
  for (std::size_t position = 0; position <= 40; position += 8) {
    auto const left = samples_in(epoch_of(first, {.seed = 1, .epoch = 2, .position = position}));
    CHECK(left == std::vector(all.begin() + static_cast<std::ptrdiff_t>(position), all.end()));
  }
  Limited halves(numbers(100, 4), 10);
  for (std::uint64_t const position : {0U, 4U, 20U, 36U}) {
    auto const left = samples_in(epoch_of(halves, {.seed = 1, .epoch = 2, .position = position}));
    CHECK(left == std::vector(all.begin() + static_cast<std::ptrdiff_t>(position), all.end()));
  }
}

TEST_CASE("it counts its samples and batches") {
  Limited const first(numbers(100, 8), 3);
  CHECK(first.samples() == 24);
  CHECK(first.batches() == 3);
  Limited const ragged(numbers(20, 8), 3);
  CHECK(ragged.samples() == 20);
  CHECK(ragged.batches() == 3);
  for (std::uint64_t const more : {std::uint64_t{4}, std::numeric_limits<std::uint64_t>::max()}) {
    Limited all(numbers(20, 8), more);
    CHECK(all.samples() == 20);
    CHECK(all.batches() == 3);
    CHECK(samples_in(epoch_of(all, {})).size() == 20);
  }
  Limited<TensorDataset> dropped(numbers(20, 8, /*drop_last=*/true), 5);
  CHECK(dropped.batches() == 2);
  CHECK(rest(dropped).size() == 2);
}

TEST_CASE("a loader's position is that of the samples it has consumed") {
  struct Damaged : Set {
    Batch get(std::uint64_t i) const {
      if (i % 5 == 2) throw frugal::DataError({"damaged", "", "", ""});
      return Set::get(i);
    }
  };
  auto const of = [](int workers) {
    return Limited(
        frugal::loader(Damaged{}, {.batch = 10}, frugal::Stack{},
                       {.workers = workers, .on_error = frugal::OnError::Skip, .skip_limit = 1}),
        4);
  };
  auto loaded = of(2);
  static_assert(frugal::ConsumingSource<decltype(loaded)>);
  static_assert(frugal::WaitedSource<decltype(loaded)>);
  static_assert(frugal::PausableSource<decltype(loaded)>);
  CHECK(loaded.samples() == 40);
  CHECK(loaded.batches() == 4);
  auto const all = epoch_of(loaded, {.seed = 3});
  CHECK(all.size() == 4);
  CHECK(loaded.consumed() == 40);
  auto again = of(0);
  auto const left = epoch_of(again, {.seed = 3, .position = 20});
  CHECK(same(left, {all.begin() + 2, all.end()}));
  CHECK(loaded.pause());
  loaded.resume();
}

TEST_CASE("within other sources, and around them") {
  Limited plain(numbers(100, 8), 3);
  frugal::Prefetch ahead(Limited(numbers(100, 8), 3));
  Limited behind(frugal::Prefetch(numbers(100, 8)), 3);
  Limited mapped(frugal::Mapped(numbers(100, 8), [](Batch batch) { return batch; }), 3);
  CHECK(ahead.batches() == 3);
  for (Cursor const cursor : {Cursor{.seed = 2}, Cursor{.seed = 2, .epoch = 1, .position = 16}}) {
    auto const expected = epoch_of(plain, cursor);
    CHECK(same(epoch_of(ahead, cursor), expected));
    CHECK(same(epoch_of(behind, cursor), expected));
    CHECK(same(epoch_of(mapped, cursor), expected));
  }
}

TEST_CASE("of a range of batches") {
  std::vector<Batch> const batches{numbered(4), numbered(4), numbered(4), numbered(2)};
  Limited first(frugal::as_source(batches), 2);
  CHECK(first.samples() == 8);
  CHECK(epoch_of(first, {}).size() == 2);
  CHECK(epoch_of(first, {.position = 4}).size() == 1);
  CHECK(epoch_of(first, {.position = 8}).empty());
}

TEST_CASE("of a source without a size it has none either") {
  struct Stream {
    std::int64_t at = 0;
    void seek(Cursor const& cursor) { at = static_cast<std::int64_t>(cursor.position); }
    std::optional<Batch> next() {
      ++at;
      return numbered(1);
    }
  };
  Limited first(Stream{}, 7);
  static_assert(!frugal::SizedSource<decltype(first)>);
  static_assert(frugal::ConsumingSource<decltype(first)>);
  CHECK(epoch_of(first, {}).size() == 7);
  CHECK(epoch_of(first, {.epoch = 3, .position = 5}).size() == 2);
}

/// Batches of 32, 40 and 52 samples, and so on: a budget of tokens, say.
struct Growing {
  std::uint64_t at = 0;
  static constexpr std::uint64_t sizes[] = {32, 40, 52, 60, 16};
  void seek(Cursor const& cursor) {
    std::uint64_t place = 0;
    for (at = 0; place < cursor.position; ++at) place += sizes[at];
    CHECK(place == cursor.position);
  }
  std::optional<Batch> next() {
    if (at == 5) return std::nullopt;
    auto const n = static_cast<std::int64_t>(sizes[at++]);
    return Batch{at::zeros({n, 3}), at::zeros({n}, at::kLong)};
  }
  std::uint64_t samples() const { return 200; }
  std::uint64_t batches() const { return 5; }
};

TEST_CASE("a batch that is larger than the rest of the limit ends the epoch at the limit") {
  Limited first(Growing{}, 3);
  std::vector<std::uint64_t> places;
  while (first.next()) places.push_back(first.consumed());
  CHECK(places == std::vector<std::uint64_t>{32, 72, 96});
  CHECK(first.samples() == 96);
  first.seek({.position = 96});
  CHECK_FALSE(first.next());
  first.seek({.epoch = 1, .position = 0});
  CHECK(first.next());
}

TEST_CASE("a limit of 0 batches is refused") {
  CHECK_THROWS_AS(Limited(numbers(10, 4), 0), frugal::SettingsError);
}

}  // namespace frugal_test::data_limited
