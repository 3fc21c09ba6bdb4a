// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/libtorch/saved_tensors.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace frugal_test::libtorch_saved_tensors {

using frugal::detail::saved_tensors;
using frugal::detail::SavedTensors;
using frugal::detail::SavedTensorsScope;

/// Keeps tensors as LibTorch would, and counts them.
struct Counting final : SavedTensors {
  struct Kept final : Hooks {
    explicit Kept(Counting& counting) : owner(counting) {}
    void call_pack_hook(at::Tensor const& tensor) override {
      value = tensor.detach();
      ++owner.packed;
    }
    at::Tensor call_unpack_hook() override {
      ++owner.unpacked;
      return value;
    }
    Counting& owner;
    at::Tensor value;
  };
  std::unique_ptr<Hooks> hooks() override { return std::make_unique<Kept>(*this); }

  int packed = 0;
  int unpacked = 0;
};

TEST_CASE("tensors that operators save inside a scope go through its hooks, and back in backward") {
  at::Tensor const x = at::ones({3}).requires_grad_();
  Counting counting;
  at::Tensor y;
  {
    SavedTensorsScope const scope(&counting);
    y = (x.exp() * x).sum();  // a result, and two factors
  }
  at::Tensor const z = x.exp().sum();
  CHECK(counting.packed == 3);
  y.backward();
  CHECK(counting.unpacked == 3);
  CHECK(at::allclose(x.grad(), 2 * x.exp()));
  z.backward();
  CHECK(counting.unpacked == 3);
}

TEST_CASE("the inner scope is used, and the outer one after it, also after an exception") {
  at::Tensor const x = at::ones({3}).requires_grad_();
  Counting outer;
  Counting inner;
  SavedTensorsScope const scope(&outer);
  try {
    SavedTensorsScope const within(&inner);
    at::Tensor const y = x.exp();
    throw std::runtime_error("out");
  } catch (std::runtime_error const&) {
  }
  at::Tensor const y = x.exp();
  CHECK(inner.packed == 1);
  CHECK(outer.packed == 1);
}

TEST_CASE("other threads are unaffected, and may run the backward pass") {
  at::Tensor const x = at::ones({3}).requires_grad_();
  Counting counting;
  at::Tensor y;
  {
    SavedTensorsScope const scope(&counting);
    y = x.exp().sum();
    std::thread([&] { CHECK(x.exp().sum().requires_grad()); }).join();
  }
  CHECK(counting.packed == 1);
  std::thread([&] { y.backward(); }).join();
  CHECK(counting.unpacked == 1);
  CHECK(saved_tensors == nullptr);
}

struct Foreign final : torch::autograd::Engine {
  static Engine& instance() {
    static Foreign* const engine = new Foreign;
    return *engine;
  }
};

TEST_CASE("another custom engine is not replaced, and the error names it") {
  Counting counting;
  {
    SavedTensorsScope const installs(&counting);
  }
  auto& mine = torch::autograd::Engine::get_default_engine();
  torch::autograd::set_default_engine_stub(&Foreign::instance);
  CHECK_THROWS_WITH_AS(static_cast<void>(SavedTensorsScope{&counting}),
                       doctest::Contains("`import torch` in Python"), frugal::SettingsError);
  CHECK(&torch::autograd::Engine::get_default_engine() == &Foreign::instance());
  CHECK(saved_tensors == nullptr);
  static auto& back = mine;
  torch::autograd::set_default_engine_stub(+[]() -> torch::autograd::Engine& { return back; });
}

}  // namespace frugal_test::libtorch_saved_tensors
