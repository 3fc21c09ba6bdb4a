// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/models/vit.hpp>

#include <cmath>

#include "models.hpp"

namespace frugal_test::models_vit {

using namespace frugal_test::models;
using namespace frugal_test::support;
using frugal::models::ViT;
using frugal::models::ViTOptions;

constexpr ViTOptions tiny{.image = 16,
                          .patch = 8,
                          .layers = 2,
                          .heads = 2,
                          .width = 16,
                          .intermediate = 24,
                          .classes = 5};

TEST_CASE("a vision transformer has the outputs and gradients of torchvision's") {
  Json const file = reference("models.json");
  Json const& of = file.at("vit");
  ViT net(tiny);
  fill(*net, of.at("state"), 72);
  at::Tensor const output = net(table({3, 3, 16, 16}, 73, 0));
  CHECK(farthest(output, of.at("logits")) < 1e-5);
  CHECK(farthest_gradient(*net, of.at("state"), output, of.at("gradients")) < 1e-5);
}

TEST_CASE("the published vision transformer has torchvision's names and first weights") {
  torch::manual_seed(1);
  ViT const net;
  check_real(*net, "vit_b_16");
  auto const deviation = [](at::Tensor const& of) { return of.std().item<double>(); };
  CHECK(deviation(net->conv_proj->weight) == doctest::Approx(std::sqrt(1.0 / 768)).epsilon(0.01));
  CHECK(deviation(net->encoder->pos_embedding) == doctest::Approx(0.02).epsilon(0.02));
  auto const& layer = net->encoder->layers->at<frugal::models::ViTLayerImpl>(0);
  CHECK(deviation(layer.self_attention->in_proj_weight) ==
        doctest::Approx(std::sqrt(2.0 / (4 * 768))).epsilon(0.01));
  CHECK(deviation(layer.mlp->up->bias) == doctest::Approx(1e-6).epsilon(0.1));
  CHECK(net->heads->parameters().front().abs().max().item<double>() == 0);
}

TEST_CASE("a vision transformer drops out in training alone, and refuses other sizes") {
  ViTOptions options = tiny;
  options.dropout = options.attention_dropout = 0.5;
  ViT net(options);
  at::NoGradGuard const no_gradients;
  net->heads->parameters().front().normal_();
  at::Tensor const images = table({2, 3, 16, 16}, 1, 1);
  CHECK_FALSE(at::equal(net(images), net(images)));
  net->eval();
  CHECK(at::equal(net(images), net(images)));
  CHECK_THROWS_AS(net(at::zeros({2, 3, 24, 16})), frugal::ShapeError);
  CHECK_THROWS_AS(net(at::zeros({2, 1, 16, 16})), frugal::ShapeError);
  CHECK_THROWS_AS(ViT(ViTOptions{.image = 20}), frugal::SettingsError);
  CHECK_THROWS_AS(ViT(ViTOptions{.heads = 7}), frugal::SettingsError);
}

}  // namespace frugal_test::models_vit
