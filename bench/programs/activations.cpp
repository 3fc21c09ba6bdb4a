// SPDX-License-Identifier: Apache-2.0
// The memory of a transformer's activations and the time of a step: plain, with Recompute and with
// Activations. Prints one line of JSON per recipe; activations.py runs and evaluates it. Shapes: B
// sequences, T tokens, C channels, H heads, V words.
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "../../tests/support/live_bytes.hpp"
#include "../transformer.hpp"

namespace fr = frugal;
using frugal_test::support::LiveBytes;

namespace {

using Shape = frugal_bench::TransformerShape;
using frugal_bench::Block;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(Shape const& shape)
      : embedding(register_module("embedding", torch::nn::Embedding(shape.words, shape.channels))),
        blocks(register_module("blocks", torch::nn::Sequential())),
        head(register_module("head", torch::nn::Linear(shape.channels, shape.words))) {
    for (std::int64_t i = 0; i < shape.layers; ++i) blocks->push_back(Block(shape));
  }
  at::Tensor forward(at::Tensor const& tokens_BT) {
    return head(blocks->forward(embedding(tokens_BT))).transpose(1, 2);  // [B, V, T]
  }
  torch::nn::Embedding embedding;
  torch::nn::Sequential blocks;
  torch::nn::Linear head;
};
TORCH_MODULE(Net);

/// Reads clock and memory at the beginning of a step, after its loss, and at its end.
struct Meter {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Meter";
  };
  using listens = fr::list<fr::around::forward, fr::on::loss, fr::on::backward>;

  struct Read {
    LiveBytes* live = nullptr;
    std::vector<std::int64_t> held{};  ///< bytes after the forward pass
    std::vector<std::int64_t> peak{};  ///< peak bytes, before gradients of parameters exist
    std::vector<double> seconds{};     ///< of forward and backward, wall time
    std::vector<double> processor{};   ///< the same, summed over all cores
  };
  Read* read = nullptr;

  class State {
    using Clock = std::chrono::steady_clock;

   public:
    using transient = void;
    explicit State(Meter const& meter) : read_(meter.read) {}

    template <class Next>
    fr::Loss around_forward(fr::Forward const&, Next&& next) {
      before_ = read_->live->now();
      read_->live->forget_peak();
      begin_ = Clock::now();
      worked_ = std::clock();
      return next();
    }
    void on_loss(fr::LossReady&) { read_->held.push_back(read_->live->now() - before_); }
    void on_backward(fr::Backward&) {
      std::chrono::duration<double> const spent = Clock::now() - begin_;
      read_->seconds.push_back(spent.count());
      read_->processor.push_back(static_cast<double>(std::clock() - worked_) / CLOCKS_PER_SEC);
      read_->peak.push_back(read_->live->peak() - before_);
    }

   private:
    Read* read_;
    std::int64_t before_ = 0;
    Clock::time_point begin_;
    std::clock_t worked_ = 0;
  };
};

/// Keeps gradients allocated, so that peaks measure activations.
struct KeepGradients {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "KeepGradients";
  };
  using listens = fr::list<fr::around::forward>;
  struct State {
    explicit State(KeepGradients const&) {}
    template <class Next>
    fr::Loss around_forward(fr::Forward const& phase, Next&& next) {
      for (at::Tensor const& parameter : phase.parameters().tensors) {
        if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros_like(parameter);
      }
      return next();
    }
  };
  using before = fr::list<Meter::kind>;
};

template <class... Ps>
void measure(char const* name, Shape const& shape, std::uint64_t steps, Ps const&... policies) {
  torch::manual_seed(1);
  Net net(shape);
  std::vector<fr::Batch> batches;
  for (std::uint64_t i = 0; i < steps + 2; ++i) {
    at::Tensor const words = at::randint(0, shape.words, {shape.batch, shape.tokens + 1});
    batches.push_back({words.slice(1, 0, shape.tokens), words.slice(1, 1).contiguous()});
  }
  LiveBytes live;
  Meter::Read read{.live = &live};
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{},
                      fr::Optimize<fr::SGD>{.lr = 1e-3},
                      KeepGradients{},
                      Meter{.read = &read},
                      policies...};
  auto const report = trainer.fit(batches);
  // The first step is a warm-up, in which Recompute also learns which segment is last.
  auto const later = [](auto const& all) { return decltype(all){all.begin() + 2, all.end()}; };
  std::cout << nlohmann::json{{"recipe", name},
                              {"held", later(read.held)},
                              {"peak", later(read.peak)},
                              {"seconds", later(read.seconds)},
                              {"processor", later(read.processor)},
                              {"loss", report.train_loss}}
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Shape shape;
  std::uint64_t steps = 3;
  std::string only;
  int threads = 0;
  CLI::App app("Measures the memory of activations.");
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--layers", shape.layers)->check(CLI::PositiveNumber);
  app.add_option("--batch", shape.batch)->check(CLI::PositiveNumber);
  app.add_option("--tokens", shape.tokens)->check(CLI::PositiveNumber);
  app.add_option("--channels", shape.channels)->check(CLI::PositiveNumber);
  app.add_option("--only", only, "one recipe");
  app.add_option("--threads", threads, "0: as many as LibTorch takes");
  CLI11_PARSE(app, argc, argv);
  if (threads > 0) at::set_num_threads(threads);
  auto const wanted = [&](char const* name) { return only.empty() || only == name; };
  try {
    if (wanted("plain")) measure("plain", shape, steps);
    if (wanted("auto")) measure("auto", shape, steps, fr::Recompute<>{});
    if (wanted("segments")) measure("segments", shape, steps, fr::Recompute<fr::Segments<8>>{});
    if (wanted("modules")) {
      measure("modules", shape, steps, fr::Recompute<fr::Modules<fr::OfType<Block>>>{});
    }
    if (wanted("half")) measure("half", shape, steps, fr::Activations<fr::BF16>{});
    if (wanted("both")) {
      measure("both", shape, steps, fr::Recompute<fr::Segments<8>>{}, fr::Activations<fr::BF16>{});
    }
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
