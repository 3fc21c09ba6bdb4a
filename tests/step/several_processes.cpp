// SPDX-License-Identifier: Apache-2.0
// needs: step cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/step.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/ranks.hpp"
#include "support/step_packages.hpp"

namespace frugal_test::step_processes {

namespace fr = frugal;
using support::CountedLinear;
using support::FakePackage;

using Weights = std::vector<at::Tensor>;

fr::TensorDataset data() {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({64, 3}, generator);
  return {x, x.sum(1, true) + 1, {.batch = 4}};
}

template <class Module, class Objective, class... Ps>
Weights train(Module module, Objective objective, Ps const&... policies) {
  auto source = data();
  fr::Trainer trainer{module,
                      objective,
                      fr::Settings{.epochs = 2},
                      fr::Optimize<fr::AdamW>{.lr = 0.01},
                      fr::ClipNorm<>{},
                      fr::Accumulate<4>{},
                      policies...};
  static_cast<void>(trainer.fit(source));
  Weights weights;
  for (at::Tensor const& each : module->parameters()) weights.push_back(each.detach().clone());
  for (at::Tensor const& each : module->buffers()) weights.push_back(each.clone());
  return weights;
}

/// The weights of every rank, each a thread.
template <class Policy, class Make>
std::vector<Weights> ranks_of(int size, Make&& make) {
  std::vector<Weights> all;
  std::mutex mutex;
  auto const errors = support::ranks::run(size, [&](auto const& with) {
    auto const [module, objective] = make();
    Weights const weights = train(module, objective, Policy{.with = with});
    std::scoped_lock const lock(mutex);
    all.push_back(weights);
  });
  for (std::string const& error : errors) CHECK(error == "");
  return all;
}

template <class Policy>
void require_same(int size) {
  CAPTURE(size);
  FakePackage const from(
      [](FakePackage::Json& all) {
        // Processes that change a buffer would each have their own.
        all["programs"][0]["outputs"].erase(2);
      },
      "stateless-step.so");
  auto const package = ranks_of<Policy>(size, [&] {
    fr::StepPackage const opened(from.path());
    return std::pair(opened.module(), opened.objective());
  });
  struct Plain : CountedLinear {
    at::Tensor forward(at::Tensor const& x) { return at::linear(x, weight, bias); }
  };
  auto const eager = ranks_of<Policy>(
      size, [] { return std::pair(std::make_shared<Plain>(), fr::MeanSquaredError{}); });
  REQUIRE(package.size() == static_cast<std::size_t>(size));
  REQUIRE(eager.size() == static_cast<std::size_t>(size));
  for (Weights const& each : package) {
    for (std::size_t i = 0; i < each.size(); ++i) CHECK(at::equal(each[i], eager[0][i]));
  }
}

TEST_CASE("processes train a package as they train the module that it stands for, to the bit") {
  for (int size : {1, 2, 4}) {
    require_same<fr::Replicate<fr::Exact>>(size);
    require_same<fr::Replicate<fr::Ring>>(size);
    require_same<fr::Replicate<fr::Ring, fr::Shard<fr::States>>>(size);
    require_same<fr::Replicate<fr::Ring, fr::Shard<fr::States, fr::Grads>>>(size);
  }
}

struct NormedLinear : torch::nn::Module {
  at::Tensor forward(at::Tensor const& x) { return norm(at::linear(x, weight, bias)); }
  at::Tensor weight = register_parameter("weight", torch::full({1, 3}, 0.25));
  at::Tensor bias = register_parameter("bias", torch::zeros({1}));
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(1).affine(false)));
};

TEST_CASE(
    "processes join the statistics of a package's BatchNorm as those of a layer, to the bit") {
  using Json = FakePackage::Json;
  FakePackage const from(
      [](Json& all) {
        Json const one = Json::array({1}), none = Json::array();
        all["buffers"] = {
            {{"name", "norm.running_mean"}, {"type", "float32"}, {"shape", one}, {"stride", one}},
            {{"name", "norm.running_var"}, {"type", "float32"}, {"shape", one}, {"stride", one}},
            {{"name", "norm.num_batches_tracked"},
             {"type", "int64"},
             {"shape", none},
             {"stride", none}}};
        all["statistics"] = Json::array({{{"mean", "norm.running_mean"},
                                          {"variance", "norm.running_var"},
                                          {"tracked", "norm.num_batches_tracked"},
                                          {"momentum", 0.1}}});
        all["programs"][0]["outputs"] = {"value",
                                         "weight",
                                         "buffer:norm.running_mean",
                                         "buffer:norm.running_var",
                                         "buffer:norm.num_batches_tracked",
                                         "gradient:weight",
                                         "gradient:bias"};
      },
      "normed-step.so", *std::make_shared<NormedLinear>());
  for (int size : {1, 2, 4}) {
    CAPTURE(size);
    auto const package = ranks_of<fr::Replicate<fr::Exact>>(size, [&] {
      fr::StepPackage const opened(from.path());
      return std::pair(opened.module(), opened.objective());
    });
    auto const eager = ranks_of<fr::Replicate<fr::Exact>>(
        size, [] { return std::pair(std::make_shared<NormedLinear>(), fr::MeanSquaredError{}); });
    for (Weights const& each : package) {
      REQUIRE(each.size() == 5);
      CHECK(each[4].item<std::int64_t>() == 32);  // micro-batches of two epochs
      CHECK(each[2].item<float>() != 0);
      for (std::size_t i = 0; i < each.size(); ++i) CHECK(at::equal(each[i], eager[0][i]));
    }
  }
}

TEST_CASE("a buffer that each process would have of its own is refused before the first step") {
  FakePackage const package;
  auto const errors = support::ranks::run(2, [&](auto const& with) {
    fr::StepPackage const opened(package.path());
    train(opened.module(), opened.objective(), fr::Replicate<fr::Ring>{.with = with});
  });
  for (std::string const& error : errors) {
    CHECK(error.find("the step changes the buffer 'seen', which is no statistic of BatchNorm") !=
          std::string::npos);
  }
}

}  // namespace frugal_test::step_processes
