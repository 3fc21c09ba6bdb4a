// SPDX-License-Identifier: Apache-2.0
// The fake device itself: it computes the CPU's values, and reports misuse.
#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/fake_device.hpp"
#include "support/running.hpp"

namespace frugal_test::device_fake_device {

using namespace frugal_test::support;

TEST_CASE("the fake device computes what the CPU computes, forward and backward") {
  at::Tensor const x = at::arange(12, at::kFloat).reshape({3, 4});
  at::Tensor const there = x.to(fake::device());
  CHECK(there.device().str() == "fake:0");
  CHECK(there.t().matmul(there).cpu().equal(x.t().matmul(x)));
  CHECK(there.narrow(1, 1, 2).sum().item<float>() == x.narrow(1, 1, 2).sum().item<float>());
  auto const gradient = [](at::Tensor const& of) {
    at::Tensor const leaf = of.detach().clone().requires_grad_(true);
    leaf.pow(3).softmax(1).square().sum().backward();
    return leaf.grad().cpu();
  };
  CHECK(gradient(there).equal(gradient(x)));
  CHECK(fake::complaints().empty());
}

TEST_CASE("a fit on the fake device has the bits of one on the CPU") {
  auto const fit = [](c10::Device device) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
    frugal::Trainer trainer{module, frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 2, .seed = 7, .device = device},
                            frugal::Optimize<frugal::AdamW>{.lr = 1e-2}};
    frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
    static_cast<void>(trainer.fit(train));
    module->to(c10::kCPU);
    return tensors_of(*module);
  };
  CHECK(same_bits(fit(fake::device()), fit(c10::kCPU)));
  CHECK(fake::complaints().empty());
}

TEST_CASE("the fake device refuses operators over two devices") {
  at::Tensor const x = at::ones({3, 3});
  at::Tensor const there = x.to(fake::device());
  CHECK_THROWS_AS(there + x, c10::Error);
  CHECK_THROWS_AS(there.matmul(x), c10::Error);
  CHECK_THROWS_AS(at::_foreach_add_(at::TensorList({there}), at::TensorList({x})), c10::Error);
  fake::complaints();
}

TEST_CASE("the fake device reports a copy without a wait, and memory freed early") {
  c10::impl::VirtualGuardImpl const guard(fake::type);
  at::Tensor const host = at::arange(4, at::TensorOptions(at::kFloat).pinned_memory(true));
  REQUIRE(host.is_pinned());
  c10::Stream const side = guard.getStreamFromGlobalPool(fake::device());
  auto const copied = [&] {
    c10::StreamGuard const on(side);
    return host.to(fake::device(), /*non_blocking=*/true);
  };
  {
    at::Tensor const early = copied();
    CHECK(std::isnan(early.sum().item<float>()));
    CHECK(fake::complaints().find("waited for") != std::string::npos);
  }
  CHECK(fake::complaints().find("the allocator was not told") != std::string::npos);
  {
    at::Tensor const right = copied();
    c10::Event done(fake::type);
    done.record(side);
    done.block(guard.getStream(fake::device()));
    guard.recordDataPtrOnStream(right.storage().data_ptr(), guard.getStream(fake::device()));
    CHECK(right.sum().item<float>() == 6);
  }
  CHECK(fake::complaints().empty());
  {
    at::Tensor brief = host.clone().pin_memory();
    c10::StreamGuard const on(side);
    at::Tensor const there = brief.to(fake::device(), /*non_blocking=*/true);
    brief = at::Tensor();
    CHECK(fake::complaints().find("page-locked memory") != std::string::npos);
  }
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_fake_device
