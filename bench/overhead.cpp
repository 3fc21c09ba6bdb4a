// SPDX-License-Identifier: Apache-2.0
// needs: prometheus tensorboard
// Time per step of each recipe, for frugal and for its hand-written rival, in one process.
#include "rivals.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace {

constexpr std::int64_t batch = 32;
// Of two runs, so that their start and their end cancel out.
constexpr std::uint64_t short_run = 200;
constexpr std::uint64_t long_run = 1000;

void time_loop(benchmark::State& state, frugal_bench::Recipe const& recipe, bool by_frugal) {
  at::set_num_threads(1);
  auto source = frugal_bench::make_source(batch);
  auto valid = frugal_bench::make_source(batch, 320);
  std::string const log = "/dev/null";
  auto const seconds = [&](std::uint64_t steps) {
    auto const begin = std::chrono::steady_clock::now();
    frugal_bench::Job const job{source, valid, steps, log};
    (by_frugal ? recipe.by_frugal : recipe.by_hand)(job);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double difference = 0;
  for (auto _ : state) difference += seconds(long_run) - seconds(short_run);
  state.counters["seconds_per_step"] =
      difference / static_cast<double>(state.iterations()) / (long_run - short_run);
}

}  // namespace

int main(int argc, char** argv) {
  for (frugal_bench::Recipe const& recipe : frugal_bench::recipes) {
    if (!recipe.timed) continue;
    for (bool const by_frugal : {false, true}) {
      std::string const name = std::string(recipe.name) + (by_frugal ? "/frugal" : "/rival");
      benchmark::RegisterBenchmark(name.c_str(), [&recipe, by_frugal](benchmark::State& state) {
        time_loop(state, recipe, by_frugal);
      })->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
