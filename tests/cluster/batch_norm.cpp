// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>

#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::cluster_batch_norm {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;

/// Layers of three kinds of running statistics, one of which is called twice, one that some
/// micro-batches leave out, and one that the forward pass keeps in evaluation mode.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 16))};
  torch::nn::BatchNorm1d twice{register_module("twice", torch::nn::BatchNorm1d(16))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(16, 16))};
  torch::nn::BatchNorm1d mean{register_module(
      "mean", torch::nn::BatchNorm1d(
                  torch::nn::BatchNormOptions(16).momentum(std::nullopt).affine(false)))};
  torch::nn::BatchNorm1d odd{register_module(
      "odd", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(16).momentum(0.3)))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(16, 3))};
  torch::nn::BatchNorm1d frozen{register_module("frozen", torch::nn::BatchNorm1d(16))};
  bool leaves_out = true;
  NetImpl() {
    frozen->running_mean.fill_(0.3);
    frozen->running_var.fill_(2);
  }
  torch::Tensor forward(torch::Tensor const& x) {
    frozen->eval();
    torch::Tensor hidden = twice(frozen(in(x))).relu();
    hidden = mean(twice(middle(hidden)).relu());
    if (!leaves_out || x.sum().item<double>() > 0) hidden = hidden + odd(hidden);
    return out(hidden);
  }
};
TORCH_MODULE(Net);

struct Data {
  at::Tensor x, y;
};
// The last window of an epoch has 5 micro-batches of 8, and the last of these 2 samples.
Data data(std::int64_t samples = 3 * 32 + 18) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({samples, 8}, generator);
  return {x, at::randint(0, 3, {samples}, generator)};
}

template <class... Policies>
Net train(Policies const&... policies) {
  torch::manual_seed(3);
  Net net;
  Data const all = data();
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::TensorDataset valid(all.x, all.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 3},
                      fr::Optimize<fr::SGD>{.lr = 0.05},
                      fr::Accumulate<8>{},
                      fr::Validate<fr::Every<2>>{},
                      policies...};
  static_cast<void>(trainer.fit(train, valid));
  return net;
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  Net const net = train(fr::Replicate<fr::Exact>{});
  rank_processes::answer(fr::module_identity(*net));
}

TEST_CASE("statistics of each micro-batch: the bits of 1, 2, 4 and 8 processes") {
  std::string const one = rank_processes::run("", 1).front();
  for (int size : {2, 4, 8}) {
    for (std::string const& each : rank_processes::run("", size)) CHECK(each == one);
  }
}

void require_close(at::Tensor const& one, at::Tensor const& other, std::string const& what) {
  double const apart =
      (one.detach().to(at::kDouble) - other.detach().to(at::kDouble)).abs().max().item<double>();
  if (!(apart <= 1e-6 * (1 + other.abs().max().item<double>()))) {
    throw std::runtime_error(what + ": " + std::to_string(apart) + " apart");
  }
}

TEST_CASE("they are those of gradient accumulation in one process") {
  Net const one = train(fr::Replicate<fr::Exact>{.with = fr::Communicator::join(fr::World{})});
  Net const other = train();
  for (auto const& each : other->named_buffers()) {
    CAPTURE(each.key());
    at::Tensor const found = one->named_buffers()[each.key()];
    // Weights differ by the order of the gradients' sums.
    CHECK(at::allclose(found.to(at::kDouble), each.value().to(at::kDouble), 1e-4, 1e-5));
  }
  CHECK(one->twice->num_batches_tracked.item<std::int64_t>() == 2 * 3 * 29);
  CHECK(one->frozen->running_mean.eq(0.3F).all().item<bool>());
  for (auto const& each : other->named_parameters()) {
    CAPTURE(each.key());
    CHECK(at::allclose(one->named_parameters()[each.key()], each.value(), 1e-4, 1e-5));
  }
}

/// As a hand-written loop of PyTorch trains the joined batches: micro-batch i of each process.
/// `joined[window][i]`: indices of samples.
using Windows = std::vector<std::vector<std::vector<std::int64_t>>>;
void train_joined(torch::nn::Sequential& net, Data const& all, Windows const& windows, double lr) {
  for (auto const& window : windows) {
    double weight = 0;
    net->zero_grad();
    for (auto const& batch : window) {
      at::Tensor const which = torch::tensor(batch);
      auto const count = static_cast<double>(batch.size());
      (torch::nn::functional::cross_entropy(net->forward(all.x.index_select(0, which)),
                                            all.y.index_select(0, which)) *
       count)
          .backward();
      weight += count;
    }
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : net->parameters()) {
      if (each.grad().defined()) each.sub_(each.grad() / weight * lr);
    }
  }
}

torch::nn::Sequential images_net() {
  torch::manual_seed(7);
  torch::nn::Sequential net(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 2)), torch::nn::BatchNorm2d(4),
      torch::nn::ReLU(), torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 5, 1)),
      torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(5).affine(false).momentum(0.2)),
      torch::nn::Flatten(), torch::nn::Linear(15, 3));
  return net;
}

TEST_CASE("SyncBatchNorm: a hand-written loop over the joined micro-batches") {
  Data all = data(42);
  all.x = all.x.view({-1, 1, 2, 4});
  // Windows of 8 micro-batches of 4; four processes train two each. In the second the second process
  // has one, of 2 samples, and the others but the first none.
  auto const join = [](std::vector<std::pair<int, int>> const& micro_batches) {
    std::vector<std::int64_t> samples;
    for (auto const& [which, count] : micro_batches) {
      for (int i = 0; i < count; ++i) samples.push_back(which * 4 + i);
    }
    return samples;
  };
  Windows const windows{
      {join({{0, 4}, {2, 4}, {4, 4}, {6, 4}}), join({{1, 4}, {3, 4}, {5, 4}, {7, 4}})},
      {join({{8, 4}, {10, 2}}), join({{9, 4}})}};
  torch::nn::Sequential expected = images_net();
  for (int epoch = 0; epoch < 2; ++epoch) train_joined(expected, all, windows, 0.1);

  std::vector<torch::nn::Sequential> nets;
  for (int i = 0; i < 4; ++i) nets.push_back(images_net());
  std::vector<std::string> const errors =
      ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
        torch::nn::Sequential net = nets[static_cast<std::size_t>(with->rank())];
        fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
        fr::Trainer trainer{net,
                            fr::CrossEntropy{},
                            fr::Settings{.epochs = 2},
                            fr::Optimize<fr::SGD>{.lr = 0.1},
                            fr::Accumulate<8>{},
                            fr::Replicate<fr::Ring, fr::SyncBatchNorm>{.with = with}};
        static_cast<void>(trainer.fit(train));
        for (auto const& each : expected->named_parameters()) {
          require_close(net->named_parameters()[each.key()], each.value(), each.key());
        }
        for (auto const& each : expected->named_buffers()) {
          require_close(net->named_buffers()[each.key()], each.value(), each.key());
        }
      });
  for (std::string const& error : errors) CHECK(error == "");
}

TEST_CASE("SyncBatchNorm: processes in different layers are an error in all of them") {
  std::vector<Net> nets;
  for (int i = 0; i < 2; ++i) {
    torch::manual_seed(3);
    nets.emplace_back();
  }
  Data const all = data(32);
  std::vector<std::string> const errors =
      ranks::run(2, [&](std::shared_ptr<fr::Communicator> const& with) {
        Net net = nets[static_cast<std::size_t>(with->rank())];
        fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
        fr::Trainer trainer{net,
                            fr::CrossEntropy{},
                            fr::Settings{.epochs = 1},
                            fr::Optimize<fr::SGD>{.lr = 0.1},
                            fr::Accumulate<8>{},
                            fr::Replicate<fr::Ring, fr::SyncBatchNorm>{.with = with}};
        static_cast<void>(trainer.fit(train));
      });
  for (std::string const& error : errors) {
    CHECK(error.find("processes are in different BatchNorm layers") != std::string::npos);
  }
}

/// The squared gradient of the inputs, as penalties have it.
struct Penalty {
  fr::Loss operator()(torch::nn::Sequential& net, fr::Batch const& batch) const {
    at::Tensor const x = batch.data.detach().requires_grad_();
    at::Tensor const y = net->forward(x);
    auto const slope =
        torch::autograd::grad({y.square().sum()}, {x}, {}, true, /*create_graph=*/true);
    return {.value = slope[0].square().mean()};
  }
};

TEST_CASE("SyncBatchNorm: a gradient of a gradient is refused, and not computed in part") {
  std::vector<torch::nn::Sequential> nets{images_net(), images_net()};
  Data all = data(16);
  all.x = all.x.view({-1, 1, 2, 4});
  std::vector<std::string> const errors =
      ranks::run(2, [&](std::shared_ptr<fr::Communicator> const& with) {
        fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
        fr::Trainer trainer{nets[static_cast<std::size_t>(with->rank())],
                            Penalty{},
                            fr::Settings{.epochs = 1},
                            fr::Optimize<fr::SGD>{.lr = 0.1},
                            fr::Accumulate<2>{},
                            fr::Replicate<fr::Ring, fr::SyncBatchNorm>{.with = with}};
        static_cast<void>(trainer.fit(train));
      });
  for (std::string const& error : errors) {
    CHECK(error.find("a gradient of a gradient of BatchNorm") != std::string::npos);
  }
}

}  // namespace frugal_test::cluster_batch_norm
