// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/qat.hpp>
#include <frugal/model/sensitivity.hpp>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "support/reference.hpp"

namespace frugal_test::model_sensitivity {

using namespace frugal_test::support;
using frugal::INT4;
using frugal::INT8;
using torch::nn::Linear;
using torch::nn::Sequential;

struct Job {
  Sequential net{nullptr};
  at::Tensor input, target;

  Job() {
    torch::manual_seed(40);
    net = Sequential(Linear(64, 64), torch::nn::ReLU(), Linear(64, 64), torch::nn::ReLU(),
                     Linear(64, 64));
    input = torch::randn({64, 64});
    at::NoGradGuard const no_gradients;
    // One weight so large that all others of its row become 0.
    net[2]->as<Linear>()->weight.select(1, 0).mul_(300);
    target = net->forward(input).clone();
  }
  double loss() {
    at::NoGradGuard const no_gradients;
    return at::mse_loss(net->forward(input), target).item<double>();
  }
};

TEST_CASE("the scan names the layer that hurts, with the loss of a module that has it quantised") {
  Job job;
  auto const found = frugal::sensitivity<INT8>(job.net, [&] { return job.loss(); });
  CHECK(found.loss == 0);
  REQUIRE(found.layers.size() == 3);
  CHECK(found.layers.front().layer == "2");
  CHECK(found.layers[0].change >= found.layers[1].change);
  CHECK(found.layers[1].change >= found.layers[2].change);
  CHECK(found.layers.front().change > 2 * found.layers[1].change);
  // Nothing has changed.
  CHECK(job.loss() == 0);
  CHECK(job.net->parameters().size() == 6);
  // Each loss is that of quantise() with this layer alone.
  for (auto const& each : found.layers) {
    Job other;
    frugal::quantise<INT8>(other.net, {.only = frugal::NamePatterns{each.layer}});
    CHECK(other.loss() == doctest::Approx(each.loss).epsilon(1e-6));
  }
  std::ostringstream text;
  text << found;
  CHECK(text.str().find("2: +") != std::string::npos);
}

TEST_CASE("four bits hurt more than eight") {
  Job job;
  auto const loss = [&] { return job.loss(); };
  auto const eight = frugal::sensitivity<INT8>(job.net, loss, {.only = frugal::NamePatterns{"0"}});
  auto const four = frugal::sensitivity<INT4>(job.net, loss, {.only = frugal::NamePatterns{"0"}});
  CHECK(four.layers.at(0).loss > eight.layers.at(0).loss);
}

TEST_CASE("a loss that is no number is the worst") {
  Job job;
  int calls = 0;
  auto const found = frugal::sensitivity<INT8>(job.net, [&] {
    return ++calls == 3 ? std::numeric_limits<double>::quiet_NaN() : job.loss();
  });
  CHECK(found.layers.front().layer == "2");
  CHECK(std::isnan(found.layers.front().change));
}

TEST_CASE("a module that is trained for its quantisation is refused, before anything is measured") {
  Job job;
  frugal::adapt(job.net, frugal::Qat<INT8>{});
  int calls = 0;
  CHECK_THROWS_WITH_AS(frugal::sensitivity<INT8>(job.net, [&] { return calls += 1; }),
                       doctest::Contains("is trained with Qat"), frugal::SettingsError);
  CHECK(calls == 0);
}

}  // namespace frugal_test::model_sensitivity
