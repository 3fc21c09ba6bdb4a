// SPDX-License-Identifier: Apache-2.0
// Shared by both sides of the overhead benchmark: the networks, the data, and for the rivals an
// AdamW and the plain loop.
//
// Shapes: B samples, 784 pixels, 10 classes.
#pragma once

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace frugal_bench {

namespace fr = frugal;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("hidden", hidden);
    register_module("head", head);
  }
  at::Tensor forward(at::Tensor const& x) { return head(torch::relu(hidden(x))); }
  torch::nn::Linear hidden{784, 128};
  torch::nn::Linear head{128, 10};
};
TORCH_MODULE(Net);

/// Four layers of one width in a list, for recipes that segment and pack activations.
struct DeepImpl : torch::nn::Module {
  DeepImpl() {
    register_module("first", first);
    for (int i = 0; i < 4; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(128, 128)));
    }
    register_module("head", head);
  }
  // A type rather than a function, so that it is inlined on either side.
  struct Layer {
    at::Tensor operator()(torch::nn::Linear& linear, at::Tensor const& x) const {
      return torch::relu(linear(x));
    }
  };
  at::Tensor forward(at::Tensor const& x) {
    return head(fr::each(layers, torch::relu(first(x)), Layer{}));
  }
  torch::nn::Linear first{784, 128};
  std::vector<torch::nn::Linear> layers;
  torch::nn::Linear head{128, 10};
};
TORCH_MODULE(Deep);

template <class Module = Net>
Module make_net() {
  torch::manual_seed(1);
  return Module();
}

/// Noise: the content of samples does not affect their cost.
inline fr::TensorDataset make_source(std::int64_t batch, std::int64_t samples = 8192) {
  torch::manual_seed(2);
  return fr::TensorDataset(torch::rand({samples, 784}), torch::randint(0, 10, {samples}),
                           {.batch = batch});
}

inline constexpr double learning_rate = 1e-3;

/// The AdamW of all rivals: lists made once, one step counter.
class RivalAdamW {
 public:
  template <class Module>
  explicit RivalAdamW(Module& net) : parameters_(net->parameters()) {
    at::Tensor const counter = torch::zeros({});
    step_ = counter.data_ptr<float>();
    for (at::Tensor const& parameter : parameters_) {
      first_.push_back(torch::zeros_like(parameter));
      second_.push_back(torch::zeros_like(parameter));
      steps_.push_back(counter);
    }
    gradients_.reserve(parameters_.size());
  }

  std::vector<at::Tensor>& collect() {
    gradients_.clear();
    for (at::Tensor const& parameter : parameters_) gradients_.push_back(parameter.grad());
    return gradients_;
  }
  void step(double lr) {
    torch::NoGradGuard const no_gradients;
    *step_ += 1.0F;
    at::_fused_adamw_(parameters_, gradients_, first_, second_, {}, steps_, lr, 0.9, 0.999, 1e-2,
                      1e-8, false, false);
    drop();
  }
  /// Replaces step() when the step is skipped.
  void drop() {
    gradients_.clear();
    for (at::Tensor const& parameter : parameters_) parameter.mutable_grad().reset();
  }

  /// Those of the last collect().
  std::vector<at::Tensor>& gradients() { return gradients_; }
  std::vector<at::Tensor> const& parameters() const { return parameters_; }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_, first_, second_, steps_;
  float* step_;
};

/// The loop of rivals with one micro-batch per step. The arguments are inlined, as if written in
/// place.
///
/// pass(batch)             forward and backward
/// update(optimizer)       from complete gradients to new weights
/// after(step)             after the step; may reduce `steps`
template <class Module, class Pass, class Update, class After>
void rival_loop(Module& net, fr::TensorDataset& source, std::uint64_t const& steps, Pass pass,
                Update update, After after) {
  RivalAdamW optimizer(net);
  net->train();
  std::uint64_t step = 0;
  for (std::uint64_t epoch = 0; step < steps; ++epoch) {
    source.seek({0, epoch, 0});
    while (step < steps) {
      auto batch = source.next();
      if (!batch) break;
      pass(*batch);
      optimizer.collect();
      update(optimizer);
      after(++step);
    }
  }
}

/// Defaults for its parts.
template <class Module>
auto plain_pass(Module& net) {
  return [&net, one = torch::ones({})](fr::Batch const& batch) {
    at::Tensor const loss = at::cross_entropy_loss(net->forward(batch.data), batch.target);
    loss.backward(one);
  };
}
inline constexpr auto plain_update = [](RivalAdamW& optimizer) { optimizer.step(learning_rate); };
inline constexpr auto nothing_after = [](std::uint64_t) {};

/// frugal's side of every recipe that needs no settings.
template <class Trainer, class Module>
void frugal_loop(Module& net, fr::TensorDataset& source, std::uint64_t steps) {
  Trainer trainer(net, {.steps = steps});
  static_cast<void>(trainer.fit(source));
}

}  // namespace frugal_bench
