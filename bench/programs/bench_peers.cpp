// SPDX-License-Identifier: Apache-2.0
// frugal's side of the comparison with PyTorch, Lightning and Accelerate: peers.py runs it. The job
// is that of its Python rivals: 784-128-10, ReLU, cross entropy, AdamW, one thread.
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "../rivals/job.hpp"

namespace fr = frugal;
using frugal_bench::Net;

namespace {

/// Starts the clock after the warm-up.
struct Stopwatch {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Stopwatch";
  };
  using listens = fr::list<fr::on::step>;

  std::uint64_t warmup = 0;
  std::chrono::steady_clock::time_point* start = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Stopwatch const& settings) : warmup_(settings.warmup), start_(settings.start) {}

    void on_step(fr::Step& phase) {
      if (phase.counters().step == warmup_) {
        *start_ = std::chrono::steady_clock::now();
      }
    }

   private:
    std::uint64_t warmup_;
    std::chrono::steady_clock::time_point* start_;
  };
};

}  // namespace

int main(int argc, char** argv) {
  std::string data;
  std::int64_t batch = 32;
  std::uint64_t steps = 1000;
  std::uint64_t warmup = 100;
  CLI::App app("The small network by frugal.");
  app.add_option("--data", data)->required();
  app.add_option("--batch", batch)->check(CLI::PositiveNumber);
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--warmup", warmup)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    fr::Batch bytes = fr::read_mnist(data, fr::Split::train, fr::Pixels::bytes);
    bytes.data = bytes.data.flatten(1);
    fr::Mapped source(fr::TensorDataset(bytes, {.batch = batch, .drop_last = true}),
                      fr::ScaleBytes{});
    torch::manual_seed(1);
    std::chrono::steady_clock::time_point start;
    Net net;
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.steps = warmup + steps},
                        fr::Optimize<fr::AdamW>{.lr = 1e-3},
                        fr::FlushDenormals{},
                        Stopwatch{.warmup = warmup, .start = &start}};
    static_cast<void>(trainer.fit(source));
    std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
    // Evaluated on the same images for every rival, outside of the timing.
    torch::NoGradGuard const no_gradients;
    fr::Batch const judged =
        fr::ScaleBytes{}({bytes.data.slice(0, 0, 10000), bytes.target.slice(0, 0, 10000)});
    double const loss = fr::CrossEntropy{}(net, judged).value.item<double>();
    auto const samples = static_cast<double>(steps) * static_cast<double>(batch);
    std::cout << nlohmann::json{{"samples_per_second", samples / spent.count()},
                                {"loss", loss},
                                {"steps", steps},
                                {"batch", batch}}
              << '\n';
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
