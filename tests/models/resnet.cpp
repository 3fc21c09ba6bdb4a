// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/models/resnet.hpp>

#include <cmath>
#include <cstdint>
#include <string>

#include "models.hpp"

namespace frugal_test::models_resnet {

using namespace frugal_test::models;
using namespace frugal_test::support;
using frugal::models::ResNet;
using frugal::models::ResNetOptions;

TEST_CASE("residual networks have the outputs, statistics and gradients of torchvision's") {
  Json const file = reference("models.json");
  at::Tensor const images = table({4, 3, 48, 48}, 71, 0);
  for (Json const& which : file.at("resnets")) {
    std::string const name = which.at("name");
    CAPTURE(name);
    ResNet net(
        ResNetOptions{.blocks = {1, 1, 1, 1}, .bottleneck = name == "bottleneck", .classes = 5});
    fill(*net, which.at("state"), 70);
    net->eval();
    CHECK(farthest(net(images), which.at("evaluated")) < 1e-5);
    net->train();
    at::Tensor const output = net(images);
    CHECK(farthest(output, which.at("trained")) < 1e-5);
    auto const& last = net->layer4->at<frugal::models::ResNetBlockImpl>(0).bn2;
    CHECK(farthest(last->running_mean.slice(0, 0, 8), which.at("mean")) < 1e-5);
    CHECK(farthest(last->running_var.slice(0, 0, 8), which.at("variance")) < 1e-5);
    CHECK(last->num_batches_tracked.item<std::int64_t>() == 1);
    // In double precision: of what is nearly 0, rounding decides whether a ReLU passes a gradient on.
    fill(*net, which.at("state"), 70);
    net->to(at::kDouble);
    CHECK(farthest_gradient(*net, which.at("state"), net(images.to(at::kDouble)),
                            which.at("gradients")) < 1e-5);
  }
}

TEST_CASE("residual networks of the published sizes have torchvision's names and first weights") {
  check_real(*ResNet(frugal::models::resnet34), "resnet34");
  check_real(*ResNet(frugal::models::resnet50), "resnet50");
  torch::manual_seed(1);
  ResNet const net(frugal::models::resnet18);
  check_real(*net, "resnet18");
  // kaiming_normal_ by outputs: sqrt(2 / (512 * 9)).
  auto const& block = net->layer4->at<frugal::models::ResNetBlockImpl>(1);
  CHECK(block.conv2->weight.std().item<double>() ==
        doctest::Approx(std::sqrt(2.0 / (512 * 9))).epsilon(0.01));
  CHECK(block.bn2->weight.eq(1).all().item<bool>());
  CHECK(net->fc->weight.abs().max().item<double>() < 1 / std::sqrt(512.0));
}

TEST_CASE("a residual network takes other channels, and refuses no blocks") {
  ResNet net(ResNetOptions{.blocks = {1, 1, 1, 1}, .classes = 2, .channels = 1});
  CHECK((net(at::zeros({2, 1, 28, 28})).sizes() == at::IntArrayRef{2, 2}));
  CHECK_THROWS_AS(ResNet(ResNetOptions{.blocks = {1, 0, 1, 1}}), frugal::SettingsError);
}

}  // namespace frugal_test::models_resnet
