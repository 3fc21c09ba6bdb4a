// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, T positions, K labels.
// What labels on a device weigh in a BinaryCrossEntropy: counted without a host sync, where the
// host can know their number.
#include <doctest/doctest.h>

#include <torch/nn/module.h>

#include <frugal/core/run/binary_cross_entropy.hpp>
#include <frugal/data/pad.hpp>

#include "support/fake_device.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace frugal_test::device_binary_cross_entropy {

using frugal::BinaryCrossEntropy;
using frugal::Loss;
using Sample = std::pair<at::Tensor, at::Tensor>;

/// Logits of 0, of the target's shape.
struct Zeros : torch::nn::Module {
  explicit Zeros(at::IntArrayRef shape) : zeros(at::zeros(shape).to(fake::device())) {}
  at::Tensor forward(at::Tensor const&) { return zeros; }
  at::Tensor zeros;
};

template <class B>
double weight(B batch, BinaryCrossEntropy const& objective = {}) {
  frugal::batch_to(batch, fake::device());
  Zeros module(batch.target.sizes());
  double const found = *objective(module, batch).weight;
  CHECK(fake::complaints().empty());
  return found;
}
double weight_padded(std::vector<Sample> const& samples, BinaryCrossEntropy const& objective = {}) {
  return weight(frugal::Pad{}(samples), objective);
}

/// Says itself how many labels count.
struct Counted {
  at::Tensor data, target;
  std::int64_t counted() const { return 17; }
  void each_tensor(auto&& f) { f(data, target); }
};

TEST_CASE("a batch's own count is that of int64 labels, and of no others") {
  CHECK(weight(Counted{at::zeros({3}), at::zeros({3}, at::kLong)}) == 17);
  CHECK(weight(Counted{at::zeros({3}), at::zeros({3})}) == 3);
  CHECK(weight(Counted{at::zeros({3}), at::zeros({3}, at::kByte)}) == 3);
}

TEST_CASE("labels of samples, of a padded batch [B, K]") {
  std::vector<Sample> samples{{at::zeros({3}), at::zeros({20})}, {at::zeros({1}), at::ones({20})}};
  CHECK(weight_padded(samples) == 2 * 20);
  // Only the device sees those of -100.
  samples[1].second[0] = -100;
  CHECK(weight_padded(samples) == 2 * 20);
  CHECK(weight_padded(samples, {.counts_on_device = true}) == 2 * 20 - 1);
  // The batch has counted them, as they are int64.
  for (Sample& sample : samples) sample.second = sample.second.to(at::kLong);
  CHECK(weight_padded(samples) == 2 * 20 - 1);
  for (Sample& sample : samples) sample.second = at::full({20}, -100, at::kLong);
  CHECK(weight_padded(samples) == 0);
}

TEST_CASE("labels of positions, of a padded batch [B, T, K]: padding has no weight") {
  std::vector<Sample> samples{{at::zeros({3}), at::zeros({3, 5})},
                              {at::zeros({1}), at::ones({1, 5})}};
  CHECK(weight_padded(samples) == 4 * 5);
  samples[0].second[0][0] = -100;
  CHECK(weight_padded(samples) == 4 * 5);
  CHECK(weight_padded(samples, {.counts_on_device = true}) == 4 * 5 - 1);
  for (Sample& sample : samples) sample.second = sample.second.to(at::kLong);
  CHECK(weight_padded(samples) == 4 * 5 - 1);
}

/// A user's batch with a mask, and nothing on the host that counts it.
struct Masked {
  at::Tensor data, target, mask;
  bool target_padded = true;
  std::int64_t counted() const { return 17; }
  void each_tensor(auto&& f) { f(data, target, mask); }
};

TEST_CASE("a mask that the host has not counted is counted on the device") {
  at::Tensor const mask = at::tensor({1, 0, 1, 1}).view({2, 2}).to(at::kBool);
  CHECK(weight(Masked{at::zeros({2, 2}), at::zeros({2, 2, 5}), mask}) == 3 * 5);
}

}  // namespace frugal_test::device_binary_cross_entropy
