// SPDX-License-Identifier: Apache-2.0
// needs: step
// The network of bench_peers as a step package, trained by frugal or by a loop by hand: step.py runs it, exports
// the package, and compares both with PyTorch. Likewise other networks, on noise of their shape.
#include <frugal/frugal.hpp>
#include <frugal/step.hpp>

#include <ATen/autocast_mode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../rivals/job.hpp"

namespace fr = frugal;
using frugal_bench::RivalAdamW;

namespace {

using Clock = std::chrono::steady_clock;

/// Starts the clock after the warm-up; the first step's end as well.
struct Stopwatch {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Stopwatch";
  };
  using listens = fr::list<fr::on::step>;

  std::uint64_t warmup = 0;
  Clock::time_point* start = nullptr;
  Clock::time_point* first = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Stopwatch const& settings)
        : warmup_(settings.warmup), start_(settings.start), first_(settings.first) {}

    void on_step(fr::Step& phase) {
      std::uint64_t const step = phase.counters().step;
      if (step == warmup_) *start_ = Clock::now();
      if (step == 1) *first_ = Clock::now();
    }

   private:
    std::uint64_t warmup_;
    Clock::time_point* start_;
    Clock::time_point* first_;
  };
};

struct Options {
  std::string package, data, loop = "frugal";
  std::int64_t batch = 32;
  std::uint64_t steps = 1000, warmup = 100;
};

struct Times {
  Clock::time_point start{}, first{};
};

template <class Precision, class Source>
void by_frugal(Options const& options, Source& source, fr::StepPackage const& package,
               std::shared_ptr<fr::StepModule> const& module, Times& times) {
  fr::Trainer trainer{
      module,
      package.objective(),
      fr::Settings{.steps = options.warmup + options.steps},
      Precision{},
      fr::Optimize<fr::AdamW>{.lr = frugal_bench::learning_rate},
      fr::FlushDenormals{},
      Stopwatch{.warmup = options.warmup, .start = &times.start, .first = &times.first}};
  static_cast<void>(trainer.fit(source));
}

/// What one would write without frugal: the code, a fused optimizer, and nothing checked.
template <class Source>
void by_hand(Options const& options, Source& source, std::shared_ptr<fr::StepModule> const& module,
             Times& times) {
  at::globalContext().setFlushDenormal(true);
  auto const& manifest = module->code().manifest();
  std::string const path = module->code().folder() / manifest.programs[0].file.name;
  auto const runner = torch::inductor::getAOTIModelRunnerRegistry().at("cpu")(
      path, 1, "cpu", "", /*run_single_threaded=*/false);
  RivalAdamW optimizer(module);
  at::Tensor const one = torch::ones({});
  std::vector<at::Tensor> inputs = optimizer.parameters();
  for (at::Tensor& each : inputs) each = each.detach();
  std::size_t const count = inputs.size();
  std::uint64_t step = 0;
  for (std::uint64_t epoch = 0; step < options.warmup + options.steps; ++epoch) {
    source.seek({0, epoch, 0});
    while (step < options.warmup + options.steps) {
      auto batch = source.next();
      if (!batch) break;
      inputs.resize(count);
      inputs.insert(inputs.end(), {batch->data, batch->target, one});
      std::vector<at::Tensor> outputs = runner->run(inputs);
      auto const& parameters = optimizer.parameters();
      for (std::size_t i = 0; i < count; ++i) {
        parameters[i].mutable_grad() = std::move(outputs[outputs.size() - count + i]);
      }
      optimizer.collect();
      optimizer.step(frugal_bench::learning_rate);
      ++step;
      if (step == options.warmup) times.start = Clock::now();
      if (step == 1) times.first = Clock::now();
    }
  }
}

template <class Source>
nlohmann::json run(Options const& options, Source& source, fr::Batch const& judged) {
  Clock::time_point const begun = Clock::now();
  fr::StepPackage const package(options.package);
  auto const module = package.module();
  Times times;
  if (options.loop == "hand") {
    by_hand(options, source, module, times);
  } else if (module->code().manifest().precision == "BF16") {
    by_frugal<fr::Precision<fr::BF16>>(options, source, package, module, times);
  } else {
    by_frugal<fr::Precision<fr::FP32>>(options, source, package, module, times);
  }
  std::chrono::duration<double> const spent = Clock::now() - times.start;
  std::chrono::duration<double> const opening = times.first - begun;
  module->eval();
  // As the recipe's precision sets it during a fit.
  at::autocast::set_autocast_enabled(at::kCPU, module->code().manifest().precision == "BF16");
  double const loss = package.objective()(*module, judged).value.item<double>();
  auto const samples = static_cast<double>(options.steps) * static_cast<double>(options.batch);
  return {{"samples_per_second", samples / spent.count()},
          {"loss", loss},
          {"steps", options.steps},
          {"batch", options.batch},
          {"seconds_per_step", spent.count() / static_cast<double>(options.steps)},
          {"seconds_to_first_step", opening.count()},
          {"weights", module->parameters().front().detach().abs().sum().item<double>()}};
}

/// As many rows of noise as eight batches have, in the shapes and types of a package's fields: numbers from 0 to 1, or
/// indices that are in range.
fr::TensorDataset noise_for(std::string const& folder, std::int64_t batch) {
  fr::StepManifest const manifest = fr::StepManifest::open(folder);
  auto const& program = manifest.programs.front();
  torch::manual_seed(1);
  auto const field = [&](std::size_t at) {
    std::vector<std::int64_t> shape;
    for (auto const& extent : program.fields[at].shape)
      shape.push_back(extent.dimension < 0 ? extent.size : 8 * batch);
    if (manifest.fields[at].type != "int64") return torch::rand(shape);
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (auto const& index : program.indices) {
      if (std::ranges::find(index.fields, at) != index.fields.end())
        most = std::min(most, index.size.value_or(most));
    }
    return torch::randint(0, most, shape, at::kLong);
  };
  return {field(0), field(1), {.batch = batch}};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A step package by frugal, or by hand.");
  app.add_option("--package", options.package)->required();
  app.add_option("--data", options.data, "folder of Fashion-MNIST; without it: noise");
  app.add_option("--loop", options.loop)->check(CLI::IsMember({"frugal", "hand"}));
  app.add_option("--batch", options.batch)->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(1);
  try {
    if (options.data.empty()) {
      auto source = noise_for(options.package, options.batch);
      auto const batch = source.next();
      std::cout << run(options, source, *batch) << '\n';
      return 0;
    }
    fr::Batch bytes = fr::read_mnist(options.data, fr::Split::train, fr::Pixels::bytes);
    bytes.data = bytes.data.flatten(1);
    fr::Mapped source(fr::TensorDataset(bytes, {.batch = options.batch, .drop_last = true}),
                      fr::ScaleBytes{});
    // Evaluated on the same images for every rival, outside of the timing.
    fr::Batch const judged =
        fr::ScaleBytes{}({bytes.data.slice(0, 0, 10000), bytes.target.slice(0, 0, 10000)});
    std::cout << run(options, source, judged) << '\n';
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
