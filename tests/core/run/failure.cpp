// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features, C classes.
#include <doctest/doctest.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>

#include <exception>
#include <string>
#include <vector>

#include <frugal/core/run/failure.hpp>

#include "core/loop/stand_ins.hpp"

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

namespace frugal_test::run_forward_failure {

using namespace frugal_test::loop;
using frugal::detail::label_out_of_bounds;

/// What a forward pass over a batch throws, where LibTorch fails in `f`.
template <class E, class F>
std::optional<E> refused(Batch const& batch, torch::nn::Module const& module, F&& f) {
  return thrown_by<E>([&] {
    try {
      f(batch);
    } catch (c10::Error const& error) {
      frugal::detail::refuse_forward(error, batch, Counters{}, frugal::Parameters::of(module));
    }
  });
}

template <class E>
std::optional<E> refused_objective(Batch const& batch) {
  Net net(1, at::kFloat);
  return refused<E>(batch, net, [&](Batch const& each) {
    at::cross_entropy_loss(net.forward(each.data), each.target);
  });
}

TEST_CASE(
    "a label beyond the last class is a LabelError with both numbers and the layer to check") {
  auto const error =
      refused_objective<LabelError>({at::zeros({2, 4}), at::full({2}, 12, at::kLong)});
  REQUIRE(error);
  CHECK(error->fault().what ==
        "label 12 is out of range in a batch with data [2, 4] Float, target [2] Long");
  CHECK(error->fault().where == "epoch 0, step 0, micro-batch 0");
  CHECK(says(error->fault().why, "the module's last parameter, 'second.bias', has 3 rows"));
  CHECK(error->fault().fix ==
        "Give the last layer out_features of 13 or more, or correct the labels.");
}

TEST_CASE("a negative label is a LabelError that does not ask for more classes") {
  auto const error =
      refused_objective<LabelError>({at::zeros({2, 4}), at::full({2}, -3, at::kLong)});
  REQUIRE(error);
  CHECK(says(error->fault().what, "label -3 is out of range"));
  CHECK(says(error->fault().fix, "-100"));
}

TEST_CASE("a layer whose size does not explain the label is not named") {
  Net net(1, at::kFloat);
  auto const error = refused<LabelError>(
      {at::zeros({2, 2}), at::full({2}, 2, at::kLong)}, net,
      [](Batch const& each) { at::cross_entropy_loss(each.data, each.target); });
  REQUIRE(error);
  CHECK(error->fault().why == "labels count from 0 to the number of classes - 1");
}

TEST_CASE("labels that are no int64 are a DtypeError that says to convert them") {
  for (at::ScalarType const type : {at::kFloat, at::kDouble, at::kInt}) {
    auto const error = refused_objective<DtypeError>({at::zeros({2, 4}), at::zeros({2}, type)});
    REQUIRE(error);
    CHECK(says(error->fault().what, std::string("target [2] ") + c10::toString(type)));
    CHECK(says(error->fault().why, "Long"));
    CHECK(says(error->fault().fix, "target.to(torch::kLong)"));
  }
}

TEST_CASE("data of another dtype than the layer is a DtypeError with both dtypes") {
  for (at::ScalarType const type : {at::kByte, at::kDouble, at::kLong}) {
    CAPTURE(c10::toString(type));
    auto const check = [&](std::optional<DtypeError> const& error) {
      REQUIRE(error);
      CHECK(says(error->fault().what, c10::toString(type)));
      CHECK(says(error->fault().why, "the module's parameters are Float"));
      CHECK(says(error->fault().fix, "data.to(torch::kFloat)"));
    };
    check(refused_objective<DtypeError>({at::zeros({2, 4}, type), at::zeros({2}, at::kLong)}));
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(1, 3, 3));
    check(refused<DtypeError>({at::zeros({2, 1, 8, 8}, type), at::zeros({2}, at::kLong)}, *conv,
                              [&](Batch const& each) { conv(each.data); }));
  }
}

TEST_CASE("indices that are no integers are a DtypeError that says to convert them") {
  torch::nn::Embedding table(5, 3);
  auto const error = refused<DtypeError>({at::zeros({2}), at::zeros({2}, at::kLong)}, *table,
                                         [&](Batch const& each) { table(each.data); });
  REQUIRE(error);
  CHECK(says(error->fault().fix, "data.to(torch::kLong)"));
}

TEST_CASE("the label is read from LibTorch's text alone where it is one") {
  CHECK(label_out_of_bounds("Target 12 is out of bounds.") == 12);
  CHECK(label_out_of_bounds("Target -3 is out of bounds.") == -3);
  CHECK_FALSE(label_out_of_bounds("Target size is out of bounds"));
  CHECK_FALSE(label_out_of_bounds("Target 12 is fine"));
  CHECK_FALSE(label_out_of_bounds("index out of range in self"));
}

}  // namespace frugal_test::run_forward_failure
