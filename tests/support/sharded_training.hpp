// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "notice.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

/// Runs of one rank whose weights, losses and metrics are the same in bits, however Replicate divides them.
namespace frugal_test::support::sharded_training {

namespace fr = frugal;

/// A window without finite gradients, then one in which a layer has none: nothing of the first must be
/// left in its part.
struct OddImpl : torch::nn::Module {
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(8, 8))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(8, 3))};
  int micro_batches = 0;
  int window = 1;  ///< micro-batches of this process in a window
  torch::Tensor forward(torch::Tensor const& x) {
    int const now = micro_batches++ / window;
    torch::Tensor hidden = now == 2 ? x : odd(x);
    // Infinite gradients of a finite loss.
    if (now == 1) hidden = hidden + (hidden * 0).sqrt() * 0;
    return out(hidden);
  }
};
TORCH_MODULE(Odd);

template <class Replicate>
std::string train_odd(Replicate const& replicate) {
  torch::manual_seed(3);
  Odd net;
  net->window = 4 / fr::World::from_environment().size;
  fr::TensorDataset train(torch::randn({4 * 4 * 4, 8}), torch::randint(0, 3, {4 * 4 * 4}),
                          {.batch = 4, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 1},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<4>{},
                      fr::SkipNonFinite{},
                      replicate};
  fr::Report const report = trainer.fit(train);
  return std::to_string(report.steps) + " steps, " + std::to_string(report.non_finite_windows) +
         " skipped, " + fr::module_identity(*net);
}

/// Parameters of many sizes: one that several processes share, small ones, one whose memory is in
/// another order, and one that some micro-batches leave out.
struct NetImpl : torch::nn::Module {
  torch::nn::Embedding words{register_module("words", torch::nn::Embedding(500, 48))};
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 32, 3).padding(1)))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({32})))};
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(32, 32))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 5))};
  torch::nn::Dropout drop{register_module("drop", torch::nn::Dropout(0.2))};

  NetImpl() {
    conv->weight.set_data(conv->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
  }
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor const pixels = words(x).view({-1, 8, 6, 4});
    torch::Tensor hidden = norm(drop(conv(pixels)).mean({2, 3})).relu();
    if (x.sum().item<std::int64_t>() % 2 == 0) hidden = hidden + odd(hidden).relu();
    return out(hidden);
  }
};
TORCH_MODULE(Net);

struct Data {
  at::Tensor x, y;
};
inline Data data() {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  return {at::randint(0, 500, {3 * 32 + 18, 4}, generator),
          at::randint(0, 5, {3 * 32 + 18}, generator)};
}

/// Elements of all moments that this process has.
struct CountMoments {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.CountMoments";
    static constexpr fr::Stage stage = fr::Stage::leave;
  };
  using listens = fr::list<fr::on::step>;
  using properties = fr::list<fr::property::knows_ranks, fr::property::reads_no_weights>;
  std::int64_t* count = nullptr;

  struct State {
    using transient = void;
    explicit State(CountMoments const& settings) : count(settings.count) {}
    void on_step(fr::Step& phase) {
      if (count == nullptr) return;
      fr::ParameterParts const* const parts = phase.parts();
      *count = 0;
      fr::Parameters const& held = parts == nullptr ? phase.parameters() : parts->parameters;
      for (at::Tensor const& each : held.tensors) *count += each.numel();
    }
    std::int64_t* count;
  };
};

template <class Replicate, class... Policies>
std::string train(Replicate const& replicate, std::string const& folder,
                  Policies const&... policies) {
  torch::manual_seed(3);
  Net net;
  Data const all = data();
  std::int64_t moments = 0;
  at::Tensor const before = net->conv->weight;
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::TensorDataset valid(all.x, all.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = 3},
                      fr::Accumulate<8>{},
                      fr::Schedule<fr::Warmup<2>, fr::Cosine>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      CountMoments{.count = &moments},
                      replicate,
                      policies...};
  fr::Report const report = trainer.fit(train, valid);
  if (!net->conv->weight.is_contiguous(at::MemoryFormat::ChannelsLast))
    throw std::runtime_error("another memory format");
  if (!net->conv->weight.is_same(before) || net->conv->weight.storage().nbytes() != before.nbytes())
    throw std::runtime_error("the memory is still that of all parameters");
  if (std::getenv("FRUGAL_TEST_COUNT") != nullptr) return std::to_string(moments);
  char numbers[256];
  std::snprintf(numbers, sizeof numbers, "exit %d, %lu steps, loss %a, ", report.exit_code(),
                static_cast<unsigned long>(report.steps), report.train_loss);
  std::string text = numbers;
  for (auto const& [metric, value] : report.validations.empty() ? fr::Metrics{} : report.last()) {
    std::snprintf(numbers, sizeof numbers, "%s %a, ", metric.c_str(), value);
    text += numbers;
  }
  return text + fr::module_identity(*net);
}

inline fr::Optimize<fr::AdamW> adamw() {
  return {.lr = 1e-2, .groups = {fr::no_decay_for_biases_and_norms()}};
}

/// `averages`: whether recipes may have Average.
template <bool averages = true, class Replicate>
std::string job(std::string_view name, Replicate const& replicate) {
  if (name == "adamw") return train(replicate, "", adamw(), fr::ClipNorm<0.5>{});
  if (name == "bf16") {
    auto const fit = [&](auto const&... more) {
      return train(replicate, "", fr::Optimize<fr::SGD>{.lr = 0.05, .momentum = 0.9},
                   fr::ClipNorm<0.5>{}, fr::Precision<fr::BF16>{}, fr::SkipNonFinite{}, more...);
    };
    if constexpr (averages) {
      return fit(fr::Average<fr::Ema<0.9>>{});
    } else {
      return fit();
    }
  }
  if (name == "fp16")
    return train(replicate, "", fr::Optimize<fr::Adam>{.lr = 1e-2}, fr::ClipValue<0.05>{},
                 fr::Precision<fr::FP16>{});
  if (name == "odd") return train_odd(replicate);
  std::string const folder = std::getenv("FRUGAL_TEST_FOLDER");
  if (name == "timed")  // at times that the first process alone knows
    return train(replicate, folder, adamw(), fr::ClipNorm<0.5>{},
                 fr::Checkpoint<fr::Every<fr::Auto>, fr::Async>{}, Notice::of_environment());
  return train(replicate, folder, adamw(), fr::ClipNorm<0.5>{},
               fr::Checkpoint<fr::Every<3>, fr::KeepBest<fr::WatchLoss>>{},
               Notice::of_environment());
}

}  // namespace frugal_test::support::sharded_training
