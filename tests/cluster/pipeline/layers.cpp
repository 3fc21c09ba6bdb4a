// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: pipeline.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "support/files.hpp"
#include "support/ranks.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace frugal_test::cluster_pipeline_layers {

namespace fr = frugal;
namespace ranks = support::ranks;
using torch::nn::Linear, torch::nn::Sequential, torch::nn::Tanh;

/// Without random numbers: ranks are threads.
template <class Net>
Net filled(Net net, double value = 0.1) {
  at::NoGradGuard const no_gradients;
  for (at::Tensor& each : net->parameters()) each.fill_(value);
  return net;
}

using MakeNet = std::function<Sequential(int rank)>;
Sequential five(int) {
  return filled(Sequential(Linear(4, 4), Tanh(), Linear(4, 4), Tanh(), Linear(4, 3)));
}

auto trainer_of(Sequential net, std::shared_ptr<fr::Communicator> const& with,
                std::vector<int> layers = {}) {
  return fr::Trainer{net, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{.lr = 0.1}, fr::Accumulate<4>{},
                     fr::Pipeline<>{.with = with, .layers = std::move(layers)}};
}
fr::TensorDataset data() {
  return {at::arange(32, at::kFloat).view({8, 4}) / 32,
          at::arange(8) % 3,
          {.batch = 1, .shuffle = false}};
}

/// What the ranks of a world of two say.
std::vector<std::string> texts(MakeNet const& make, std::vector<int> const& layers = {}) {
  return ranks::run(2, [&](std::shared_ptr<fr::Communicator> const& with) {
    auto trainer = trainer_of(make(with->rank()), with, layers);
    auto train = data();
    std::ignore = trainer.fit(train);
  });
}

void check(std::vector<std::string> const& texts, std::string const& part) {
  for (std::string const& text : texts) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("modules that cannot be divided are refused in all processes") {
  check(texts([](int) { return filled(Sequential(Linear(4, 3), Tanh())); }),
        "2 stages, and 1 layers with parameters that are trained");
  check(texts(five, {3, 1}), "Pipeline::layers is {3, 1}");
  check(texts(five, {4, 1, 0}), "there are 2 stages and 5 layers");
  check(texts([](int) {
          Linear const shared(4, 4);
          return filled(Sequential(shared, Tanh(), Linear(4, 4), Tanh(), shared));
        }),
        "two stages share a parameter or buffer");
  check(texts([](int rank) { return filled(five(0), rank); }),
        "ranks train different runs: the module of rank 1 is '6 tensors, hash ");
}

/// Drops a row in its third pass.
struct ShrinkingImpl : torch::nn::Module {
  Linear inner{register_module("inner", Linear(4, 4))};
  int passes = 0;
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor const y = inner(x);
    return ++passes == 3 ? y.repeat({2, 1}) : y;
  }
};
TORCH_MODULE(Shrinking);
struct PairImpl : torch::nn::Module {
  Linear inner{register_module("inner", Linear(4, 4))};
  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor const& x) { return {inner(x), x}; }
};
TORCH_MODULE(Pair);

TEST_CASE("activations that the next stage does not expect are refused, and it learns why") {
  auto const shrinking =
      texts([](int) { return filled(Sequential(Shrinking(), Tanh(), Linear(4, 3))); });
  check(shrinking,
        "an activation between two stages is [2, 4] Float, and was [1, 4] Float for a "
        "batch of the same shape");
  CHECK(shrinking[1].find("rank 0 (") != std::string::npos);
  check(texts([](int) { return filled(Sequential(Pair(), Linear(4, 3))); }),
        "has a layer that returns another thing than a tensor");
}

TEST_CASE("a module with several lists of layers, or none, is refused") {
  struct Net : torch::nn::Module {
    Sequential some{register_module("some", Sequential(Linear(4, 4)))};
    Sequential others{register_module("others", Sequential(Linear(4, 4)))};
  } several;
  CHECK_THROWS_WITH_AS(fr::detail::LayerList::of(several),
                       doctest::Contains("several lists of layers: some, others"), fr::ModuleError);
  CHECK_THROWS_WITH_AS(fr::detail::LayerList::of(*Linear(4, 4)),
                       doctest::Contains("no Sequential and no ModuleList"), fr::ModuleError);
}

/// The weight of a layer of the list is used outside as well.
struct TiedImpl : torch::nn::Module {
  Sequential layers{register_module("layers", Sequential(Linear(4, 4), Tanh(), Linear(4, 4)))};
  torch::Tensor weight{register_parameter("weight", layers->ptr<torch::nn::LinearImpl>(0)->weight)};
  torch::Tensor forward(torch::Tensor const& x) {
    return torch::nn::functional::linear(layers->forward(x), weight);
  }
};
TORCH_MODULE(Tied);

TEST_CASE("a weight of the list that is used outside is refused: other processes have freed it") {
  check(ranks::run(2,
                   [](std::shared_ptr<fr::Communicator> const& with) {
                     fr::Trainer trainer{filled(Tied()), fr::CrossEntropy{},
                                         fr::Optimize<fr::SGD>{.lr = 0.1}, fr::Accumulate<4>{},
                                         fr::Pipeline<>{.with = with}};
                     auto train = data();
                     std::ignore = trainer.fit(train);
                   }),
        "share a parameter or buffer, or a stage and a layer outside of the list");
}

struct WithNormImpl : torch::nn::Module {
  Sequential layers{register_module("layers", five(0))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(3))};
  torch::Tensor forward(torch::Tensor const& x) { return norm(layers->forward(x)); }
};
TORCH_MODULE(WithNorm);

TEST_CASE("BatchNorm outside of the list is refused") {
  check(ranks::run(2,
                   [](std::shared_ptr<fr::Communicator> const& with) {
                     fr::Trainer trainer{filled(WithNorm()), fr::CrossEntropy{},
                                         fr::Optimize<fr::SGD>{.lr = 0.1}, fr::Accumulate<4>{},
                                         fr::Pipeline<>{.with = with}};
                     auto train = data();
                     std::ignore = trainer.fit(train);
                   }),
        "BatchNorm outside of the layers that are divided");
}

TEST_CASE("a divided module: a second fit, an evaluation in all processes, and what it refuses") {
  // The same two fits in one process.
  Sequential alone = five(0);
  std::vector<double> losses;
  {
    auto const one = std::make_shared<fr::Communicator>(nullptr, ranks::place(0, 1));
    auto trainer = trainer_of(alone, one);
    for (int fit = 0; fit < 2; ++fit) {
      auto train = data();
      losses.push_back(trainer.fit(train).train_loss);
    }
    auto valid = data();
    losses.push_back(trainer.evaluate(valid)["loss"]);
  }
  std::vector<Sequential> nets{five(0), five(0)}, whole{filled(five(0), 7), filled(five(0), 7)};
  std::vector<std::vector<double>> found(2);
  std::vector<std::string> refusals(4);
  auto const errors = ranks::run(2, [&](std::shared_ptr<fr::Communicator> const& with) {
    auto const rank = static_cast<std::size_t>(with->rank());
    Sequential& net = nets[rank];
    std::vector<at::Tensor> const all = net->parameters();
    auto trainer = trainer_of(net, with);
    for (int fit = 0; fit < 2; ++fit) {
      auto train = data();
      found[rank].push_back(trainer.fit(train).train_loss);
    }
    auto valid = data();
    found[rank].push_back(trainer.evaluate(valid)["loss"]);
    fr::gather_stages(*net, *whole[rank]);
    // Layers of the other process take no memory, whoever holds them.
    std::int64_t held = 0;
    for (at::Tensor const& each : all) held += each.numel();
    std::int64_t own = 0;
    for (at::Tensor const& each : net->parameters()) own += each.numel();
    if (held != own || own == 0 || own >= 55) refusals[0] = "it holds " + std::to_string(held);
    support::TemporaryFolder const folder;
    CHECK_THROWS_WITH_AS(
        fr::save_weights(*net, folder.path()),
        doctest::Contains("this process has the layers of its own stages alone (save_weights)"),
        fr::ModuleError);
    CHECK_THROWS_AS(fr::export_torchscript(net, at::ones({1, 4})), fr::ModuleError);
    fr::save_weights(*whole[rank], folder.path());
    try {
      std::ignore = net->forward(at::ones({1, 4}));
    } catch (fr::ModuleError const& error) {
      refusals[2 + rank] = error.what();
    }
    try {
      fr::gather_stages(*whole[rank], *net);
    } catch (fr::ModuleError const& error) {
      if (rank == 0) refusals[1] = error.what();
    }
  });
  CHECK(errors == std::vector<std::string>(2));
  for (std::vector<double> const& each : found) CHECK(each == losses);
  for (auto const& item : alone->named_parameters()) {
    CHECK(whole[0]->named_parameters()[item.key()].equal(item.value()));
    CHECK(whole[1]->named_parameters()[item.key()].eq(7).all().item<bool>());
  }
  CHECK(refusals[0].empty());
  CHECK(refusals[1].find("gather_stages gets a module that is whole") != std::string::npos);
  check({refusals[2], refusals[3]}, "called with gradients outside of a step of Pipeline");
}

TEST_CASE("stages are cut so that the largest has as few parameters as possible") {
  using fr::detail::balanced_cuts;
  using Cuts = std::vector<std::size_t>;
  CHECK((balanced_cuts({5, 5, 5, 5}, 2) == Cuts{0, 2, 4}));
  CHECK((balanced_cuts({9, 1, 1, 1}, 2) == Cuts{0, 1, 4}));
  // Layers without parameters are in the stage of those before them.
  CHECK((balanced_cuts({4, 0, 4, 0, 4, 0}, 3) == Cuts{0, 2, 4, 6}));
  CHECK((balanced_cuts({0, 3, 0}, 1) == Cuts{0, 3}));
  CHECK_THROWS_AS(balanced_cuts({4, 0, 0}, 2), fr::ModuleError);
}

}  // namespace frugal_test::cluster_pipeline_layers
