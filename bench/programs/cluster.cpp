// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// One rank of bench/cluster.py: trains a job with Replicate and prints, from rank 0, one line of JSON: seconds of each
// timed step, and the loss after them. Variables of a launcher say which rank it is.
//
// Shapes: N samples, B in a micro-batch, T tokens, W ranks.
#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../transformer.hpp"

namespace fr = frugal;
namespace nn = torch::nn;

namespace {

struct Job {
  nn::Sequential net;
  fr::Batch data;
  std::int64_t batch;
};

/// The data and networks of cluster_torch.py.
Job job_named(std::string const& name) {
  torch::manual_seed(1);
  if (name == "small") {
    nn::Sequential net(nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 10));
    at::Tensor const x_NF = at::randn({4096, 64});
    return {.net = net, .data = {x_NF, x_NF.slice(1, 0, 10).argmax(1)}, .batch = 32};
  }
  frugal_bench::TransformerShape const shape{
      .layers = 6, .batch = 4, .tokens = 128, .channels = 384, .heads = 6, .words = 512};
  nn::Sequential const net = frugal_bench::make_gpt(shape);
  at::Tensor const text = at::randint(0, shape.words, {512, shape.tokens + 1}, at::kLong);
  return {.net = net,
          .data = {text.slice(1, 0, shape.tokens).contiguous(), text.slice(1, 1).contiguous()},
          .batch = shape.batch};
}

struct Stopwatch {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Stopwatch";
  };
  using listens = fr::list<fr::on::step>;
  static constexpr bool knows_ranks = true;

  std::vector<double>* seconds = nullptr;

  template <class Context>
  class State {
    using Clock = std::chrono::steady_clock;

   public:
    using transient = void;
    explicit State(Stopwatch const& settings) : seconds_(settings.seconds) {}
    void on_step(fr::Step<Context>&) {
      Clock::time_point const now = Clock::now();
      if (begun_) seconds_->push_back(std::chrono::duration<double>(now - last_).count());
      begun_ = true;
      last_ = now;
    }

   private:
    std::vector<double>* seconds_;
    Clock::time_point last_{};
    bool begun_ = false;
  };
};

template <int window, class Replicate>
void train(Job& job, std::uint64_t steps, std::vector<double>& seconds,
           Replicate const& replicate) {
  fr::TensorDataset source(job.data, {.batch = job.batch, .drop_last = true});
  fr::Trainer trainer{job.net,
                      fr::CrossEntropy{},
                      fr::Settings{.steps = steps},
                      fr::Optimize<fr::AdamW>{.lr = 1e-3},
                      fr::Accumulate<window>{},
                      replicate,
                      Stopwatch{.seconds = &seconds}};
  static_cast<void>(trainer.fit(source));
}

template <int window>
void train(Job& job, std::string const& way, std::uint64_t steps, std::vector<double>& seconds) {
  if (way == "exact") train<window>(job, steps, seconds, fr::Replicate<fr::Exact>{});
  if (way == "ring") train<window>(job, steps, seconds, fr::Replicate<fr::Ring>{});
  if (way == "ring after backward") {
    train<window>(job, steps, seconds, fr::Replicate<fr::Ring>{.overlaps = false});
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "small", way = "ring";
  std::uint64_t steps = 100, warmup = 10;
  CLI::App app("One rank of bench/cluster.py.");
  app.add_option("--job", name)->check(CLI::IsMember({"small", "gpt"}));
  app.add_option("--way", way)->check(CLI::IsMember({"exact", "ring", "ring after backward"}));
  app.add_option("--steps", steps);
  app.add_option("--warmup", warmup);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    fr::World const world = fr::World::from_environment();
    Job job = job_named(name);
    std::vector<double> seconds;
    std::uint64_t const all = steps + warmup;
    switch (world.size) {
      case 1:
        train<1>(job, way, all, seconds);
        break;
      case 2:
        train<2>(job, way, all, seconds);
        break;
      case 8:
        train<8>(job, way, all, seconds);
        break;
      default:
        throw fr::SettingsError({.what = std::to_string(world.size) + " ranks are not measured",
                                 .where = "bench/programs/cluster.cpp",
                                 .why = "a window has one micro-batch for each of 1, 2 or 8",
                                 .fix = "Start as many."});
    }
    if (world.rank != 0) return 0;
    torch::NoGradGuard const no_gradients;
    fr::Batch const some{job.data.data.slice(0, 0, 64), job.data.target.slice(0, 0, 64)};
    seconds.erase(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(warmup) - 1);
    std::cout << nlohmann::json{{"seconds", seconds},
                                {"loss", fr::CrossEntropy{}(job.net, some).value.item<double>()}}
              << std::endl;
    return 0;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
