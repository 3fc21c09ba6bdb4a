// SPDX-License-Identifier: Apache-2.0
// The terms against PyTorch's, of tests/reference/distill.json.
#include <doctest/doctest.h>

#include <frugal/model/distill/objective.hpp>

#include "support/reference.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>

#include <string>
#include <thread>
#include <vector>

namespace frugal_test::model_distill_objective {

using namespace frugal::detail;
using namespace frugal_test::support;

struct Case {
  explicit Case(Json const& which) {
    for (std::size_t i = 0; i < which.at("student").size(); ++i) {
      student.push_back(tensor_in(which.at("student")[i], shape_in(which.at("shapes")[i])));
      student.back().requires_grad_();
      gradients.push_back(tensor_in(which.at("gradients")[i], shape_in(which.at("shapes")[i])));
    }
    for (std::size_t i = 0; i < which.at("teacher").size(); ++i) {
      teacher.push_back(tensor_in(which.at("teacher")[i], shape_in(which.at("teacher_shapes")[i])));
    }
    if (!which.at("projection").empty()) {
      projection = tensor_in(which.at("projection"), shape_in(which.at("projection_shape")));
    }
    if (!which.at("mask").empty()) {
      mask = tensor_in(which.at("mask"), shape_in(which.at("mask_shape")), at::kBool);
    }
  }
  std::vector<at::Tensor> student, teacher, gradients;
  at::Tensor projection, mask;
};

at::Tensor value_of(Json const& which, Case const& c) {
  std::string const term = which.at("term");
  if (term == "hidden" || term == "hidden_channels") {
    return hidden_term(c.student[0], c.teacher[0], c.projection, term == "hidden_channels", c.mask,
                       "test");
  }
  if (term == "spatial_attention") {
    return spatial_attention_term(c.student[0], c.teacher[0], "test");
  }
  auto const map = [&](std::vector<at::Tensor> const& of) {
    return attention_map(of[0], of[1], which.at("heads"), which.at("causal"), c.mask);
  };
  return self_attention_term(map(c.student), map(c.teacher), c.mask);
}

TEST_CASE("terms of layers are PyTorch's, and so are their gradients") {
  Json const file = reference("distill.json");
  int cases = 0;
  for (Json const& which : file.at("terms")) {
    CAPTURE(which.at("name").get<std::string>());
    Case const c(which);
    at::Tensor const value = value_of(which, c);
    value.backward();
    CHECK(value.item<double>() == doctest::Approx(which.at("value").get<double>()).epsilon(1e-6));
    for (std::size_t i = 0; i < c.student.size(); ++i) {
      CHECK(distance(c.student[i].grad(), c.gradients[i]) < 1e-6);
    }
    ++cases;
  }
  CHECK(cases == 8);
}

TEST_CASE("a mask without a position gives 0, and no NaN in gradients") {
  at::Tensor const student = table({2, 3, 4}, 1, 1).requires_grad_();
  at::Tensor const none = at::zeros({2, 3}, at::kBool);
  hidden_term(student, table({2, 3, 4}, 1, 2), {}, false, none, "test").backward();
  CHECK(student.grad().abs().max().item<float>() == 0);

  at::Tensor const key = table({2, 3, 4}, 1, 3).requires_grad_();
  at::Tensor const map = attention_map(key, key, 2, true, none);
  self_attention_term(map, map.detach(), none).backward();
  CHECK(key.grad().abs().max().item<float>() == 0);
}

TEST_CASE("the term of K + 1 outcomes is at most that of all, and the same for K = C - 1") {
  at::Tensor const student = table({6, 5}, 2, 1) * 3, teacher = table({6, 5}, 2, 2) * 3;
  at::Tensor const log = at::log_softmax(student / 4, 1);
  at::Tensor const all = divergence(log, teacher, 4);
  at::Tensor const log_teacher = at::log_softmax(teacher / 4, 1);
  double before = 0;
  for (std::int64_t k = 1; k <= 4; ++k) {
    auto const [values, classes] = log_teacher.topk(k, 1);
    at::Tensor const others = (1 - values.exp().sum(1, true)).log();
    at::Tensor const some = divergence_of_top(log, at::cat({values, others}, 1), classes);
    CHECK((some <= all + 1e-6).all().item<bool>());
    CHECK(some.sum().item<double>() >= before - 1e-6);
    before = some.sum().item<double>();
    if (k == 4) CHECK(distance(some, all) < 1e-6);
  }
}

TEST_CASE("shapes that do not fit are errors that name both") {
  at::Tensor const a = at::zeros({2, 3}), b = at::zeros({2, 4});
  CHECK_THROWS_WITH_AS(require_logits(a, b), doctest::Contains("[2, 4]"), frugal::ShapeError);
  CHECK_THROWS_AS(require_logits(at::zeros({2, 1}), at::zeros({2, 1})), frugal::ShapeError);
  CHECK_THROWS_AS(require_logits(at::zeros({2}), at::zeros({2})), frugal::ShapeError);
  CHECK_THROWS_WITH_AS(hidden_term(a, b, {}, false, {}, "fc1 and fc2"),
                       doctest::Contains("fc1 and fc2"), frugal::ShapeError);
  CHECK_THROWS_AS(spatial_attention_term(at::zeros({2, 3, 4, 4}), at::zeros({2, 3, 2, 2}), "x"),
                  frugal::ShapeError);
  CHECK_THROWS_AS(squared_error(a, b), frugal::ShapeError);
}

}  // namespace frugal_test::model_distill_objective

namespace frugal_test::model_distill_layer_outputs {

using namespace frugal;
using namespace frugal::detail;

/// Keeps what each layer gives, as it gives it.
struct Net : torch::nn::Module {
  Net() {
    torch::manual_seed(2);
    register_module("embed", embed);
    register_module("linear", linear);
    register_module("norm", norm);
    register_module("conv", conv);
  }
  at::Tensor forward(at::Tensor const& ids) {
    embedded = embed->forward(ids);             // [B, T, 6]
    hidden = linear->forward(embedded);         // [B, T, 8]
    normal = norm->forward(hidden.relu());      // [B, T, 8]
    seen = conv->forward(normal.unsqueeze(1));  // [B, 3, T, 8]
    return seen.mean();
  }
  torch::nn::Embedding embed{10, 6};
  torch::nn::Linear linear{6, 8};
  torch::nn::LayerNorm norm{torch::nn::LayerNormOptions({8})};
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(1, 3, 3).padding(1)};
  at::Tensor embedded, hidden, normal, seen;
};

at::Tensor ids() { return torch::arange(12).remainder(10).view({3, 4}); }

TEST_CASE("layers are seen by name, with their bias, as the module sees them") {
  Net net;
  std::vector<WatchedLayer> const layers{
      watched_layer(net, "embed", "student"), watched_layer(net, "linear", "student"),
      watched_layer(net, "norm", "student"), watched_layer(net, "conv.weight", "student")};
  CHECK(layers[0].width == 6);
  CHECK(layers[1].width == 8);
  CHECK(layers[2].width == 8);
  CHECK(layers[3].width == 3);
  LayerOutputs const outputs(layers);
  net.forward(ids());
  CHECK(outputs.of(0).equal(net.embedded));
  CHECK(outputs.of(1).equal(net.hidden));  // LibTorch adds the bias of 3-D inputs in place
  CHECK(outputs.of(2).equal(net.normal));
  CHECK(outputs.of(3).equal(net.seen));
  outputs.of(1).sum().backward();
  CHECK(net.linear->bias.grad().equal(at::full({8}, 12.0F)));
}

TEST_CASE("afterwards nothing is seen, and the results are the same") {
  Net net;
  at::Tensor const before = net.forward(ids());
  std::vector<WatchedLayer> const layers{watched_layer(net, "linear", "student")};
  at::Tensor during;
  {
    LayerOutputs const outputs(layers);
    during = net.forward(ids());
  }
  CHECK(during.equal(before));
  CHECK_FALSE(Interceptions::all().of(net.linear->weight));
}

TEST_CASE("a layer that is not called once is an error that says how often it was") {
  Net net;
  std::vector<WatchedLayer> const layers{watched_layer(net, "linear", "student")};
  LayerOutputs const none(layers);
  CHECK_THROWS_WITH_AS(none.of(0), doctest::Contains("called 0 times"), ModuleError);
  LayerOutputs const twice(layers);
  net.forward(ids());
  net.forward(ids());
  CHECK_THROWS_WITH_AS(twice.of(0), doctest::Contains("called 2 times"), ModuleError);
}

TEST_CASE("calls of another thread and of a layer with a tied weight are not meant") {
  Net net;
  std::vector<WatchedLayer> const layers{watched_layer(net, "embed", "student")};
  LayerOutputs const outputs(layers);
  std::thread([&] {
    use_interception();
    net.forward(ids());
  }).join();
  net.forward(ids());
  at::linear(at::ones({2, 6}), net.embed->weight);  // an output layer
  CHECK(outputs.of(0).sizes() == at::IntArrayRef{3, 4, 6});
}

TEST_CASE("a name that is no layer is an error with the names of the layers") {
  Net net;
  CHECK_THROWS_WITH_AS(watched_layer(net, "lineer", "student"),
                       doctest::Contains("embed linear norm conv"), SettingsError);
  torch::nn::Sequential plain{torch::nn::ReLU()};
  CHECK_THROWS_WITH_AS(watched_layer(*plain, "0", "teacher"),
                       doctest::Contains("teacher has no layer \"0\""), SettingsError);
}

}  // namespace frugal_test::model_distill_layer_outputs
