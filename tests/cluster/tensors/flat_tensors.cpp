// SPDX-License-Identifier: Apache-2.0
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/tensors/flat_tensors.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal_test::cluster_flat_tensors {

using frugal::FlatLayout;
using frugal::FlatTensors;

TEST_CASE("views have the shapes and strides of what they stand for") {
  std::vector<at::Tensor> const like{
      at::randn({3, 5}), at::randn({}), at::randn({5, 3}).t(),
      at::randn({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast), at::randn({0})};
  for (std::int64_t parts : {1, 3, 8}) {
    FlatTensors flat(like, parts);
    CHECK(flat.flat().numel() % parts == 0);
    CHECK(flat.flat().count_nonzero().item<std::int64_t>() == 0);
    flat.copy_from(like);
    for (std::size_t i = 0; i < like.size(); ++i) {
      CHECK(flat.views()[i].equal(like[i]));
      CHECK(flat.views()[i].strides() == like[i].strides());
      CHECK(flat.views()[i].is_alias_of(flat.flat()));
    }
    // Nothing overlaps: together they have all that the flat one has.
    double sum = 0;
    for (at::Tensor const& each : like) sum += each.to(at::kDouble).abs().sum().item<double>();
    CHECK(flat.flat().to(at::kDouble).abs().sum().item<double>() == doctest::Approx(sum));
  }
}

TEST_CASE("parts of equal length, cut at blocks of each tensor's own elements") {
  // A GPT of 10 million parameters: embeddings, and six layers of width 384 with their biases.
  std::vector<at::Tensor> like{at::empty({256, 384}), at::empty({256, 384})};
  for (int layer = 0; layer < 6; ++layer) {
    for (std::int64_t rows : {1152, 384, 1536, 1536}) {
      like.push_back(at::empty({rows, 384}));
      like.push_back(at::empty({rows}));
    }
    like.push_back(at::empty({384}));
  }
  std::int64_t all = 0;
  for (at::Tensor const& each : like) all += each.numel();
  constexpr std::int64_t block = 4096;
  for (std::int64_t parts : {1, 2, 8}) {
    CAPTURE(parts);
    FlatTensors const flat(like, parts, block);
    std::int64_t largest = 0;
    std::vector<std::int64_t> reached(like.size(), 0);
    for (std::int64_t part = 0; part < parts; ++part) {
      std::int64_t held = 0;
      for (std::size_t i = 0; i < like.size(); ++i) {
        FlatLayout::Range const range = flat.layout().range(i, part);
        CHECK(range.first == reached[i]);
        CHECK((range.first % block == 0 || range.count == 0));
        reached[i] = range.first + range.count;
        held += range.count;
      }
      largest = std::max(largest, held);
    }
    for (std::size_t i = 0; i < like.size(); ++i) CHECK(reached[i] == like[i].numel());
    CHECK(static_cast<double>(largest) <=
          1.01 * static_cast<double>(all) / static_cast<double>(parts));
  }
}

TEST_CASE("the slice of a part has the elements of the tensor") {
  std::vector<at::Tensor> const like{at::randn({100}), at::randn({70, 80}).t(), at::randn({64})};
  FlatTensors flat(like, 3, 1024);
  flat.copy_from(like);
  std::vector<std::vector<at::Tensor>> slices(like.size());
  for (std::int64_t part = 0; part < 3; ++part) {
    for (std::size_t i = 0; i < like.size(); ++i) {
      slices[i].push_back(flat.layout().slice(i, part, flat.part(part)));
    }
  }
  for (std::size_t i = 0; i < like.size(); ++i) {
    CHECK(at::cat(slices[i]).equal(like[i].as_strided({like[i].numel()}, {1})));
  }
}

}  // namespace frugal_test::cluster_flat_tensors
