// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data/curate/curated.hpp>
#include <frugal/data/loading/loader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace frugal_test::data_curate_curated_loader {

/// Samples of which three in a row have the same text: 34 texts.
struct Threes {
  std::uint64_t size() const { return 100; }
  frugal::Batch get(std::uint64_t index) const {
    at::Tensor const x = at::full({1}, static_cast<std::int64_t>(index), at::kLong);
    return {x, x};
  }
};

std::string text_of(frugal::Batch const& sample) {
  return std::to_string(sample.data.item<std::int64_t>() / 3);
}

template <class Source>
std::vector<std::int64_t> read(Source& source, frugal::Cursor const& cursor) {
  std::vector<std::int64_t> seen;
  source.seek(cursor);
  while (auto batch = source.next()) {
    at::Tensor const flat = batch->data.flatten();
    for (std::int64_t i = 0; i < flat.numel(); ++i) seen.push_back(flat[i].item<std::int64_t>());
  }
  return seen;
}

TEST_CASE(
    "a loader gives each kept sample once an epoch, from any place on, for any number of workers") {
  auto const curated = frugal::curate(Threes{}, {.near = false}, &text_of).first;
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < 100; i += 3) kept.push_back(i);
  std::vector<std::int64_t> expected;
  for (int const workers : {0, 1, 2, 4, 8}) {
    auto source = frugal::loader(curated, {.batch = 5}, frugal::Stack{}, {.workers = workers});
    CHECK(source.samples() == kept.size());
    auto const all = read(source, {.seed = 3, .epoch = 1});
    if (expected.empty()) expected = all;
    CHECK(all == expected);
    for (std::uint64_t const position : {1U, 5U, 17U, 34U}) {
      auto const rest = read(source, {.seed = 3, .epoch = 1, .position = position});
      CHECK(rest ==
            std::vector(expected.begin() + static_cast<std::ptrdiff_t>(position), expected.end()));
    }
  }
  std::sort(expected.begin(), expected.end());
  CHECK(expected == kept);
}

}  // namespace frugal_test::data_curate_curated_loader
