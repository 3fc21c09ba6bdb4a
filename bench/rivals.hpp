// SPDX-License-Identifier: Apache-2.0
// The loops that frugal is measured against: what a careful engineer writes by hand for one
// recipe, with everything known in advance and no way to change it. Each does all of its recipe's
// work in the same order: fused AdamW with one shared step counter, cached parameter and gradient
// lists, a backward pass that starts from a ready-made gradient. Nothing is left out to make
// frugal look good, and nothing is put in: they do not look for NaN and count no samples.
//
// Both sides draw their batches from frugal::Resident, so that the loops are compared and not the
// shuffles.
//
// Shapes: B samples, 784 pixels, 10 classes.
#pragma once

#include <frugal/frugal.hpp>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numbers>
#include <string>
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

inline Net make_net() {
  torch::manual_seed(1);
  return Net();
}

/// 8,192 samples of noise: what they show does not change what they cost.
inline fr::Resident make_source(std::int64_t batch) {
  torch::manual_seed(2);
  return fr::Resident(torch::rand({8192, 784}), torch::randint(0, 10, {8192}), {.batch = batch});
}

inline constexpr double learning_rate = 1e-3;
inline constexpr std::uint64_t warmup = 20;
inline constexpr std::uint64_t log_every = 100;

/// Recipe "none": an optimizer and nothing else.
using NoneTrainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>>;
/// Recipe "bf16": BF16 autocast and four micro-batches to a step.
using Bf16Trainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                                fr::Precision<fr::BF16>, fr::Accumulate<4>>;
/// Recipe "full": clipping, a schedule and a log line every 100 steps.
using FullTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::ClipNorm<>,
                fr::Schedule<fr::Warmup<warmup>, fr::Cosine>, fr::Log<fr::Every<log_every>>>;

/// Recipe "saves": what the steps between two checkpoints cost.
using SavesTrainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                                 fr::Checkpoint<fr::Every<1'000'000>, fr::Async>>;

/// The AdamW that all rivals share: lists made once, one step counter.
class RivalAdamW {
 public:
  explicit RivalAdamW(Net& net) : parameters_(net->parameters()) {
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
    gradients_.clear();
    for (at::Tensor const& parameter : parameters_) parameter.mutable_grad().reset();
  }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_, first_, second_, steps_;
  float* step_;
};

/// With `next_save` below infinity it compares a counter in each step, and never saves.
inline void rival_none(Net& net, fr::Resident& source, std::uint64_t steps,
                       std::uint64_t next_save = fr::Horizon::unlimited) {
  RivalAdamW optimizer(net);
  at::Tensor const one = torch::ones({});
  net->train();
  std::uint64_t step = 0;
  for (std::uint64_t epoch = 0; step < steps; ++epoch) {
    source.seek({0, epoch, 0});
    while (step < steps) {
      auto batch = source.next();
      if (!batch) break;
      at::Tensor const loss = at::cross_entropy_loss(net->forward(batch->data), batch->target);
      loss.backward(one);
      optimizer.collect();
      optimizer.step(learning_rate);
      if (++step >= next_save) std::abort();
    }
  }
}

inline void rival_bf16(Net& net, fr::Resident& source, std::uint64_t steps) {
  RivalAdamW optimizer(net);
  at::Tensor const quarter = torch::full({}, 0.25);
  net->train();
  std::uint64_t step = 0;
  for (std::uint64_t epoch = 0; step < steps; ++epoch) {
    source.seek({0, epoch, 0});
    bool more = true;
    while (more && step < steps) {
      int micro_batches = 0;
      for (; micro_batches < 4; ++micro_batches) {
        auto batch = source.next();
        if (!batch) {
          more = false;
          break;
        }
        at::autocast::set_autocast_enabled(at::kCPU, true);
        at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
        at::autocast::increment_nesting();
        at::Tensor const loss = at::cross_entropy_loss(net->forward(batch->data), batch->target);
        if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(at::kCPU, false);
        loss.backward(quarter);
      }
      if (micro_batches == 0) break;
      auto& gradients = optimizer.collect();
      if (micro_batches < 4) {
        torch::NoGradGuard const no_gradients;
        at::_foreach_mul_(gradients, 4.0 / micro_batches);
      }
      optimizer.step(learning_rate);
      ++step;
    }
  }
}

inline void rival_full(Net& net, fr::Resident& source, std::uint64_t steps, char const* path) {
  RivalAdamW optimizer(net);
  at::Tensor const one = torch::ones({});
  auto const start = std::chrono::steady_clock::now();
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::fopen(path, "w"), std::fclose);
  net->train();
  std::uint64_t const total = std::min<std::uint64_t>(steps, source.batches());
  auto const factor = [&](std::uint64_t t) {
    if (t < warmup) return static_cast<double>(t + 1) / static_cast<double>(warmup);
    double const done = static_cast<double>(t - warmup) / static_cast<double>(total - warmup);
    return (1 + std::cos(std::numbers::pi * std::min(done, 1.0))) / 2;
  };
  std::uint64_t step = 0;
  for (std::uint64_t epoch = 0; step < steps; ++epoch) {
    source.seek({0, epoch, 0});
    while (step < steps) {
      auto batch = source.next();
      if (!batch) break;
      at::Tensor const loss = at::cross_entropy_loss(net->forward(batch->data), batch->target);
      loss.backward(one);
      auto& gradients = optimizer.collect();
      {
        double squares = 0;
        for (at::Tensor const& norm : at::_foreach_norm(gradients, 2)) {
          double const value = *norm.data_ptr<float>();
          squares += value * value;
        }
        double const clip = 1.0 / (std::sqrt(squares) + 1e-6);
        torch::NoGradGuard const no_gradients;
        if (!(clip >= 1)) at::_foreach_mul_(gradients, clip);
      }
      double const now = factor(step);
      optimizer.step(learning_rate * now);
      ++step;
      if (step % log_every == 0) {
        std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
        fr::watch::JsonLine line;
        line.add("event", "step").add("step", step).add("epoch", epoch);
        line.add("samples", step * static_cast<std::uint64_t>(batch->data.size(0)));
        line.add("seconds", spent.count()).add("loss", *loss.data_ptr<float>());
        line.add("lr_factor", now);
        std::string const text = std::move(line).str();
        std::fwrite(text.data(), 1, text.size(), log.get());
        std::fflush(log.get());
      }
    }
  }
}

/// One run of a recipe ("none", "bf16", "full", "saves") by frugal or by its rival.
inline void run(std::string const& recipe, bool by_frugal, std::uint64_t steps,
                fr::Resident& source, std::string const& log) {
  Net net = make_net();
  fr::Settings const settings{.steps = steps};
  if (recipe == "none") {
    if (!by_frugal) return rival_none(net, source, steps);
    NoneTrainer trainer(net, settings);
    trainer.fit(source);
  } else if (recipe == "saves") {
    if (!by_frugal) return rival_none(net, source, steps, 1'000'000);
    // The folder's only file system calls are those of the start and of the end.
    auto const folder =
        std::filesystem::temp_directory_path() / ("frugal-bench-" + std::to_string(::getpid()));
    SavesTrainer trainer(net, {.run = folder, .steps = steps});
    trainer.fit(source);
    std::filesystem::remove_all(folder);
  } else if (recipe == "bf16") {
    if (!by_frugal) return rival_bf16(net, source, steps);
    Bf16Trainer trainer(net, settings);
    trainer.fit(source);
  } else {
    if (!by_frugal) return rival_full(net, source, steps, log.c_str());
    FullTrainer trainer(net, settings);
    trainer.policy<fr::kinds::log>().path = log;
    trainer.fit(source);
  }
}

}  // namespace frugal_bench
