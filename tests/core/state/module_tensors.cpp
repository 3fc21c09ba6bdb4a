// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/module_tensors.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <torch/nn/modules/batchnorm.h>

#include <string>
#include <vector>

namespace frugal_test::state_module_tensors {

using namespace frugal::detail;
using frugal::StateDict;
using frugal::StateReader;
using frugal::StateWriter;

std::vector<std::string> names_of(torch::nn::Module& module) {
  std::vector<std::string> names;
  visit_tensors(module, [&](std::string const& name, at::Tensor const&) { names.push_back(name); });
  return names;
}

TEST_CASE("an archive sees parameters, then buffers, and no undefined ones") {
  torch::nn::BatchNorm1d norm(2);
  CHECK(names_of(*norm) == std::vector<std::string>{"weight", "bias", "running_mean", "running_var",
                                                    "num_batches_tracked"});
  torch::nn::BatchNorm1d bare(
      torch::nn::BatchNorm1dOptions(2).affine(false).track_running_stats(false));
  CHECK(names_of(*bare).empty());
}

TEST_CASE("generators are saved by name, and continue from their state") {
  at::manual_seed(11);
  StateDict memory;
  StateWriter writer(memory);
  persist_generators(writer, c10::Device(c10::kCPU));
  writer.finish();
  at::Tensor const drawn = at::rand({3});
  StateReader reader(memory);
  persist_generators(reader, c10::Device(c10::kCPU));
  CHECK_FALSE(reader.unread());
  CHECK(at::equal(at::rand({3}), drawn));
}

TEST_CASE("buffers of every type are restored from their copies, any number of times") {
  torch::nn::BatchNorm1d norm(2);
  BufferCopies copies;
  copies.take(*norm);
  for (int k = 0; k < 2; ++k) {
    norm->forward(at::randn({4, 2}));
    CHECK(norm->num_batches_tracked.item<std::int64_t>() == 1);
    copies.restore();
    CHECK(norm->num_batches_tracked.item<std::int64_t>() == 0);
    CHECK(at::equal(norm->running_mean, at::zeros({2})));
  }
}

}  // namespace frugal_test::state_module_tensors
