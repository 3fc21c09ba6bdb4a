// SPDX-License-Identifier: Apache-2.0
#include "sources.hpp"

#include <doctest/doctest.h>

#include <frugal/data/fields_batch.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/data/split.hpp>
#include <frugal/data/tensor_dataset.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_split {

using namespace frugal_test::data_sources;
using frugal::Batch;
using frugal::SampleKey;
using frugal::TensorDataset;

/// Samples that are their numbers.
struct Numbers {
  std::uint64_t count = 100;
  std::uint64_t size() const { return count; }
  std::uint64_t get(std::uint64_t i) const { return i; }
  std::string name(std::uint64_t i) const { return "row " + std::to_string(i); }
};
struct Identified : Numbers {
  std::string identity() const { return "numbers"; }
};
struct Keyed {
  std::uint64_t size() const { return 100; }
  SampleKey get(SampleKey const& key) const { return key; }
};
struct Bulk : Numbers {
  std::vector<std::uint64_t> get_batch(std::span<std::uint64_t const> indices) const {
    return {indices.begin(), indices.end()};
  }
};

template <class Parts>
std::vector<std::uint64_t> all_of(Parts const& parts) {
  std::vector<std::uint64_t> all;
  for (auto const& part : parts) {
    CHECK(std::is_sorted(part.indices().begin(), part.indices().end()));
    for (std::uint64_t i = 0; i < part.size(); ++i) all.push_back(part.get(i));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::uint64_t> first_numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

TEST_CASE("every sample is in exactly one part, and a part has its share to within a sample") {
  for (std::uint64_t const count : {10U, 11U, 64U, 103U, 1000U, 60000U}) {
    for (std::uint64_t const seed : {0U, 1U, 77U}) {
      auto const two = frugal::split(Numbers{count}, {0.9, 0.1}, {.seed = seed});
      CHECK(all_of(two) == first_numbers(count));
      CHECK(std::abs(static_cast<double>(two[1].size()) - 0.1 * static_cast<double>(count)) < 1);
      auto const four = frugal::split(Numbers{count}, {0.25, 0.3, 0.3, 0.15}, {.seed = seed});
      CHECK(all_of(four) == first_numbers(count));
    }
  }
  auto const [train, valid] = frugal::split(Numbers{60000}, {0.9, 0.1});
  CHECK(train.size() == 54000);
  CHECK(valid.size() == 6000);
  auto const thirds = frugal::split(Numbers{99}, {1.0 / 3, 1.0 / 3, 1.0 / 3});
  for (auto const& third : thirds) CHECK(third.size() == 33);
}

TEST_CASE("numbers of samples are taken as they are") {
  auto const parts = frugal::split(Numbers{100}, {70, 20, 10});
  CHECK(parts[0].size() == 70);
  CHECK(parts[1].size() == 20);
  CHECK(parts[2].size() == 10);
  CHECK(all_of(parts) == first_numbers(100));
  CHECK(frugal::split(Numbers{100}, {0.7, 0.2, 0.1})[1].indices() == parts[1].indices());
}

TEST_CASE("the parts are slices of the permutation of the seed") {
  std::vector<std::uint64_t> order(1000);
  frugal::Permutation(5, frugal::draw_stream("split"), 1000).fill(0, std::span(order));
  auto const [train, valid] = frugal::split(Numbers{1000}, {900, 100}, {.seed = 5});
  std::vector<std::uint64_t> expected(order.begin() + 900, order.end());
  std::sort(expected.begin(), expected.end());
  CHECK(valid.indices() == expected);
  CHECK(frugal::split(Numbers{1000}, {900, 100}, {.seed = 6})[1].indices() != expected);
}

TEST_CASE("rows of a batch: data and target together, as batches for TensorDataset") {
  auto const [train_rows, valid_rows] = frugal::split(numbered(50), {0.8, 0.2}, {.seed = 3});
  TensorDataset train(train_rows, {.batch = 8});
  TensorDataset valid(valid_rows, {.batch = 8, .shuffle = false});
  auto all = samples_in(epoch_of(train, {}));
  CHECK(all.size() == 40);
  auto const others = samples_in(epoch_of(valid, {}));
  CHECK(std::is_sorted(others.begin(), others.end()));
  all.insert(all.end(), others.begin(), others.end());
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == 50);
  for (std::size_t i = 0; i < 50; ++i) CHECK(all[i] == static_cast<std::int64_t>(i));
}

TEST_CASE("any batch of tensors: a tensor, a pair, fields, strided and without gradients") {
  auto const [a, b] = frugal::split(at::arange(10), {0.5, 0.5});
  CHECK(at::equal(std::get<0>(at::sort(at::cat({a, b}))), at::arange(10)));
  at::Tensor const wide = at::arange(20, at::kFloat).view({2, 10}).t().requires_grad_();
  auto const pairs = frugal::split(std::pair(wide, at::arange(10)), {3, 7});
  CHECK_FALSE(pairs[1].first.requires_grad());
  CHECK(at::equal(pairs[1].first, wide.detach().index_select(0, pairs[1].second)));
  frugal::FieldsBatch set{.data = at::arange(10)};
  set.fields["mask"] = at::arange(10) * 2;
  auto const fields = frugal::split(set, {0.4, 0.6});
  CHECK_FALSE(fields[0].target.defined());
  CHECK(fields[0].data.size(0) == 4);
  CHECK(at::equal(fields[0].field("mask"), fields[0].data * 2));
  CHECK(set.data.size(0) == 10);
}

TEST_CASE("a vector of samples gives vectors") {
  std::vector<std::string> const texts{"a", "b", "c", "d", "e"};
  auto const [most, rest_of_it] = frugal::split(texts, {4, 1});
  std::vector<std::string> all(most);
  all.insert(all.end(), rest_of_it.begin(), rest_of_it.end());
  std::sort(all.begin(), all.end());
  CHECK(all == texts);
  // Not the rows of each tensor.
  std::vector<at::Tensor> const tensors(6, at::ones({4}));
  CHECK(frugal::split(tensors, {0.5, 0.5})[0].size() == 3);
}

TEST_CASE("each class is divided in the same shares") {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 1000; ++i) labels.push_back(i % 97 == 0 ? 7 : i % 3);
  auto const parts = frugal::split(Numbers{1000}, {0.8, 0.1, 0.1}, {.seed = 2, .labels = labels});
  CHECK(all_of(parts) == first_numbers(1000));
  std::map<std::int64_t, double> all;
  for (std::int64_t const label : labels) ++all[label];
  double const share[] = {0.8, 0.1, 0.1};
  for (std::size_t p = 0; p < 3; ++p) {
    std::map<std::int64_t, double> here;
    for (std::uint64_t const i : parts[p].indices()) ++here[labels[i]];
    // Two roundings, since three parts are divided off one after the other.
    for (auto const& [label, count] : all) CHECK(std::abs(here[label] - share[p] * count) < 2);
  }
  CHECK(parts[2].size() == 100);
  auto const other = frugal::split(Numbers{1000}, {0.8, 0.1, 0.1}, {.seed = 3, .labels = labels});
  CHECK(other[2].indices() != parts[2].indices());
}

TEST_CASE("a part is read as its set is") {
  auto const [train, valid] = frugal::split(Identified{}, {0.9, 0.1}, {.seed = 1});
  CHECK(valid.name(3) == "row " + std::to_string(valid.get(3)));
  CHECK_THROWS_AS(valid.get(10), frugal::DataError);
  auto const keyed = frugal::split(Keyed{}, {0.9, 0.1}, {.seed = 1});
  CHECK(keyed[1].get(SampleKey{.index = 3, .seed = 4, .epoch = 5}) ==
        SampleKey{.index = valid.get(3), .seed = 4, .epoch = 5});
  auto const bulk = frugal::split(Bulk{}, {0.9, 0.1}, {.seed = 1});
  static_assert(frugal::BatchedSet<std::remove_cvref_t<decltype(bulk[1])>>);
  CHECK(bulk[1].get_batch(std::vector<std::uint64_t>{2, 0}) ==
        std::vector<std::uint64_t>{valid.get(2), valid.get(0)});
}

TEST_CASE("a resume refuses another split: seed, shares and the other part") {
  auto const identity = [](auto const& source) {
    return frugal::detail::data_identity_of(source).values();
  };
  auto const loaded = [&](std::size_t part, double first, std::uint64_t seed) {
    auto const parts = frugal::split(Numbers{}, {first, 1 - first}, {.seed = seed});
    return identity(frugal::loader(parts[part], {.batch = 5}));
  };
  CHECK(loaded(0, 0.5, 1) == loaded(0, 0.5, 1));
  CHECK(loaded(0, 0.5, 1) != loaded(0, 0.5, 2));
  CHECK(loaded(0, 0.5, 1) != loaded(1, 0.5, 1));
  CHECK(loaded(0, 0.5, 1) != loaded(0, 0.6, 1));
  auto const rows = [&](std::size_t part, std::uint64_t seed) {
    return identity(TensorDataset(frugal::split(numbered(50), {0.5, 0.5}, {.seed = seed})[part]));
  };
  CHECK(rows(0, 1) == rows(0, 1));
  CHECK(rows(0, 1) != rows(0, 2));
  CHECK(rows(0, 1) != rows(1, 1));
  auto const [train, valid] = frugal::split(Identified{}, {0.5, 0.5});
  CHECK(train.identity() != valid.identity());
  CHECK(train.identity().starts_with("numbers, "));
}

TEST_CASE("a part of a part names both divisions") {
  auto const inner = [](std::uint64_t outer_seed, std::uint64_t inner_seed) {
    auto const parts = frugal::split(Numbers{}, {0.5, 0.5}, {.seed = outer_seed});
    auto const part = frugal::split(parts[0], {0.5, 0.5}, {.seed = inner_seed})[0];
    for (std::uint64_t i = 0; i < part.size(); ++i) {
      CHECK(part.get(i) == parts[0].indices()[part.indices()[i]]);
    }
    return frugal::detail::data_identity_of(frugal::loader(part, {.batch = 5})).values();
  };
  auto const one = inner(1, 2);
  CHECK(one.contains("split"));
  CHECK(one.contains("split 2"));
  CHECK(one == inner(1, 2));
  CHECK(one != inner(1, 3));
  CHECK(one != inner(3, 2));
}

TEST_CASE("each class keeps its share of what the parts after it have left") {
  // 300 samples of 7 classes in 10 parts: at most the bound that the header states.
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 300; ++i) labels.push_back(i * i % 7 + (i % 11 == 0 ? 7 : 0));
  std::map<std::int64_t, double> sizes;
  for (std::int64_t const each : labels) ++sizes[each];
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const parts =
        frugal::split(Numbers{300}, {30, 30, 30, 30, 30, 30, 30, 30, 30, 30}, {seed, labels});
    std::map<std::int64_t, double> left = sizes;
    double samples = 300;
    for (std::size_t p = parts.size(); p-- > 0;) {
      std::map<std::int64_t, double> here;
      for (std::uint64_t const i : parts[p].indices()) ++here[labels[i]];
      for (auto const& [label, count] : left) {
        CHECK(std::abs(here[label] - count * 30 / samples) < 1);
      }
      for (auto const& [label, count] : here) left[label] -= count;
      samples -= 30;
    }
  }
}

TEST_CASE("shares that are not those of the set are refused") {
  using frugal::SettingsError;
  Numbers const set{100};
  CHECK_THROWS_AS(frugal::split(set, {0.9, 0.2}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {0.9, 0.05}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {1.0, 0.0}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {1.5, -0.5}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {std::numeric_limits<double>::quiet_NaN(), 0.5}),
                  SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {60, 50}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {60, 30}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {110, -10}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {100, 0}), SettingsError);
  CHECK_THROWS_AS(frugal::split(Numbers{3}, {0.9, 0.1}), SettingsError);
  CHECK_THROWS_AS(frugal::split(Numbers{0}, {0.9, 0.1}), SettingsError);
  CHECK_THROWS_AS(frugal::split(set, {0.9, 0.1}, {.labels = {1, 2, 3}}), SettingsError);
  CHECK_THROWS_AS(frugal::split(Batch{at::ones({5, 2}), at::ones({4})}, {0.5, 0.5}),
                  frugal::ShapeError);
}

}  // namespace frugal_test::data_split
