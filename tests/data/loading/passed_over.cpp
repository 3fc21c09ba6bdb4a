// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/cluster/divided_source.hpp>
#include <frugal/data/limited.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/mapped.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::data_passed_over {

using frugal::Division;
using frugal::MicroBatches;
using frugal::detail::DividedSource;

/// 23 samples, which count who reads them. Sample 7 may be damaged.
struct Counted {
  struct Reads {
    std::mutex mutex{};
    std::set<std::uint64_t> read{};
  };
  std::shared_ptr<Reads> reads = std::make_shared<Reads>();
  bool has_damage = false;

  std::uint64_t size() const { return 23; }
  at::Tensor get(std::uint64_t index) const {
    std::scoped_lock const lock(reads->mutex);
    reads->read.insert(index);
    if (has_damage && index / 2 == 3) {
      throw frugal::DataError(
          {.what = "it is damaged", .where = "sample", .why = "a test", .fix = "Nothing."});
    }
    return at::full({1}, static_cast<double>(index));
  }
};

auto loader_of(Counted const& set, int workers, bool shuffle = true) {
  return frugal::loader(set, {.batch = 2, .shuffle = shuffle}, frugal::Stack{},
                        {.workers = workers, .on_error = frugal::OnError::Skip, .skip_limit = 1.0});
}

/// A source in this thread that is read batch by batch, and cannot be passed over.
struct Plain {
  explicit Plain(Counted const& set) : order(set.size(), {.batch = 2}, "plain"), set(set) {}
  void seek(frugal::Cursor const& cursor) { order.seek(cursor); }
  std::optional<at::Tensor> next() {
    auto const slice = order.advance();
    if (slice.count == 0) return std::nullopt;
    std::vector<std::uint64_t> indices(slice.count);
    order.indices(slice, std::span(indices));
    std::vector<at::Tensor> rows;
    for (std::uint64_t const each : indices) rows.push_back(set.get(each));
    return at::stack(rows);
  }
  frugal::Pass order;
  Counted set;
};

std::vector<std::vector<float>> rows_of(auto& source) {
  std::vector<std::vector<float>> all;
  while (auto const batch = source.next()) {
    at::Tensor const flat = batch->flatten().contiguous();
    all.emplace_back(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return all;
}

/// The batches of an epoch from `position` on, window by window, as the processes of a run see them.
template <class Make>
void compare(Make const& make, std::uint64_t position, bool reads_own_only) {
  Counted whole_set;
  auto whole = make(whole_set);
  frugal::Cursor const cursor{.seed = 3, .epoch = 1, .position = position};
  whole.seek(cursor);
  auto const expected = rows_of(whole);
  constexpr std::uint64_t window = 4;
  for (std::uint64_t const size : {1U, 2U, 4U}) {
    CAPTURE(size);
    std::vector<std::vector<float>> found(expected.size());
    for (std::uint64_t rank = 0; rank < size; ++rank) {
      Counted set;
      auto source = make(set);
      MicroBatches const own{.first = rank * window / size, .count = window / size};
      std::uint64_t before = 0;
      {
        DividedSource divided(source, own, window);
        divided.seek(cursor);
        for (bool goes_on = true; goes_on;) {
          divided.begin_window();
          std::uint64_t mine = 0;
          while (auto const batch = divided.next()) {
            at::Tensor const flat = batch->flatten().contiguous();
            found[before + own.first + mine++] = {flat.data_ptr<float>(),
                                                  flat.data_ptr<float>() + flat.numel()};
          }
          before += divided.window_batches();
          goes_on = divided.window_batches() == window;
          CHECK(divided.consumed() == std::min<std::uint64_t>(position + 2 * before, 23));
        }
        CHECK(before == expected.size());
      }
      if (reads_own_only && size == 4) CHECK(set.reads->read.size() <= 2 * 3);
      // Afterwards it is read whole again.
      source.seek(cursor);
      CHECK(rows_of(source) == expected);
    }
    CHECK(found == expected);
  }
}

TEST_CASE("a loader reads the batches of its process alone") {
  for (int workers : {0, 3}) {
    CAPTURE(workers);
    auto const make = [&](Counted const& set) { return loader_of(set, workers); };
    compare(make, 0, true);
    compare(make, 8, true);
    compare(make, 16, true);  // fewer batches than a window
  }
}

TEST_CASE("likewise the sources that read a loader") {
  compare([](Counted const& set) { return frugal::Prefetch(loader_of(set, 1)); }, 8, true);
  compare(
      [](Counted const& set) {
        return frugal::Mapped(loader_of(set, 2), [](at::Tensor const& batch) { return batch + 1; });
      },
      0, true);
  // The limit is found by reading one batch.
  compare([](Counted const& set) { return frugal::Limited(loader_of(set, 0), 20); }, 0, false);
}

TEST_CASE("a source that cannot pass over a batch reads it, in Prefetch's worker too") {
  compare([](Counted const& set) { return Plain(set); }, 8, false);
  compare([](Counted const& set) { return frugal::Prefetch(Plain(set)); }, 8, false);
}

TEST_CASE("a batch of which every sample is damaged is an error where processes divide the epoch") {
  Counted set{.has_damage = true};
  auto source = loader_of(set, 0, false);
  source.seek({});
  CHECK(rows_of(source).size() == 11);  // of 12
  DividedSource divided(source, {.first = 2, .count = 2}, 4);
  divided.seek({});
  divided.begin_window();
  CHECK(divided.next());
  CHECK_THROWS_WITH_AS(divided.next(), doctest::Contains("every sample of this rank's part"),
                       frugal::DataError);
  CHECK_THROWS_AS(divided.next(), frugal::DataError);
}

TEST_CASE(
    "the source is read whole in between, as a validation does, and divided again after a seek") {
  Counted set;
  auto source = loader_of(set, 2);
  DividedSource divided(source, {.first = 0, .count = 1}, 4);
  divided.seek({});
  divided.begin_window();
  CHECK(divided.next());
  source.divide({});
  source.seek({});
  CHECK(rows_of(source).size() == 12);
  divided.seek({.position = 8});
  divided.begin_window();
  CHECK(divided.next());
  CHECK_FALSE(divided.next());
  CHECK(divided.consumed() == 16);
}

TEST_CASE("a batch of another process cannot be asked for") {
  Counted set;
  auto source = loader_of(set, 0);
  source.divide({.first = 1, .count = 1, .window = 2});
  source.seek({});
  CHECK_THROWS_WITH_AS(source.next(), doctest::Contains("a batch of another process is asked for"),
                       frugal::StateError);
  CHECK(source.skip() == 2);
  CHECK(source.next());
}

}  // namespace frugal_test::data_passed_over
