// SPDX-License-Identifier: Apache-2.0
// Recipes "none", "bf16", "full" and "saves", with their hand-written loops.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numbers>
#include <string>
#include <thread>

#include "job.hpp"

namespace frugal_bench {

inline constexpr std::uint64_t warmup = 20;
inline constexpr std::uint64_t log_every = 100;

/// Recipe "none": an optimizer and nothing else.
using NoneTrainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>>;
/// Recipe "bf16": BF16 autocast and four micro-batches per step.
using Bf16Trainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                                fr::Precision<fr::BF16>, fr::Accumulate<4>>;
/// Recipe "full": clipping, a schedule and a log line every 100 steps.
using FullTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::ClipNorm<>,
                fr::Schedule<fr::Warmup<warmup>, fr::Cosine>, fr::Log<fr::Every<log_every>>>;

/// Recipe "saves": the cost of steps between two checkpoints.
using SavesTrainer = fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>,
                                 fr::Checkpoint<fr::Every<1'000'000>, fr::Async>>;

inline void rival_none(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  rival_loop(net, source, steps, plain_pass(net), plain_update, nothing_after);
}

/// Compares a counter in each step, and never saves. An asynchronous save by hand has a thread as
/// well, and glibc takes its locks once a second thread has existed.
inline void rival_saves(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  std::thread([] {}).join();
  rival_loop(net, source, steps, plain_pass(net), plain_update,
             [next_save = std::uint64_t{1'000'000}](std::uint64_t step) {
               if (step >= next_save) std::abort();
             });
}

inline void rival_bf16(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
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

inline void rival_full(Net& net, fr::TensorDataset& source, std::uint64_t steps, char const* path) {
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
        fr::detail::JsonLine line;
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

inline void frugal_saves(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  // The folder is accessed only at the start and at the end.
  auto const folder =
      std::filesystem::temp_directory_path() / ("frugal-bench-" + std::to_string(::getpid()));
  SavesTrainer trainer(net, {.run_dir = folder, .steps = steps});
  static_cast<void>(trainer.fit(source));
  std::filesystem::remove_all(folder);
}

inline void frugal_full(Net& net, fr::TensorDataset& source, std::uint64_t steps,
                        char const* path) {
  FullTrainer trainer(net, {.steps = steps});
  trainer.policy<fr::kinds::log>().path = path;
  static_cast<void>(trainer.fit(source));
}

}  // namespace frugal_bench
