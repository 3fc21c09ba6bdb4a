// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// One rank of bench/cluster.py: trains a job with Replicate, or with LibTorch's Reducer, and prints, from rank 0, one line of
// JSON: seconds of each timed step, and the loss after them. Variables of a launcher say which rank it is.
//
// For bench/cluster_links.py: --way link prints what measure_link finds, and --way plan what plan_ranks predicts for this job,
// from --compute, --latency and --rate.
//
// Shapes: N samples, B in a micro-batch, T tokens, W ranks.
#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report/plan/rank_plan.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../reducer.hpp"
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
  using properties = fr::list<fr::property::knows_ranks>;

  std::vector<double>* seconds = nullptr;

  class State {
    using Clock = std::chrono::steady_clock;

   public:
    using transient = void;
    explicit State(Stopwatch const& settings) : seconds_(settings.seconds) {}
    void on_step(fr::Step&) {
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
  if (way == "ring") return train<window>(job, steps, seconds, fr::Replicate<fr::Ring>{});
  if constexpr (window == 2 || window == 4) {  // each is a trainer to compile
    if (way == "wire") {
      return train<window>(job, steps, seconds, fr::Replicate<fr::Ring, fr::Wire<fr::BF16>>{});
    }
  }
  if constexpr (window != 4) {
    if (way == "exact") return train<window>(job, steps, seconds, fr::Replicate<fr::Exact>{});
    if (way == "ring after backward") {
      return train<window>(job, steps, seconds, fr::Replicate<fr::Ring>{.overlaps = false});
    }
  }
  throw fr::SettingsError(
      {.what = way + " is not measured with " + std::to_string(window) + " ranks",
       .where = "bench/programs/cluster.cpp",
       .why = "each way and number is a trainer to compile",
       .fix = "Take 2 ranks, or add it to train()."});
}

void train_by_reducer(Job& job, fr::World const& world, std::uint64_t steps,
                      std::vector<double>& seconds) {
  using Clock = std::chrono::steady_clock;
  fr::TensorDataset source(job.data, {.batch = job.batch, .drop_last = true});
  Clock::time_point last{};
  bool begun = false;
  frugal_bench::reducer_loop(job.net, source, world, steps, [&] {
    Clock::time_point const now = Clock::now();
    if (begun) seconds.push_back(std::chrono::duration<double>(now - last).count());
    begun = true;
    last = now;
  });
}

/// Bytes of the gradients, and of Ring's last bucket: the first one has 1 MiB, the others 25 MiB.
struct GradientBytes {
  double all = 0, last = 0;
};
GradientBytes gradient_bytes(nn::Sequential const& net) {
  std::vector<at::Tensor> const parameters = net->parameters();
  GradientBytes bytes;
  double limit = 1 << 20;
  for (auto each = parameters.rbegin(); each != parameters.rend(); ++each) {
    auto const size = static_cast<double>(each->nbytes());
    if (bytes.last > 0 && bytes.last + size > limit) {
      limit = 25 << 20;
      bytes.last = 0;
    }
    bytes.last += size;
    bytes.all += size;
  }
  return bytes;
}

/// What plan_ranks says of a step with one micro-batch for each rank.
nlohmann::json planned(Job const& job, double ranks, double compute, fr::LinkSpeed const& link,
                       bool bf16) {
  namespace plan = fr::plan;
  GradientBytes const bytes = gradient_bytes(job.net);
  plan::RankStep const step = plan::estimate({.micro_batch = plan::Seconds(compute),
                                              .micro_batches = ranks,
                                              .gradients = plan::gigabytes(bytes.all),
                                              .link = link,
                                              .bf16 = bf16,
                                              .last_bucket = plan::gigabytes(bytes.last)},
                                             ranks);
  return {{"step", step.step().value()}, {"communication", step.communication.value()}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "small", way = "ring";
  std::uint64_t steps = 100, warmup = 10;
  double ranks = 2, compute = 0;
  fr::LinkSpeed link;
  bool bf16 = false;
  CLI::App app("One rank of bench/cluster.py.");
  app.add_option("--job", name)->check(CLI::IsMember({"small", "gpt"}));
  app.add_option("--way", way)
      ->check(CLI::IsMember(
          {"exact", "ring", "ring after backward", "wire", "reducer", "link", "plan"}));
  app.add_option("--steps", steps);
  app.add_option("--warmup", warmup);
  app.add_option("--ranks", ranks, "of the plan");
  app.add_option("--compute", compute, "seconds of a step without communication, for the plan");
  app.add_option("--latency", link.latency, "seconds, of the link, for the plan");
  app.add_option("--rate", link.bytes_per_second, "bytes per second, of the link, for the plan");
  app.add_flag("--bf16", bf16, "gradients travel in BF16, for the plan");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    fr::World const world = fr::World::from_environment();
    Job job = job_named(name);
    if (way == "plan") {
      std::cout << planned(job, ranks, compute, link, bf16) << std::endl;
      return 0;
    }
    if (way == "link") {
      auto const all = fr::Communicator::join(world);
      link = fr::measure_link(*all, {.rounds = 3});
      if (world.rank == 0) {
        std::cout << nlohmann::json{{"latency", link.latency}, {"rate", link.bytes_per_second}}
                  << std::endl;
      }
      return 0;
    }
    std::vector<double> seconds;
    std::uint64_t const all = steps + warmup;
    switch (way == "reducer" ? 0 : world.size) {
      case 0:
        train_by_reducer(job, world, all, seconds);
        break;
      case 1:
        train<1>(job, way, all, seconds);
        break;
      case 2:
        train<2>(job, way, all, seconds);
        break;
      case 4:
        train<4>(job, way, all, seconds);
        break;
      case 8:
        train<8>(job, way, all, seconds);
        break;
      default:
        throw fr::SettingsError({.what = std::to_string(world.size) + " ranks are not measured",
                                 .where = "bench/programs/cluster.cpp",
                                 .why = "a window has one micro-batch for each of 1, 2, 4 or 8",
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
