// SPDX-License-Identifier: Apache-2.0
// The jobs of bench_gpu, its clock, and what trains with frugal. peers_torch.py has the same data, networks and initial
// weights.
//
// Shapes: N samples, B in a batch, T tokens.
#pragma once

#include <frugal/frugal.hpp>

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../transformer.hpp"

namespace frugal_bench {

namespace fr = frugal;
namespace nn = torch::nn;
using nlohmann::json;

inline constexpr int not_run = 77;
inline constexpr double learning_rate = 1e-3;

// ---- jobs ---------------------------------------------------------------------------------------

struct Job {
  nn::Sequential net;
  fr::Batch data;
  std::int64_t batch;
  std::int64_t judged;  ///< samples for the final loss
};

/// Ten noisy prototypes in Fashion-MNIST's shape. A fifth of the labels are random, so that the
/// loss has a floor and runs can be compared by their ratio.
inline fr::Batch images() {
  torch::manual_seed(7);
  std::int64_t const count = 60000;
  at::Tensor const label = at::randint(0, 10, {count}, at::kLong);
  at::Tensor const pixels = at::rand({10, 784}).index_select(0, label);
  at::Tensor const noisy = pixels.add(at::rand({count, 784})).mul_(0.5);
  at::Tensor const random = at::randint(0, 10, {count}, at::kLong);
  return {noisy, at::where(at::rand({count}) < 0.2, random, label)};
}

inline Job mlp() {
  fr::Batch data = images();
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                     nn::Linear(512, 10));
  return {.net = net, .data = std::move(data), .batch = 32, .judged = 4096};
}

inline Job convnet() {
  fr::Batch data = images();
  data.data = data.data.view({-1, 1, 28, 28});
  torch::manual_seed(1);
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1)), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1)),
                     nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(3136, 128), nn::ReLU(),
                     nn::Linear(128, 10));
  return {.net = net, .data = std::move(data), .batch = 128, .judged = 4096};
}

/// Each word follows from the one before, except for a fifth that are random: the loss has a floor,
/// and falls only if training works.
inline at::Tensor sequences(TransformerShape const& shape) {
  torch::manual_seed(7);
  std::int64_t const count = 4096;
  std::vector<at::Tensor> words{at::randint(0, shape.words, {count}, at::kLong)};
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    at::Tensor const noise = at::rand({count}) < 0.2;
    at::Tensor const random = at::randint(0, shape.words, {count}, at::kLong);
    at::Tensor const next = words.back().mul(5).add_(1).remainder_(shape.words);
    words.push_back(at::where(noise, random, next));
  }
  return at::stack(words, 1);
}

inline Job transformer(TransformerShape const& shape) {
  at::Tensor const text = sequences(shape);
  torch::manual_seed(1);
  nn::Sequential const net = make_gpt(shape);
  return {.net = net,
          .data = {text.slice(1, 0, shape.tokens).contiguous(), text.slice(1, 1).contiguous()},
          .batch = shape.batch,
          .judged = 64};
}

inline Job job_named(std::string const& name) {
  if (name == "mlp") return mlp();
  if (name == "convnet") return convnet();
  // 0.4 billion parameters: its products fill a GPU.
  if (name == "large") {
    return transformer(
        {.layers = 8, .batch = 8, .tokens = 512, .channels = 2048, .heads = 16, .words = 4096});
  }
  return transformer(
      {.layers = 6, .batch = 16, .tokens = 128, .channels = 384, .heads = 6, .words = 512});
}

// ---- the clock ----------------------------------------------------------------------------------

inline void wait_for(c10::Device device) {
  if (device.is_cuda()) c10::cuda::device_synchronize();
}

/// Called after each step. After the timed steps it runs short bursts that begin with a
/// synchronise: in them the host never waits for the device, so their median is the host's cost of
/// a step.
class Clock {
 public:
  // One step: in a second one, a copy from pageable memory would wait for the first one's kernels.
  static constexpr std::uint64_t burst = 1, bursts = 100;

  Clock(std::uint64_t warmup, std::uint64_t steps, c10::Device device)
      : warmup_(warmup), steps_(steps), device_(device) {}

  std::uint64_t all_steps() const { return warmup_ + steps_ + burst * bursts; }

  void done(std::uint64_t step) {
    if (step < warmup_) return;
    if (step == warmup_) {
      wait_for(device_);
      begin_ = now();
      return;
    }
    if (step < warmup_ + steps_) return;
    if (step == warmup_ + steps_) {
      host_ = since_begin();
      wait_for(device_);
      wall_ = since_begin();
      begin_ = now();
      return;
    }
    if ((step - warmup_ - steps_) % burst != 0) return;
    launches_.push_back(since_begin() / static_cast<double>(burst));
    wait_for(device_);
    begin_ = now();
  }

  void tell(json& line) const {
    auto const count = static_cast<double>(steps_);
    std::vector<double> sorted = launches_;
    std::sort(sorted.begin(), sorted.end());
    line["steps"] = steps_;
    line["warmup"] = warmup_;
    line["seconds"] = wall_;
    line["seconds_per_step"] = wall_ / count;
    line["host_seconds_per_step"] = host_ / count;
    line["launch_seconds_per_step"] = sorted.empty() ? json() : json(sorted[sorted.size() / 2]);
  }

 private:
  using clock = std::chrono::steady_clock;
  static clock::time_point now() { return clock::now(); }
  double since_begin() const { return std::chrono::duration<double>(now() - begin_).count(); }

  std::uint64_t warmup_, steps_;
  c10::Device device_;
  clock::time_point begin_{};
  double host_ = 0;  // until the host has launched everything
  double wall_ = 0;  // until the device has finished
  std::vector<double> launches_;
};

struct Stopwatch {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Stopwatch";
  };
  using listens = fr::list<fr::on::step>;

  Clock* clock = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Stopwatch const& settings) : clock_(settings.clock) {}
    void on_step(fr::Step& phase) { clock_->done(phase.counters().step); }

   private:
    Clock* clock_;
  };
};

// ---- with frugal --------------------------------------------------------------------------------

/// A counting CudaCapture: a CudaGraph that gave up runs eagerly and would only look slow.
class Counted {
 public:
  class Recording {
   public:
    explicit Recording(fr::CudaCapture::Recording recording) : recording_(std::move(recording)) {}
    void replay() {
      ++replays;
      recording_.replay();
    }

   private:
    fr::CudaCapture::Recording recording_;
  };

  static void require(c10::Device device) { fr::CudaCapture::require(device); }
  void begin(c10::Device device) { inner_.begin(device); }
  void on_side_stream(std::function<void()> const& body) { inner_.on_side_stream(body); }
  Recording capture(std::vector<at::Generator> const& generators,
                    std::function<void()> const& body) {
    Recording recording(inner_.capture(generators, body));
    ++captures;
    return recording;
  }
  void forget() { inner_.forget(); }

  static inline std::uint64_t captures = 0, replays = 0;

 private:
  fr::CudaCapture inner_;
};

template <class Module, class Objective, class... Policies>
json train(Module const& module, Objective objective, fr::TensorDataset& source, Clock& clock,
           c10::Device device, Policies const&... policies) {
  fr::Trainer trainer{module,
                      std::move(objective),
                      fr::Settings{.steps = clock.all_steps(), .device = device},
                      fr::Optimize<fr::AdamW>{.lr = learning_rate},
                      Stopwatch{.clock = &clock},
                      policies...};
  fr::Report const report = trainer.fit(source);
  return {{"captures", Counted::captures},
          {"replays", Counted::replays},
          {"train_loss", report.train_loss},
          {"advice", report.warnings}};
}

/// Trains a job's network as a compiled step, the package in `folder`, and adds its final loss. `how`: as in rounds.cpp.
json train_package(Job const& job, std::string const& folder, std::string const& how,
                   fr::TensorDataset& source, Clock& clock, c10::Device device);

}  // namespace frugal_bench
