// SPDX-License-Identifier: Apache-2.0
// Time per step of each recipe, by frugal and by its hand-written rival, in one process.
#include "rivals.hpp"

#include <benchmark/benchmark.h>

namespace {

constexpr std::int64_t batch = 32;
constexpr std::uint64_t steps = 200;

void time_loop(benchmark::State& state, std::string const& recipe, bool by_frugal) {
  at::set_num_threads(1);
  auto source = frugal_bench::make_source(batch);
  for (auto _ : state) frugal_bench::run(recipe, by_frugal, steps, source, "/dev/null");
  state.counters["seconds_per_step"] =
      benchmark::Counter(static_cast<double>(state.iterations() * steps),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

int main(int argc, char** argv) {
  for (std::string const recipe : {"none", "bf16", "full"}) {
    for (bool const by_frugal : {false, true}) {
      std::string const name = recipe + (by_frugal ? "/frugal" : "/rival");
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        time_loop(state, recipe, by_frugal);
      })->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
