// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/acting.hpp>

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <thread>

namespace frugal_test::libtorch_acting {

using frugal::detail::acting;
using frugal::detail::Acting;

struct Count : frugal::LayerHook {
  Place place() const override { return Place::adapt; }
  at::Tensor call(frugal::LayerCall const& call, frugal::LayerRest const& rest) override {
    ++calls;
    return rest(call);
  }
  int calls = 0;
};

TEST_CASE("the inner owner acts until its scope ends, and then the outer one again") {
  int const outer = 0, inner = 0;
  REQUIRE(acting == nullptr);
  {
    Acting const one(&outer);
    CHECK(acting == &outer);
    {
      Acting const two(&inner);
      CHECK(acting == &inner);
    }
    CHECK(acting == &outer);
  }
  CHECK(acting == nullptr);
}

TEST_CASE("the outer owner acts again after an error") {
  int const owner = 0;
  try {
    Acting const one(&owner);
    throw 1;
  } catch (int) {
    CHECK(acting == nullptr);
  }
}

TEST_CASE("an owner acts in its own thread alone") {
  int const owner = 0;
  Acting const one(&owner);
  void const* there = &owner;
  std::thread([&] { there = acting; }).join();
  CHECK(there == nullptr);
}

TEST_CASE(
    "hooks are called in a thread whose owner acts, although it never asked for interception") {
  torch::nn::Linear linear(4, 3);
  auto const hook = std::make_shared<Count>();
  frugal::intercept(linear->weight, hook);
  at::Tensor const input = torch::ones({2, 4});
  int before = -1, after = -1;
  std::thread([&] {
    linear->forward(input);
    before = hook->calls;
    Acting const one(&before);
    linear->forward(input);
    after = hook->calls;
  }).join();
  frugal::release(linear->weight, *hook);
  CHECK(before == 0);
  CHECK(after == 1);
}

}  // namespace frugal_test::libtorch_acting
