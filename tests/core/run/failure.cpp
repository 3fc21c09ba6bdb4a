// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/csrc/autograd/variable.h>
#include <frugal/core/run/failure.hpp>

#include "core/loop/stand_ins.hpp"

#include <exception>
#include <string>

namespace frugal_test::run_failure {

using namespace frugal_test::loop;

Counters somewhere() {
  Counters at;
  at.epoch = 1;
  at.step = 12;
  at.micro_batch = 99;
  return at;
}

// The error that results when LibTorch fails with `f` on the batch.
template <class E, class B, class F>
std::optional<E> refused(B const& batch, F&& f) {
  return thrown_by<E>([&] {
    try {
      f();
    } catch (c10::Error const& error) {
      frugal::detail::refuse_forward(error, batch, somewhere(), {});
    }
  });
}

TEST_CASE("a shape that does not fit is a ShapeError with the batch's shapes and the step") {
  Net net;
  Batch const batch{at::zeros({6, 5}, at::kDouble), at::zeros({6}, at::kLong)};
  auto const error = refused<ShapeError>(batch, [&] { net.forward(batch.data); });
  REQUIRE(error);
  CHECK(error->fault().what ==
        "the forward pass failed on a batch with data [6, 5] Double, target [6] Long");
  CHECK(error->fault().where == "epoch 1, step 12, micro-batch 99");
  CHECK(says(error->fault().why, "6x5"));
  CHECK(says(error->fault().why, "4x8"));
  CHECK(error->fault().why.find('\n') == std::string::npos);
}

TEST_CASE("LibTorch's own error is nested in it") {
  Net net;
  Batch const batch{at::zeros({6, 5}, at::kDouble), at::zeros({6}, at::kLong)};
  auto const error = refused<ShapeError>(batch, [&] { net.forward(batch.data); });
  REQUIRE(error);
  try {
    try {
      net.forward(batch.data);
    } catch (c10::Error const& inner) {
      frugal::detail::refuse_forward(inner, batch, somewhere(), {});
    }
  } catch (Error const& outer) {
    CHECK_THROWS_AS(std::rethrow_if_nested(outer), c10::Error);
  }
}

TEST_CASE("an error that is not about a shape, dtype or label is a ModuleError") {
  Batch const batch{at::zeros({2, 2}), at::zeros({2}, at::kLong)};
  auto const error = refused<ModuleError>(batch, [&] { at::linalg_cholesky(batch.data); });
  REQUIRE(error);
  CHECK(says(error->fault().why, "cholesky"));
  CHECK(says(error->fault().fix, "See LibTorch's message"));
}

TEST_CASE("a backward pass that mixes dtypes is a DtypeError that names both") {
  at::Tensor const output = at::zeros({2, 3}).requires_grad_();
  auto const backward = [&] { at::mse_loss(output, at::zeros({2, 3}, at::kLong)).backward(); };
  // LibTorch 2.15 converts the target itself.
  if (!thrown_by<c10::Error>(backward)) return;
  auto const error = thrown_by<DtypeError>(
      [&] { frugal::detail::guarded("the backward pass", somewhere(), backward); });
  REQUIRE(error);
  CHECK(error->fault().what == "the backward pass failed");
  CHECK(error->fault().where == "epoch 1, step 12, micro-batch 99");
  CHECK(says(error->fault().why, "Long"));
  CHECK(says(error->fault().why, "Float"));
  CHECK(says(error->fault().fix, "target.to(torch::kFloat)"));
}

TEST_CASE("a batch of a user-defined type is described by its samples") {
  at::Tensor const bare = at::zeros({3, 2});
  CHECK(frugal::detail::batch_text(bare) == "[3, 2] Float");
}

TEST_CASE("a loss of shape [1] counts as a number and other shapes are refused with the shape") {
  at::Tensor one = at::ones({1});
  frugal::detail::require_scalar(one, somewhere());
  CHECK(one.dim() == 0);
  at::Tensor many = at::ones({4, 2});
  auto const error =
      thrown_by<ShapeError>([&] { frugal::detail::require_scalar(many, somewhere()); });
  REQUIRE(error);
  CHECK(error->fault().what == "the objective must return one number, and returned [4, 2] Float");
  at::Tensor none;
  auto const undefined =
      thrown_by<ShapeError>([&] { frugal::detail::require_scalar(none, somewhere()); });
  REQUIRE(undefined);
  CHECK(says(undefined->fault().what, "undefined"));
}

}  // namespace frugal_test::run_failure
