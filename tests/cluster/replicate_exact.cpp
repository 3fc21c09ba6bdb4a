// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::cluster_replicate_exact {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;
using rank_processes::run;

/// Dropout, in validations too because it is no submodule, and a layer that some micro-batches leave
/// out.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 32))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({32})))};
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(32, 32))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 3))};
  torch::nn::Dropout drop{0.2};
  bool leaves_out = false;
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor hidden = drop(norm(in(x)).relu());
    if (!leaves_out || x.sum().item<double>() > 0) hidden = hidden + odd(hidden).relu();
    return out(hidden);
  }
};
TORCH_MODULE(Net);

/// Weighs samples, some with nothing, so that a micro-batch may count for nothing.
struct Weighed {
  fr::Loss operator()(Net& net, fr::Batch const& batch) const {
    at::Tensor const weight = batch.target.ne(0).to(at::kFloat);
    double const all = weight.sum().item<double>();
    at::Tensor const logits = net(batch.data);
    at::Tensor const each = torch::nn::functional::cross_entropy(
        logits, batch.target,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
    return {.value = (each * weight).sum() / all, .weight = all, .output = logits};
  }
};

struct Data {
  at::Tensor x, y;
};
// Not a multiple of a window's 8 x 4 samples, so that the last window of an epoch has 5 micro-batches.
Data data(bool with_nothing = false) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({3 * 32 + 18, 8}, generator);
  at::Tensor y = at::randint(0, 3, {3 * 32 + 18}, generator);
  if (with_nothing) y.narrow(0, 4, 8).zero_(), y.narrow(0, 96, 8).zero_();
  return {x, y};
}

/// Samples with noise of their own, read by workers.
struct NoisySet {
  Data all;
  std::uint64_t size() const { return static_cast<std::uint64_t>(all.x.size(0)); }
  fr::Batch get(fr::SampleKey const& key) const {
    auto const i = static_cast<std::int64_t>(key.index);
    fr::Draw draw(key);
    return {all.x[i] + draw.uniform(), all.y[i]};
  }
};

template <class Source, class Objective, class... Policies>
std::string train_on(Source& train, Objective objective, Data const& all, bool leaves_out,
                     std::shared_ptr<fr::Communicator> const& with, Policies const&... policies) {
  torch::manual_seed(3);
  Net net;
  net->leaves_out = leaves_out;
  fr::TensorDataset valid(all.x, all.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      objective,
                      fr::Settings{.epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::ClipNorm<0.5>{},
                      fr::Schedule<fr::Warmup<2>, fr::Cosine>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      fr::Replicate<fr::Exact>{.with = with},
                      policies...};
  fr::Report const report = trainer.fit(train, valid);
  char numbers[256];
  std::snprintf(numbers, sizeof numbers, "%lu steps, %lu samples, loss %a, %a, accuracy %a, ",
                static_cast<unsigned long>(report.steps),
                static_cast<unsigned long>(report.samples), report.train_loss,
                report.last()["loss"], report.last()["accuracy"]);
  return numbers + fr::module_identity(*net);
}

template <class Objective, class... Policies>
std::string train(Objective objective, Data const& all, bool leaves_out,
                  std::shared_ptr<fr::Communicator> const& with, Policies const&... policies) {
  fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = leaves_out});
  return train_on(train, objective, all, leaves_out, with, policies...);
}

/// Trains in a folder, until the notice of rank `FRUGAL_TEST_NOTICE_RANK` after step
/// `FRUGAL_TEST_NOTICE`; a later start goes on.
std::string train_in(std::string const& folder) {
  torch::manual_seed(3);
  Net net;
  Data const all = data();
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::TensorDataset valid(all.x, all.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      fr::Average<fr::Ema<0.9>>{},
                      fr::Checkpoint<fr::Every<2>>{},
                      fr::Log<fr::Every<1>>{},
                      support::Notice::of_environment(),
                      fr::Replicate<fr::Exact>{}};
  fr::Report const report = trainer.fit(train, valid);
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "exit %d, %lu steps, loss %a, ", report.exit_code(),
                static_cast<unsigned long>(report.steps), report.train_loss);
  return numbers + fr::module_identity(*net);
}

/// Seconds of a clock that each look at moves on: for one process, the first.
double counted_seconds() {
  static double now = 0;
  return now += 1;
}

/// Trains in a folder until a budget is spent; a later start may have more.
std::string train_for_money(std::string const& folder) {
  torch::manual_seed(3);
  Net net;
  Data const all = data();
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::Budget<fr::Usd<1>, fr::Stop> budget;
  budget.limit = std::stod(std::getenv("FRUGAL_TEST_DOLLARS"));
  fr::CostMeter const meter{.price = fr::plan::PricePerDevice(3600.0), .clock = &counted_seconds};
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = 3},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::Checkpoint<fr::Every<2>>{},
                      meter,
                      budget,
                      fr::Throughput<>{},
                      fr::Replicate<fr::Exact>{}};
  fr::Report const report = trainer.fit(train);
  std::string text = std::to_string(report.steps) + " steps, by '" + report.stopped_by + "', ";
  if (auto const cost = trainer.cost_meter().cost()) {
    double const seconds = cost->hours * 3600;
    text += std::to_string(std::lround(*cost->amount / seconds)) + " devices, ";
  }
  return text + fr::module_identity(*net);
}

/// Cross entropy, much larger for a batch that begins with a sample of large numbers.
struct Spiked {
  at::Tensor operator()(Net& net, fr::Batch const& batch) const {
    at::Tensor const loss = torch::nn::functional::cross_entropy(net(batch.data), batch.target);
    return batch.data[0][0].item<double>() > 100 ? loss * 50 : loss;
  }
};

/// A batch whose loss is NaN once, or jumps: Rollback goes back, and passes over it.
std::string train_with_bad_loss(std::shared_ptr<fr::Communicator> const& with, bool jumps) {
  torch::manual_seed(3);
  Net net;
  Data all = data();
  all.x.narrow(0, jumps ? 100 : 44, 1)
      .fill_(jumps ? 1000.0 : std::numeric_limits<double>::quiet_NaN());
  fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
  fr::Trainer trainer{net,
                      Spiked{},
                      fr::Settings{.epochs = 2},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::Accumulate<8>{},
                      fr::Rollback<>{.jump = jumps ? 4.0 : 0.0},
                      fr::Replicate<fr::Exact>{.with = with}};
  fr::Report const report = trainer.fit(train);
  return std::to_string(report.steps) + " steps, " + fr::module_identity(*net);
}

std::string job(std::string_view name, std::shared_ptr<fr::Communicator> const& with) {
  if (name == "fp32")
    return train(fr::CrossEntropy{}, data(), false, with, fr::Average<fr::Ema<0.9>>{});
  if (name == "bf16")
    return train(fr::CrossEntropy{}, data(), true, with, fr::Precision<fr::BF16>{});
  if (name == "loader") {
    auto source = fr::loader(NoisySet{data()}, {.batch = 4}, fr::Stack{}, {.workers = 2});
    return train_on(source, fr::CrossEntropy{}, data(), true, with);
  }
  if (name == "money") return train_for_money(std::getenv("FRUGAL_TEST_FOLDER"));
  if (name == "bad loss" || name == "jump") return train_with_bad_loss(with, name == "jump");
  if (name == "folder") return train_in(std::getenv("FRUGAL_TEST_FOLDER"));
  return train(Weighed{}, data(true), true, with);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  rank_processes::answer(job(rank_processes::job(), nullptr));
}

TEST_CASE("1, 2, 4 and 8 processes come to the same bits") {
  for (std::string const name : {"fp32", "bf16", "weighed", "loader"}) {
    CAPTURE(name);
    std::string const alone = run(name, 1).front();
    for (int size : name == "fp32" ? std::vector{2, 4, 8} : std::vector{4}) {
      CAPTURE(size);
      for (std::string const& result : run(name, size)) CHECK(result == alone);
    }
  }
}

template <class... Replicate>
std::pair<fr::Report, at::Tensor> accumulate(Replicate const&... replicate) {
  torch::manual_seed(3);
  torch::nn::Linear net(8, 3);
  Data const all = data();
  fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 1},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<8>{},
                      replicate...};
  fr::Report report = trainer.fit(train);
  return {std::move(report), net->weight.detach()};
}

std::vector<std::string> run_in(std::filesystem::path const& folder, int size, int notice_rank,
                                int notice_step) {
  return run("folder", size,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

/// Step and loss of each line of a log.
std::vector<std::string> steps_of(std::filesystem::path const& folder) {
  std::ifstream in(folder / "metrics.jsonl");
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) {
    std::size_t const loss = line.find("\"loss\":");
    std::size_t const step = line.find("\"step\":");
    if (line.find("\"event\":\"step\"") == std::string::npos) continue;
    all.push_back(line.substr(step, line.find(',', step) - step) + " " +
                  line.substr(loss, line.find(',', loss) - loss));
  }
  return all;
}

TEST_CASE("preempted by a notice to one of 4 processes, and resumed by 2, by 8 and by 1") {
  support::TemporaryFolder const folder;
  std::string const whole = run_in(folder / "whole", 1, 0, 0).front();
  CHECK(whole.find("exit 0, 12 steps") != std::string::npos);
  std::vector<std::string> const expected = steps_of(folder / "whole");
  CHECK(expected.size() >= 12);
  std::filesystem::path const run = folder / "run";
  for (std::string const& result : run_in(run, 4, 3, 3)) {
    CAPTURE(result);
    CHECK(result.find("exit 75, 3 steps") != std::string::npos);
  }
  for (std::string const& result : run_in(run, 2, 0, 6)) {
    CAPTURE(result);
    CHECK(result.find("exit 75, 6 steps") != std::string::npos);
  }
  for (std::string const& result : run_in(run, 8, 6, 11)) {
    CAPTURE(result);
    CHECK(result.find("exit 75, 11 steps") != std::string::npos);
  }
  CHECK(run_in(run, 1, 0, 0).front() == whole);
  // One log, with each step once.
  CHECK(steps_of(run) == expected);
}

TEST_CASE("a bad loss of one process takes all of them back") {
  // A jump is found by the losses of all, so at the same window however many processes there are.
  for (std::string const name : {"bad loss", "jump"}) {
    std::string const alone = run(name, 1).front();
    CHECK(alone.find("RESULT 6 steps") != std::string::npos);
    for (int size : name == "jump" ? std::vector{4} : std::vector{2, 4}) {
      for (std::string const& result : run(name, size)) CHECK(result == alone);
    }
  }
}

TEST_CASE("one bill for all processes, and a budget that ends all of them") {
  support::TemporaryFolder const folder;
  auto const start = [&](int size, double dollars) {
    return run("money", size,
               {"FRUGAL_TEST_FOLDER=" + folder.path().string(),
                "FRUGAL_TEST_DOLLARS=" + std::to_string(dollars)});
  };
  std::vector<std::string> const first = start(4, 100);
  CAPTURE(first.front());
  std::string const stopped = first.front().substr(0, first.front().find("4 devices"));
  CHECK(stopped.find("by 'Budget'") != std::string::npos);
  CHECK(first.front().find("4 devices, ") != std::string::npos);
  for (std::string const& result : std::span(first).subspan(1)) {
    CHECK(result == stopped + first.front().substr(first.front().find("devices, ") + 9));
  }
  // With the same budget it stays ended; with more, all of them go on.
  for (std::string const& result : start(2, 100)) CHECK(result.starts_with(stopped));
  std::vector<std::string> const rest = start(2, 1e6);
  CHECK(rest[0].starts_with("RESULT 12 steps, by '', "));
  CHECK(rest[1].starts_with("RESULT 12 steps, by '', "));
}

TEST_CASE("as accumulation in one process, but for the order of the sums") {
  auto const [one, weight] =
      accumulate(fr::Replicate<fr::Exact>{.with = fr::Communicator::join(fr::World{})});
  auto const [other, expected] = accumulate();
  CHECK(one.train_loss == doctest::Approx(other.train_loss).epsilon(1e-6));
  CHECK(one.steps == other.steps);
  CHECK(one.samples == other.samples);
  CHECK(at::allclose(weight, expected, 1e-5, 1e-7));
}

TEST_CASE("windows that the processes cannot share") {
  auto const share = [](int rank, int size, int micro_batches) {
    return fr::detail::exact_share(ranks::place(rank, size), micro_batches);
  };
  CHECK(share(1, 3, 12).first == 4);
  CHECK(share(1, 3, 12).count == 4);
  CHECK(share(0, 1, 7).count == 7);
  CHECK_THROWS_WITH_AS(share(0, 3, 8),
                       doctest::Contains("3 processes cannot share windows of 8 micro-batches "
                                         "(Replicate<Exact>): each must have the same number"),
                       fr::SettingsError);
  CHECK_THROWS_WITH_AS(share(0, 2, 6), doctest::Contains("each would have 3"), fr::SettingsError);
}

inline fr::flow end_at_step_3(bool here, fr::Counters const& at) {
  return here && at.step == 3 ? fr::flow::stop : fr::flow::proceed;
}

/// Asks for the end of the run in one process alone, after a step.
struct EndsAtStep {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Ends";
  };
  using listens = fr::list<fr::on::step>;
  using properties = fr::list<fr::property::knows_ranks>;
  bool here = false;

  struct State {
    using transient = void;
    explicit State(EndsAtStep const& settings) : here(settings.here) {}
    fr::flow on_step(fr::Step& phase) { return end_at_step_3(here, phase.counters()); }
    bool here;
  };
};
/// After a validation.
struct EndsAtValidation {
  using kind = EndsAtStep::kind;
  using listens = fr::list<fr::on::validated>;
  using properties = fr::list<fr::property::knows_ranks>;
  bool here = false;

  struct State {
    using transient = void;
    explicit State(EndsAtValidation const& settings) : here(settings.here) {}
    fr::flow on_validated(fr::Validated& phase) { return end_at_step_3(here, phase.counters()); }
    bool here;
  };
};

template <class Ends>
void one_ends_all() {
  std::vector<torch::nn::Linear> nets(4, nullptr);
  for (torch::nn::Linear& net : nets) {
    torch::manual_seed(1);
    net = torch::nn::Linear(8, 3);
  }
  Data const all = data();
  CHECK(ranks::none(ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
    fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
    torch::nn::Linear net = nets[static_cast<std::size_t>(with->rank())];
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.epochs = 4},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Accumulate<4>{},
                        fr::Validate<fr::Every<1>>{},
                        Ends{.here = with->rank() == 2},
                        fr::Replicate<fr::Exact>{.with = with}};
    fr::Report const report = trainer.fit(train, train);
    if (report.steps != 3) throw std::runtime_error(std::to_string(report.steps) + " steps");
    if (report.stopped_by != "test.Ends") throw std::runtime_error("by " + report.stopped_by);
  })));
}

TEST_CASE("a policy of one process ends all after the same step, and all say which") {
  one_ends_all<EndsAtStep>();
  one_ends_all<EndsAtValidation>();
}

/// Does something in one process alone, at the third window: passes over it, or refuses a loss of it; or
/// changes a weight after the first step.
struct Odd {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Odd";
  };
  using listens = fr::list<fr::on::window, fr::on::loss, fr::on::step>;
  using properties = fr::list<fr::property::knows_ranks>;
  std::string does{};

  struct State {
    using transient = void;
    explicit State(Odd const& settings) : does(settings.does) {}
    void on_window(fr::WindowBegin& phase) {
      if (does == "skips" && phase.counters().position == 32) phase.skip();
    }
    void on_loss(fr::LossReady& phase) {
      fr::Counters const& now = phase.counters();
      if (does != "refuses" || now.position != 32) return;
      throw fr::NonFiniteLossError({.what = "odd", .where = "", .why = "", .fix = ""},
                                   {now.epoch, now.position, now.step}, 0.0);
    }
    void on_step(fr::Step& phase) {
      if (does != "drifts" || phase.counters().step != 1) return;
      at::NoGradGuard const no_gradients;
      phase.parameters().tensors.front().view(-1)[0] += 1e-3;
    }
    std::string does;
  };
};

/// A net whose weights are made before the threads begin: they share the generator.
struct Job {
  std::vector<torch::nn::Linear> nets{};
  std::vector<std::uint64_t> seeds{};
  std::vector<std::int64_t> samples{};
  std::vector<std::int64_t> batches{};
  std::vector<std::uint64_t> epochs{};
  std::string odd{};    ///< what rank 2 does
  std::string apart{};  ///< the folder of rank 3, if it is another one
};
std::vector<std::string> errors_of(Job const& job) {
  Data const all = data();
  support::TemporaryFolder const folder;
  auto const size = static_cast<int>(job.nets.size());
  return ranks::run(size, [&](std::shared_ptr<fr::Communicator> const& with) {
    auto const rank = static_cast<std::size_t>(with->rank());
    std::int64_t const samples = job.samples.empty() ? 64 : job.samples[rank];
    fr::TensorDataset train(
        all.x.narrow(0, 0, samples), all.y.narrow(0, 0, samples),
        {.batch = job.batches.empty() ? 4 : job.batches[rank], .shuffle = false});
    torch::nn::Linear net = job.nets[rank];
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = folder / (rank == 3 ? "run" + job.apart : "run"),
                                     .epochs = job.epochs.empty() ? 1 : job.epochs[rank],
                                     .seed = job.seeds.empty() ? 1 : job.seeds[rank]},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Accumulate<4>{},
                        fr::Rollback<>{},
                        fr::Checkpoint<fr::Every<2>>{},
                        Odd{.does = rank == 2 ? job.odd : std::string()},
                        fr::Replicate<fr::Exact>{.with = with}};
    trainer.fit(train);
  });
}
std::vector<torch::nn::Linear> equal_nets(int count) {
  std::vector<torch::nn::Linear> nets;
  for (int i = 0; i < count; ++i) {
    torch::manual_seed(3);
    nets.emplace_back(8, 3);
  }
  return nets;
}

TEST_CASE("ranks that train different runs are refused, on every rank, with both values") {
  Job job{.nets = equal_nets(4)};
  CHECK(ranks::none(errors_of(job)));
  job = {.nets = equal_nets(4), .seeds = {1, 1, 7, 1}};
  for (std::string const& error : errors_of(job)) {
    CHECK(error.find("ranks train different runs: the seed of rank 2 is '7', and of rank 0 '1'") !=
          std::string::npos);
  }
  job = {.nets = equal_nets(4), .batches = {4, 4, 4, 8}};
  for (std::string const& error : errors_of(job)) {
    CHECK(error.find("the batch size of rank 3 is '8', and of rank 0 '4'") != std::string::npos);
  }
  job = {.nets = equal_nets(4), .epochs = {1, 2, 1, 1}};
  for (std::string const& error : errors_of(job)) {
    CHECK(error.find("the number of epochs (Settings::epochs) of rank 1 is '2', and of rank 0 "
                     "'1'") != std::string::npos);
  }
  job = {.nets = equal_nets(4), .samples = {64, 64, 64, 60}};
  for (std::string const& error : errors_of(job)) {
    CHECK(error.find("the data of rank 3 is '") != std::string::npos);
  }
  job = {.nets = equal_nets(4)};
  at::NoGradGuard const no_gradients;
  job.nets[1]->bias.add_(1);
  for (std::string const& error : errors_of(job)) {
    CHECK(error.find("the module of rank 1 is '2 tensors, hash ") != std::string::npos);
  }
}

TEST_CASE("a window that one process passes over is an error in all, with both places") {
  for (std::string const& error : errors_of({.nets = equal_nets(4), .odd = "skips"})) {
    CAPTURE(error);
    CHECK(error.find("the processes are at different places of the run: rank 2 is at epoch 0, "
                     "position 16, step 1 in a verdict, and rank 0 at epoch 0, position "
                     "32, step 2 in the losses of a step") != std::string::npos);
  }
}

TEST_CASE("a loss that a policy refuses in one process has all of them pass over its window") {
  for (std::string const& error : errors_of({.nets = equal_nets(4), .odd = "refuses"})) {
    CHECK(error == "");
  }
}

TEST_CASE("copies that come apart are found after the next checkpoint, with the last common step") {
  for (std::string const& error : errors_of({.nets = equal_nets(4), .odd = "drifts"})) {
    CAPTURE(error);
    CHECK(error.find("the weights of rank 2 and rank 0 differ since step 0") != std::string::npos);
  }
}

TEST_CASE("a process that does not see the run directory is told so when the fit begins") {
  auto const errors = errors_of({.nets = equal_nets(4), .apart = " of another machine"});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CAPTURE(errors[rank]);
    CHECK(errors[rank].find(std::string(rank == 3 ? "this process does" : "another process does") +
                            " not see the run directory as the first one has it") !=
          std::string::npos);
  }
}

TEST_CASE("what two fits must not use at one time") {
  auto const one = fr::Communicator::join(fr::World{}), other = fr::Communicator::join(fr::World{});
  CHECK(fr::Replicate<fr::Exact>{.with = one}.exchanges() == one.get());
  CHECK(fr::Replicate<fr::Ring>{.with = other}.exchanges() == other.get());
  fr::Grid const grid = fr::Grid::of(one, {});
  CHECK(fr::Replicate<fr::Exact>{.with = grid.data}.exchanges() == one.get());
  CHECK(fr::Pipeline<>{.with = grid.stages}.exchanges() == one.get());
}

}  // namespace frugal_test::cluster_replicate_exact
