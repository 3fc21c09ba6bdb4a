// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/tensors/block_norms.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::cluster_block_norms {

using frugal::ParameterParts;
using frugal::Parameters;
using frugal::TensorPart;
using frugal::detail::BlockNorms;

Parameters parameters() {
  Parameters all;
  for (at::Tensor const& each :
       {at::randn({100, 90}), at::randn({7}), at::randn({80, 110}).t(), at::randn({5000})}) {
    all.names.push_back(std::to_string(all.size()));
    all.tensors.push_back(each.detach());
    if (each.dim() == 1 && each.numel() == 7) continue;  // it has no gradient
    all.tensors.back().mutable_grad() = at::randn_like(each);
  }
  return all;
}

TEST_CASE("their norm is that of all gradients") {
  Parameters const all = parameters();
  std::vector<at::Tensor> gradients;
  for (at::Tensor const& each : all.tensors) {
    if (each.grad().defined()) gradients.push_back(each.grad().to(at::kDouble).flatten());
  }
  at::Tensor const norms = BlockNorms::of(all, nullptr);
  CHECK(norms.numel() == 3 + 1 + 3 + 2);
  CHECK(norms[3].item<double>() == 0);
  CHECK(norms.norm().item<double>() ==
        doctest::Approx(at::cat(gradients).norm().item<double>()).epsilon(1e-6));
}

TEST_CASE("parts have the same bits, each in its place") {
  Parameters const all = parameters();
  at::Tensor const whole = BlockNorms::of(all, nullptr);
  at::Tensor sum = at::zeros_like(whole);
  for (std::int64_t cut : {std::int64_t{0}, BlockNorms::block}) {
    ParameterParts parts{.parameters = all, .of = {all.size(), std::nullopt}};
    for (std::size_t i = 0; i < all.size(); ++i) {
      at::Tensor const& each = all.tensors[i];
      std::int64_t const begin = std::min(cut, each.numel());
      std::int64_t const end = cut == 0 ? std::min(BlockNorms::block, each.numel()) : each.numel();
      parts.of[i] = TensorPart::of(each, begin, end - begin, i);
      at::Tensor part =
          frugal::detail::in_memory_order(each).narrow(0, begin, end - begin).detach();
      if (each.grad().defined()) {
        part.mutable_grad() =
            frugal::detail::in_memory_order(each.grad()).narrow(0, begin, end - begin);
      }
      parts.parameters.tensors[i] = part;
    }
    sum += BlockNorms::of(parts.parameters, &parts);
  }
  CHECK(sum.equal(whole));
}

TEST_CASE("squares that FP32 cannot hold, and gradients that are not finite") {
  Parameters all;
  all.names = {"w"};
  all.tensors = {at::zeros({2})};
  all.tensors.front().mutable_grad() = at::full({2}, 3e30);
  CHECK(BlockNorms::of(all, nullptr).item<double>() == doctest::Approx(3e30 * std::sqrt(2.0)));
  all.tensors.front().mutable_grad() = at::full({2}, std::numeric_limits<float>::infinity());
  CHECK(std::isinf(BlockNorms::of(all, nullptr).item<double>()));
}

}  // namespace frugal_test::cluster_block_norms
