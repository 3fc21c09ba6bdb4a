// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/cluster/flat_tensors.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::cluster_flat_tensors {

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

}  // namespace frugal_test::cluster_flat_tensors
