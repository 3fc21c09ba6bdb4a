// SPDX-License-Identifier: Apache-2.0
// Saved tensors offloaded to host memory, on a device with delayed copies.
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/policy/activations.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/fake_device.hpp"
#include "support/running.hpp"

namespace frugal_test::device_offload {

using namespace frugal_test::support;
namespace nn = torch::nn;

/// Layers with activations of 512 KiB each, except the last ones with a kilobyte.
template <class... Ps>
std::vector<at::Tensor> train(Ps const&... policies) {
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(6, 1024), nn::Tanh(), nn::Linear(1024, 1024), nn::Tanh(),
                     nn::Linear(1024, 2), nn::Tanh(), nn::Linear(2, 3));
  frugal::Trainer trainer{net, frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 1, .device = fake::device()},
                          frugal::Optimize<frugal::AdamW>{}, policies...};
  frugal::TensorDataset train(samples(512), {.batch = 128});
  static_cast<void>(trainer.fit(train));
  std::vector<at::Tensor> weights;
  for (at::Tensor const& each : net->parameters()) weights.push_back(each.detach().cpu());
  return weights;
}

TEST_CASE(
    "Offload has the bits of a run that keeps everything on the device, and leaks no memory") {
  auto const plain = train();
  std::size_t const before = fake::world().pinned.size();
  fake::log();
  auto const offloaded = train(frugal::Activations<frugal::Offload>{});
  REQUIRE(plain.size() == offloaded.size());
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(at::equal(plain[i], offloaded[i]));
  CHECK(fake::world().pinned.size() == before);
  auto const log = fake::log();
  // Two tanh activations of four steps go there and back; the small one stays.
  CHECK(std::count(log.begin(), log.end(), "copy") == 2 * 4);
  CHECK(fake::complaints().empty());
}

TEST_CASE("backward prefetches the next tensor while it works on one") {
  auto const stream = std::make_shared<frugal::detail::OffloadStream>(fake::device());
  frugal::detail::ToHost const format(stream);
  std::vector<std::shared_ptr<frugal::detail::Offloaded>> kept;
  for (int i = 0; i < 3; ++i) {
    kept.push_back(format.pack(at::full({4}, i, at::kFloat).to(fake::device())));
  }
  at::Tensor const last = format.unpack(kept[2], {});
  CHECK(last.sum().item<double>() == 8);
  CHECK(kept[1]->back.defined());
  CHECK_FALSE(kept[0]->back.defined());
  CHECK(format.unpack(kept[1], {}).sum().item<double>() == 4);
  CHECK(format.unpack(kept[0], {}).sum().item<double>() == 0);
  // A retained graph fetches again.
  CHECK(format.unpack(kept[2], {}).sum().item<double>() == 8);
  kept.clear();
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_offload
