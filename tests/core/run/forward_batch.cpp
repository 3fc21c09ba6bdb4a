// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/data/fields_batch.hpp>

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <memory>

namespace frugal_test::run_forward_batch {

using frugal::FieldsBatch;

/// Adds a field to its input.
struct Adds : torch::nn::Module {
  at::Tensor forward(at::Tensor const& x) const { return x; }
  at::Tensor forward_batch(FieldsBatch const& batch) const {
    return forward(batch.data) + batch.field("bias");
  }
};

FieldsBatch batch() {
  return {.data = at::ones({2, 3}), .target = {}, .fields = {{"bias", at::full({2, 3}, 2.0)}}};
}

TEST_CASE("a module that reads batches gets the whole batch, others its data") {
  Adds module;
  CHECK(frugal::forward_batch(module, batch()).equal(at::full({2, 3}, 3.0)));
  auto held = std::make_shared<Adds>();
  CHECK(frugal::forward_batch(held, batch()).equal(at::full({2, 3}, 3.0)));
  // It reads no such batch.
  CHECK(frugal::forward_batch(module, at::ones({2})).equal(at::ones({2})));
}

TEST_CASE("modules whose forward takes anything get the data") {
  torch::nn::Sequential layers(torch::nn::Identity{});
  CHECK(frugal::forward_batch(layers, batch()).equal(at::ones({2, 3})));
}

}  // namespace frugal_test::run_forward_batch
