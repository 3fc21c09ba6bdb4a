// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features, C classes.
#include <doctest/doctest.h>

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <frugal/core/run/failure.hpp>

#include "core/loop/stand_ins.hpp"

#include <exception>
#include <string>
#include <vector>

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
