// SPDX-License-Identifier: Apache-2.0
// Recipes "speed" and "stop", which observe a run, with their hand-written loops.
#pragma once

#include <chrono>
#include <cmath>
#include <limits>

#include "job.hpp"

namespace frugal_bench {

/// Recipe "speed": speed and operations per step, every 50 steps.
using SpeedTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::Throughput<fr::Every<50>>>;
/// The steps between two windows, which the hand-written loop does not have.
using ProfileTrainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                                   fr::Profile<fr::Seconds<3>, fr::Every<1000000>>>;
/// Recipe "stop": a validation every 20 steps, and early stopping.
using StopTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                fr::Validate<fr::Every<20>, fr::Accuracy>, fr::EarlyStop<fr::Patience<100>>>;

/// Counts the operations of the first step and of each step after a measurement, with frugal's
/// counter: LibTorch has none.
inline void rival_speed(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  using Clock = std::chrono::steady_clock;
  at::Tensor const one = torch::ones({});
  fr::FlopCounter counter;
  bool count = true;
  double flops_per_step = 0;
  double flops_per_second = 0;
  std::uint64_t since_step = 0;
  Clock::time_point since;
  auto const pass = [&](fr::Batch const& batch) {
    if (count && counter.open()) counter.count();
    at::Tensor const loss = at::cross_entropy_loss(net->forward(batch.data), batch.target);
    loss.backward(one);
    if (count) counter.pause();
  };
  auto const after = [&](std::uint64_t step) {
    if (count) flops_per_step = static_cast<double>(counter.close());
    count = step % 50 == 0;
    if (!count && since_step != 0) return;
    Clock::time_point const now = Clock::now();
    if (since_step != 0) {
      std::chrono::duration<double> const spent = now - since;
      flops_per_second = flops_per_step * static_cast<double>(step - since_step) / spent.count();
    }
    since = now;
    since_step = step;
  };
  rival_loop(net, source, steps, pass, plain_update, after);
  if (flops_per_second < 0) std::abort();
}

/// Ten batches; numbers in host memory are read directly.
inline void rival_stop(Net& net, fr::TensorDataset& source, fr::TensorDataset& valid,
                       std::uint64_t steps) {
  struct Validation {
    double loss, accuracy;
  };
  std::vector<Validation> history;
  double best = std::numeric_limits<double>::infinity();
  int since = 0;
  std::uint64_t end = steps;
  auto const after = [&](std::uint64_t step) {
    if (step % 20 != 0) return;
    torch::NoGradGuard const no_gradients;
    net->eval();
    valid.seek({0, 0, 0});
    double loss_sum = 0;
    double right = 0;
    double samples = 0;
    while (auto batch = valid.next()) {
      at::Tensor const logits = net->forward(batch->data);
      at::Tensor const loss = at::cross_entropy_loss(logits, batch->target);
      auto const n = static_cast<double>(batch->data.size(0));
      loss_sum += *loss.data_ptr<float>() * n;
      // As Accuracy does: a NaN is a wrong prediction, and a label of -100 is none.
      auto const [largest, predicted] = logits.max(1);
      auto const* const score = largest.data_ptr<float>();
      auto const* const label = batch->target.data_ptr<std::int64_t>();
      bool has_nan = false;
      for (std::int64_t i = 0; i < largest.numel(); ++i) {
        has_nan = has_nan || std::isnan(score[i]);
        samples += label[i] != -100 ? 1 : 0;
      }
      if (has_nan) std::abort();
      right += static_cast<double>(*predicted.eq(batch->target).sum().data_ptr<std::int64_t>());
    }
    net->train();
    history.push_back({loss_sum / samples, right / samples});
    bool const better = history.back().loss < best;
    if (better) best = history.back().loss;
    since = better ? 0 : since + 1;
    if (since >= 100) end = step;
  };
  rival_loop(net, source, end, plain_pass(net), plain_update, after);
}

inline void frugal_stop(Net& net, fr::TensorDataset& source, fr::TensorDataset& valid,
                        std::uint64_t steps) {
  StopTrainer trainer(net, {.steps = steps});
  static_cast<void>(trainer.fit(source, valid));
}

}  // namespace frugal_bench
