// SPDX-License-Identifier: Apache-2.0
// The cost of a step of each way to fine-tune, for bench/model.py: a BERT of the size of MiniLM, with random
// weights and tokens.
//
//     model WAY STEPS THREADS [BATCH TOKENS]
//
// WAY is full, lora or nf4. Prints one line of JSON: seconds of each step, peak bytes of tensors, bytes of the
// module's weights, parameters that are trained and all.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "../classifier.hpp"

namespace fr = frugal;
using Clock = std::chrono::steady_clock;

namespace {

struct Setting {
  std::string way;
  std::size_t steps;
  std::int64_t batch = 32, tokens = 64;
};

/// Notes when each step ends.
struct Clocks {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Clocks";
  };
  using listens = fr::list<fr::on::step>;
  std::vector<double>* seconds = nullptr;
  struct State {
    using transient = void;
    explicit State(Clocks const& of) : seconds(of.seconds) {}
    fr::flow on_step(fr::Step&) {
      auto const now = Clock::now();
      seconds->push_back(std::chrono::duration<double>(now - before).count());
      before = now;
      return fr::flow::proceed;
    }
    std::vector<double>* seconds;
    Clock::time_point before = Clock::now();
  };
};

std::int64_t bytes_of(torch::nn::Module const& module) {
  std::int64_t all = 0;
  for (at::Tensor const& each : module.parameters()) {
    all += static_cast<std::int64_t>(std::min(each.nbytes(), each.storage().nbytes()));
  }
  for (at::Tensor const& each : module.buffers()) all += static_cast<std::int64_t>(each.nbytes());
  return all;
}

template <class... Policies>
void measure(Setting const& setting, Policies const&... policies) {
  torch::manual_seed(1);
  fr::detail::HostMeter::install();
  frugal_bench::Classifier net;
  std::int64_t const rows = setting.batch * static_cast<std::int64_t>(setting.steps);
  fr::TensorDataset data(torch::randint(5, 30000, {rows, setting.tokens}),
                         torch::randint(0, 6, {rows}), {.batch = setting.batch, .shuffle = false});
  std::vector<double> seconds;
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.steps = setting.steps},
                      fr::Optimize<fr::AdamW>{},
                      Clocks{&seconds},
                      policies...};
  trainer.adapt();
  fr::detail::HostMeter::forget_peak();
  static_cast<void>(trainer.fit(data));
  std::int64_t trained = 0, all = 0;
  for (at::Tensor const& each : net->parameters()) {
    all += each.numel();
    trained += each.requires_grad() ? each.numel() : 0;
  }
  std::printf(
      "{\"way\": \"%s\", \"peak\": %lld, \"weights\": %lld, \"trained\": %lld, \"all\": %lld, "
      "\"seconds\": [",
      setting.way.c_str(), static_cast<long long>(fr::detail::HostMeter::peak()),
      static_cast<long long>(bytes_of(*net)), static_cast<long long>(trained),
      static_cast<long long>(all));
  for (std::size_t i = 0; i < seconds.size(); ++i)
    std::printf("%s%.6f", i == 0 ? "" : ", ", seconds[i]);
  std::printf("]}\n");
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> const words(arguments + 1, arguments + count);
  try {
    if (words.size() < 3) throw std::invalid_argument("model WAY STEPS THREADS [BATCH TOKENS]");
    at::set_num_threads(std::stoi(words[2]));
    Setting setting{words[0], std::stoul(words[1])};
    if (words.size() > 4) {
      setting.batch = std::stoll(words[3]);
      setting.tokens = std::stoll(words[4]);
    }
    using Layers = fr::On<"query", "value">;
    using Head = fr::AlsoTrain<"head.*">;
    if (setting.way == "full") {
      measure(setting);
    } else if (setting.way == "lora") {
      measure(setting, fr::Lora<fr::Rank<8>, fr::Alpha<32>, Layers, Head>{});
    } else if (setting.way == "lora-all") {
      measure(
          setting,
          fr::Lora<fr::Rank<8>, fr::Alpha<32>,
                   fr::On<"*.layer.*.query", "*.layer.*.key", "*.layer.*.value", "*.layer.*.dense">,
                   Head>{});
    } else if (setting.way == "nf4-all") {
      measure(
          setting,
          fr::Lora<fr::Rank<8>, fr::Alpha<32>,
                   fr::On<"*.layer.*.query", "*.layer.*.key", "*.layer.*.value", "*.layer.*.dense">,
                   Head, fr::Base<fr::NF4>>{});
    } else {
      throw std::invalid_argument("there is no way '" + setting.way + "'");
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
