// SPDX-License-Identifier: Apache-2.0
// One side of bench/checkpoint.py: the step's cost of a save with Async, and the time of a resume,
// for a module and AdamW with a given state size in MiB. Prints one line of JSON.
#include <frugal/frugal.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// 64 weights of equal size; AdamW keeps two moments of each.
struct Weights : torch::nn::Module {
  explicit Weights(std::int64_t mib) {
    std::int64_t const numbers = mib * (1 << 20) / 3 / 64 / 4;
    for (int i = 0; i < 64; ++i) {
      all.push_back(register_parameter("weight" + std::to_string(i), torch::randn({numbers})));
    }
  }
  std::vector<at::Tensor> all;
};

struct Objective {
  at::Tensor operator()(std::shared_ptr<Weights>& module, frugal::Batch const&) const {
    at::Tensor loss = torch::zeros({});
    for (at::Tensor const& weight : module->all) loss = loss + weight.sum() * 1e-6;
    return loss;
  }
};

// One clock before Checkpoint in the order, and one after it.
struct before_kind : frugal::optional_kind {
  static constexpr std::string_view name = "bench.Before";
  static constexpr frugal::Stage stage = frugal::Stage::keep;
};
struct after_kind : frugal::optional_kind {
  static constexpr std::string_view name = "bench.After";
  static constexpr frugal::Stage stage = frugal::Stage::leave;
};
template <class Kind>
struct Stamp {
  using kind = Kind;
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::step>;
  std::vector<Clock::time_point>* times = nullptr;  ///< at the beginning, then at each step

  struct State {
    using transient = void;
    std::vector<Clock::time_point>* times;
    explicit State(Stamp const& stamp) : times(stamp.times) {}
    void on_fit_begin(frugal::FitBegin&) { times->push_back(Clock::now()); }
    void on_step(frugal::Step&) { times->push_back(Clock::now()); }
  };
};

constexpr std::uint64_t every = 12;
using Saves = frugal::Checkpoint<frugal::Every<every>, frugal::Keep<1>, frugal::Async>;

std::vector<frugal::Batch> batches(std::size_t count) {
  return std::vector<frugal::Batch>(count, {torch::zeros({1}), torch::zeros({1})});
}

/// Times of a memcpy of the whole state into allocated memory.
std::vector<double> memcpy_times(std::int64_t mib) {
  std::vector<std::vector<char>> from(192);
  std::vector<std::vector<char>> to(192);
  std::size_t const bytes = static_cast<std::size_t>(mib) * (1 << 20) / 192;
  for (auto& each : from) each.assign(bytes, 1);
  for (auto& each : to) each.assign(bytes, 2);
  std::vector<double> times;
  for (int turn = 0; turn < 7; ++turn) {
    auto const start = Clock::now();
    for (std::size_t i = 0; i < from.size(); ++i) std::memcpy(to[i].data(), from[i].data(), bytes);
    times.push_back(seconds_since(start));
  }
  return times;
}

nlohmann::json stall(std::filesystem::path const& folder, std::int64_t mib, std::size_t saves) {
  std::vector<Clock::time_point> before;
  std::vector<Clock::time_point> after;
  frugal::Trainer trainer{std::make_shared<Weights>(mib),
                          Objective{},
                          frugal::Settings{.run_dir = folder, .epochs = 1},
                          frugal::Optimize<frugal::AdamW>{},
                          Saves{},
                          Stamp<before_kind>{&before},
                          Stamp<after_kind>{&after}};
  static_cast<void>(trainer.fit(batches(every * saves + 1)));
  std::vector<double> stalls;
  double between = 0;
  for (std::size_t i = 1; i < before.size(); ++i) {
    double const spent = std::chrono::duration<double>(after[i] - before[i]).count();
    if (i % every == 0) {
      stalls.push_back(spent);
    } else {
      between = std::max(between, spent);
    }
  }
  return {{"stall", stalls}, {"memcpy", memcpy_times(mib)}, {"longest_between", between}};
}

/// Resumes a completed run: from fit's first line until it could continue training.
nlohmann::json resume(std::filesystem::path const& folder, std::int64_t mib) {
  std::vector<Clock::time_point> after;
  frugal::Trainer trainer{std::make_shared<Weights>(mib),
                          Objective{},
                          frugal::Settings{.run_dir = folder, .epochs = 1},
                          frugal::Optimize<frugal::AdamW>{},
                          Saves{},
                          Stamp<after_kind>{&after}};
  auto const start = Clock::now();
  auto const report = trainer.fit(batches(1));
  double const seconds = std::chrono::duration<double>(after.front() - start).count();
  if (!report.resumed) throw std::runtime_error("nothing was resumed");
  return {{"seconds", seconds}, {"from", report.resumed->from}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what checkpoints cost");
  std::string what;
  std::filesystem::path folder;
  std::int64_t mib = 512;
  std::size_t saves = 7;
  app.add_option("what", what, "stall or resume")->required();
  app.add_option("folder", folder, "of the run")->required();
  app.add_option("--mib", mib, "of the whole state");
  app.add_option("--saves", saves, "to time");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << (what == "stall" ? stall(folder, mib, saves) : resume(folder, mib)) << '\n';
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
