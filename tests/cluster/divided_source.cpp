// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/cluster/divided_source.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace frugal_test::core_loop_divided_source {

using frugal::Cursor;
using frugal::MicroBatches;
using frugal::TensorDataset;
using frugal::detail::DividedSource;

TensorDataset data(std::int64_t samples) {
  return {at::arange(samples), at::arange(samples), {.batch = 2, .shuffle = false}};
}

/// The first sample of each batch that comes in windows of `window`, of which `own` are this process's.
std::vector<std::vector<std::int64_t>> read(std::int64_t samples, MicroBatches own,
                                            std::uint64_t window, std::uint64_t from = 0) {
  TensorDataset source = data(samples);
  DividedSource divided(source, own, window);
  divided.seek(Cursor{.seed = 0, .epoch = 0, .position = from});
  std::vector<std::vector<std::int64_t>> all;
  while (true) {
    divided.begin_window();
    std::vector<std::int64_t> firsts;
    // As an executor does: at most a window's batches, or until there is none.
    for (std::uint64_t k = 0; k < window; ++k) {
      auto const batch = divided.next();
      if (!batch) break;
      firsts.push_back(batch->data[0].item<std::int64_t>());
    }
    if (divided.window_batches() == 0) return all;
    all.push_back(firsts);
    // Positions are those of all processes.
    CHECK(divided.consumed() ==
          std::min(from + all.size() * window * 2, static_cast<std::uint64_t>(samples)));
  }
}

using Windows = std::vector<std::vector<std::int64_t>>;

TEST_CASE("each process gets its batches of each window") {
  CHECK(read(16, {0, 4}, 4) == Windows{{0, 2, 4, 6}, {8, 10, 12, 14}});
  CHECK(read(16, {0, 2}, 4) == Windows{{0, 2}, {8, 10}});
  CHECK(read(16, {2, 2}, 4) == Windows{{4, 6}, {12, 14}});
  CHECK(read(16, {3, 1}, 4) == Windows{{6}, {14}});
}

TEST_CASE("all see the same windows, also if an epoch ends in the middle of one") {
  CHECK(read(11, {0, 2}, 4) == Windows{{0, 2}, {8, 10}});
  CHECK(read(11, {2, 2}, 4) == Windows{{4, 6}, {}});
  CHECK(read(10, {1, 1}, 4) == Windows{{2}, {}});
}

TEST_CASE("a run goes on at a window, with another number of processes") {
  CHECK(read(16, {1, 1}, 4, 8) == Windows{{10}});
}

TEST_CASE("whether there is another batch does not depend on the process") {
  TensorDataset source = data(4);
  DividedSource divided(source, {1, 1}, 2);
  divided.seek({});
  CHECK(frugal::detail::has_another_batch(divided));
  CHECK(frugal::detail::has_another_batch(divided));
  CHECK_FALSE(frugal::detail::has_another_batch(divided));
}

/// Gives numbers, and can pass over them.
struct Skips {
  int left = 6, skipped = 0, read = 0;
  void seek(Cursor const&) { left = 6; }
  std::optional<frugal::Batch> next() {
    if (left == 0) return std::nullopt;
    --left, ++read;
    return frugal::Batch{at::ones({3}), at::ones({3})};
  }
  std::uint64_t skip() {
    if (left == 0) return 0;
    --left, ++skipped;
    return 3;
  }
};

TEST_CASE("a source that can skip reads this process's batches alone") {
  Skips source;
  DividedSource divided(source, {1, 1}, 3);
  divided.seek({});
  for (int window = 0; window < 2; ++window) {
    divided.begin_window();
    CHECK(divided.next().has_value());
    CHECK_FALSE(divided.next().has_value());
  }
  CHECK(source.read == 2);
  CHECK(source.skipped == 4);
  CHECK(divided.consumed() == 18);
}

}  // namespace frugal_test::core_loop_divided_source
