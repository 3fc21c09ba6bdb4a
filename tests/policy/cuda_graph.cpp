// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/csrc/autograd/custom_function.h>

#include <frugal/data/loading/prefetch.hpp>
#include <frugal/policy/activations.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/cuda_graph.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/optimize/partition.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/policy/skip_non_finite.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/throughput.hpp>
#include <frugal/trainer.hpp>

#include "support/files.hpp"
#include "support/recorder.hpp"
#include "support/running.hpp"

#include <cmath>

namespace frugal_test::policy_graph {

using namespace frugal_test::support;
using frugal::Accumulate;
using frugal::AdamW;
using frugal::CudaGraph;
using frugal::Optimize;
using frugal::TensorDataset;
using frugal::WholeStep;
namespace k = frugal::kinds;

using Replayed = CudaGraph<WholeStep, Recorder>;
constexpr int never = 1 << 20;  // windows of warm-up

/// A CudaGraph that uses a Recorder with this log.
Replayed replayed(RecorderLog& log, int warm_up = 3) {
  return {.warm_up = warm_up, .backend = {.log = &log}};
}

/// The final weights and averages of a run, and its report.
struct Ran {
  std::map<std::string, at::Tensor> tensors;
  frugal::Report report;
};

template <class... Policies>
Ran run(Mlp::Shape const& shape, frugal::Batch const& data, Policies const&... policies) {
  auto const module = std::make_shared<Mlp>(shape);
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                          policies...};
  Ran ran;
  ran.report = trainer.fit(TensorDataset(data, {.batch = 4, .shuffle = true}),
                           TensorDataset(samples(10, 92)));
  ran.tensors = tensors_of(*module);
  using Policies_ = typename decltype(trainer)::policies;
  if constexpr (frugal::detail::has<k::average, Policies_>) {
    for (auto const& [name, tensor] : trainer.template policy<k::average>().weights().tensors) {
      ran.tensors.emplace("average/" + name, tensor);
    }
  }
  return ran;
}

bool same_report(frugal::Report const& a, frugal::Report const& b) {
  bool same = a.train_loss == b.train_loss && a.steps == b.steps && a.samples == b.samples &&
              a.non_finite_windows == b.non_finite_windows &&
              a.validations.size() == b.validations.size();
  for (std::size_t i = 0; same && i < a.validations.size(); ++i) {
    same = a.validations[i].metrics["loss"] == b.validations[i].metrics["loss"];
  }
  return same;
}

TEST_CASE("a replayed run has the weights and averages of an eager one, bit for bit") {
  auto const both = [](auto accumulate) {
    auto const with = [&](auto... execution) {
      return run(Mlp::Shape{.dropout = 0.5, .norm = true}, samples(64), accumulate,
                 Optimize<AdamW>{.lr = 0.01}, frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                 frugal::Average<frugal::Ema<0.9>>{}, execution...);
    };
    RecorderLog log;
    Ran const eager = with();
    Ran const graph = with(replayed(log));
    CHECK(same_bits(eager.tensors, graph.tensors));
    CHECK(same_report(eager.report, graph.report));
    CHECK(graph.report.warnings.empty());
    return log;
  };
  RecorderLog const one = both(Accumulate<1>{});
  CHECK(one.count("side stream") == 3);
  CHECK(one.count("capture") == 1);
  CHECK(one.count("replay") == 48 - 3);
  RecorderLog const four = both(Accumulate<4>{});
  CHECK(four.count("side stream") == 3);
  CHECK(four.count("capture") == 3);
  CHECK(four.count("replay") == (12 - 3) * 5);
}

/// Compares a replayed run with the same recipe run eagerly. Clipping computes its factor with
/// operators in both, as on a device.
template <class... Policies>
Ran same_as_eager(Mlp::Shape const& shape, frugal::Batch const& data, RecorderLog& log,
                  Policies const&... policies) {
  RecorderLog idle;
  Ran const eager = run(shape, data, policies..., replayed(idle, never));
  Ran const graph = run(shape, data, policies..., replayed(log, 2));
  CHECK(idle.count("capture") == 0);
  CHECK(log.count("capture") >= 1);
  CHECK(same_bits(eager.tensors, graph.tensors));
  CHECK(same_report(eager.report, graph.report));
  return graph;
}

TEST_CASE("with every part of a step captured a run has the bits of one that never captures") {
  auto const same = [](auto... policies) {
    RecorderLog log;
    same_as_eager(Mlp::Shape{.dropout = 0.25, .norm = true}, samples(62), log, policies...,
                  frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                  frugal::Average<frugal::Ema<0.9>>{});
  };
  same(Optimize<AdamW>{.lr = 0.01}, frugal::ClipNorm<0.3>{});
  same(Optimize<AdamW>{.lr = 0.01}, frugal::ClipNorm<0.3>{}, Accumulate<4>{});
  same(Optimize<frugal::Adam>{.lr = 0.01, .amsgrad = true}, frugal::ClipValue<0.05>{});
  same(Optimize<frugal::SGD>{.lr = 0.1, .momentum = 0.9}, frugal::ClipAdaptive<0.1>{},
       Accumulate<2>{});
  same(Optimize<frugal::Adagrad>{.lr = 0.05, .lr_decay = 0.1});
  same(Optimize<frugal::Partition<frugal::SGD, AdamW>>{
      .select = {"first.*"}, .first = {.lr = 0.1, .momentum = 0.9}, .rest = {.lr = 0.01}});
  same(Optimize<AdamW>{.groups = {frugal::no_decay_for_biases_and_norms(),
                                  frugal::group_by_pattern("second.*",
                                                           {.lr_factor = 2, .beta1 = 0.8})}},
       frugal::Precision<frugal::BF16>{}, Accumulate<2>{});
  same(Optimize<AdamW>{.lr = 0.01}, frugal::Activations<frugal::BF16>{});
}

TEST_CASE("a schedule of a parameter group is refused: a captured step has one factor") {
  RecorderLog log;
  frugal::ParameterGroup const group = frugal::group_by_pattern(
      "*", {.schedule = frugal::Schedule<frugal::Warmup<5>, frugal::Constant<>>{}});
  CHECK_THROWS_WITH_AS(
      run(Mlp::Shape{}, samples(62), Optimize<AdamW>{.groups = {group}}, replayed(log, 2)),
      doctest::Contains("CudaGraph replays a step with one factor"), frugal::SettingsError);
  CHECK(log.count("capture") == 0);
}

TEST_CASE("clipping by operators does not change gradients below the limit") {
  RecorderLog idle;
  Ran const plain = run(Mlp::Shape{}, samples(64), Optimize<AdamW>{});
  Ran const clipped = run(Mlp::Shape{}, samples(64), Optimize<AdamW>{}, frugal::ClipNorm<1000.0>{},
                          replayed(idle, never));
  CHECK(same_bits(plain.tensors, clipped.tensors));
}

TEST_CASE("a window that overflows in FP16 is no step of a replayed run either") {
  frugal::Precision<frugal::FP16> const scaled{
      .scaling = {.initial = 1e18, .backoff = 0.01, .growth_interval = 4}};
  auto const skipped = [&](auto... policies) {
    RecorderLog log;
    Ran const ran = same_as_eager(Mlp::Shape{}, samples(62), log, policies..., scaled,
                                  Optimize<AdamW>{.lr = 0.01}, frugal::Average<>{});
    return ran.report.non_finite_windows;
  };
  CHECK(skipped() > 5);
  CHECK(skipped(Accumulate<2>{}, frugal::ClipNorm<0.3>{}) > 5);
}

TEST_CASE("a window that SkipNonFinite skips is no step of a replayed run either") {
  frugal::Batch bad = samples(62);
  bad.data = bad.data.clone();
  bad.data[30].fill_(std::nanf(""));
  auto const skipped = [&](auto... policies) {
    RecorderLog log;
    Ran const ran = same_as_eager(Mlp::Shape{}, bad, log, policies..., frugal::SkipNonFinite{},
                                  Optimize<AdamW>{.lr = 0.01}, frugal::ClipNorm<0.3>{});
    CHECK(std::isfinite(ran.report.train_loss));
    return ran.report.non_finite_windows;
  };
  CHECK(skipped() == 3);
  CHECK(skipped(Accumulate<2>{}) == 3);
}

TEST_CASE("an average at another cadence than every step is updated between replays") {
  RecorderLog log;
  same_as_eager(Mlp::Shape{}, samples(62), log, Optimize<AdamW>{},
                frugal::Average<frugal::Ema<0.9, frugal::Every<3>>>{});
  same_as_eager(Mlp::Shape{}, samples(62), log, Optimize<AdamW>{},
                frugal::Average<frugal::Swa<frugal::From<1, frugal::Epoch>>>{});
}

TEST_CASE("a ragged last batch or window runs eagerly and replay continues afterwards") {
  RecorderLog log;
  Ran const one = run(Mlp::Shape{}, samples(30), Optimize<AdamW>{}, replayed(log));
  CHECK(log.count("capture") == 1);
  CHECK(log.count("replay") == 3 * 7 - 3);  // 8 batches per epoch, the last with 2 samples
  REQUIRE(one.report.warnings.size() == 1);
  CHECK(
      one.report.warnings[0] ==
      "CudaGraph: a window of batches [2, 6] Float, [2] Long ran eagerly: the graph is for [4, 6] "
      "Float, [4] Long");
  RecorderLog windows;
  Ran const four =
      run(Mlp::Shape{}, samples(40), Optimize<AdamW>{}, Accumulate<4>{}, replayed(windows));
  CHECK(windows.count("capture") == 3);
  CHECK(windows.count("replay") == (3 * 2 - 3) * 5);  // 10 batches per epoch: 4, 4 and 2
  REQUIRE(four.report.warnings.size() == 1);
  CHECK(four.report.warnings[0].find("of fewer micro-batches") != std::string::npos);
}

/// Batches with these numbers of samples.
std::vector<frugal::Batch> batches_of(std::initializer_list<std::int64_t> sizes) {
  std::vector<frugal::Batch> batches;
  std::uint32_t stream = 91;
  for (std::int64_t const size : sizes) batches.push_back(samples(size, stream++));
  return batches;
}

TEST_CASE("shapes that change permanently are captured again, up to most_captures times") {
  auto const batches = batches_of({4, 4, 4, 6, 6, 6, 6, 4, 4, 4, 4});
  auto const fit = [&](Replayed graph) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{},
                            Optimize<AdamW>{.lr = 0.01}, graph};
    static_cast<void>(trainer.fit(batches));
    return tensors_of(*module);
  };
  RecorderLog idle, log, once;
  auto const eager = fit(replayed(idle, never));
  CHECK(same_bits(eager, fit(replayed(log, 2))));
  CHECK(log.count("capture") == 3);
  CHECK(log.count("replay") == 1 + 2 + 2);
  Replayed first_only = replayed(once, 2);
  first_only.most_captures = 1;
  CHECK(same_bits(eager, fit(first_only)));
  CHECK(once.count("capture") == 1);
  CHECK(once.count("replay") == 1 + 4);
}

TEST_CASE("batches of the captured shape with another element type are not replayed") {
  auto batches = batches_of({4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (i != 6 && i != 7) batches[i].data = (batches[i].data * 10).to(at::kInt);
  }
  auto const fit = [&](int warm_up, RecorderLog& log) {
    auto const module = std::make_shared<Mlp>();
    auto const objective = [](auto& net, frugal::Batch const& batch) {
      return at::cross_entropy_loss(net->forward(batch.data.to(at::kFloat)), batch.target);
    };
    frugal::Trainer trainer{module, objective, frugal::Settings{}, Optimize<AdamW>{.lr = 0.01},
                            replayed(log, warm_up)};
    static_cast<void>(trainer.fit(batches));
    return tensors_of(*module);
  };
  RecorderLog idle, log;
  CHECK(same_bits(fit(never, idle), fit(2, log)));
  CHECK(log.count("replay") > 0);
}

/// Cross entropy with an extra action in every pass.
template <class Deed>
struct With {
  Deed deed;
  frugal::Loss operator()(Mlp& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    deed(module, loss);
    return loss;
  }
};
template <class Deed>
frugal::Report fit_with(Deed deed, Replayed const& graph) {
  frugal::Trainer trainer{Mlp{}, With<Deed>{deed}, frugal::Settings{}, Optimize<AdamW>{}, graph};
  return trainer.fit(TensorDataset(samples(40), {.batch = 4}));
}

TEST_CASE("a step that waits for the device is not captured, and the report says so") {
  RecorderLog log;
  auto const report = fit_with(
      [](Mlp&, frugal::Loss& loss) {
        if (loss.value.template item<double>() < 0) throw std::runtime_error("negative");
      },
      replayed(log));
  CHECK(report.steps == 10);
  CHECK(log.count("capture") == 1);
  CHECK(log.count("broken off") == 1);
  CHECK(log.count("replay") == 0);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("steps run eagerly") != std::string::npos);
  CHECK(report.warnings[0].find("operation not permitted when stream is capturing") !=
        std::string::npos);
}

/// The identity; its gradient reads a number from the device.
struct AsksInBackward : torch::autograd::Function<AsksInBackward> {
  static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor const& loss) {
    return loss.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list const& gradients) {
    static_cast<void>(gradients[0].item<double>());
    return gradients;
  }
};

TEST_CASE("a capture that fails in backward does not affect later eager steps") {
  auto const deed = [](Mlp&, frugal::Loss& loss) {
    loss.value = AsksInBackward::apply(loss.value);
  };
  RecorderLog idle;
  RecorderLog log;
  auto const eager = fit_with(deed, replayed(idle, 100));
  auto const failed = fit_with(deed, replayed(log));
  CHECK(idle.count("capture") == 0);
  CHECK(log.count("broken off") == 1);
  CHECK(failed.steps == eager.steps);
  CHECK(failed.train_loss == eager.train_loss);
}

TEST_CASE("weights that differ between batches of one shape are not replayed") {
  RecorderLog log;
  int call = 0;
  auto const report =
      fit_with([&](Mlp&, frugal::Loss& loss) { loss.weight = ++call; }, replayed(log));
  CHECK(report.steps == 10);
  CHECK(log.count("replay") == 0);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("weighs batches of one shape differently") != std::string::npos);
}

TEST_CASE("an exception of the objective during a capture leaves the fit") {
  RecorderLog log;
  int call = 0;
  auto const throwing = [&](Mlp&, frugal::Loss&) {
    if (++call >= 4) throw std::runtime_error("the fourth");
  };
  CHECK_THROWS_WITH_AS(fit_with(throwing, replayed(log)), "the fourth", std::runtime_error);
  CHECK(log.count("broken off") == 1);
}

TEST_CASE("a module's own generator must be registered") {
  at::Generator own = at::detail::createCPUGenerator(7);
  auto const noisy = [&](Mlp&, frugal::Loss& loss) {
    loss.value = loss.value * (1 + 0.1 * at::rand({}, own));
  };
  RecorderLog log;
  Replayed graph = replayed(log);
  CHECK(fit_with(noisy, graph).warnings.size() == 1);
  CHECK(log.count("replay") == 0);
  graph.generators = {own};
  own.set_current_seed(7);
  double const replays = fit_with(noisy, graph).train_loss;
  CHECK(log.count("replay") == 7);
  own.set_current_seed(7);
  graph.warm_up = never;
  CHECK(fit_with(noisy, graph).train_loss == replays);
}

/// Records when it is paused.
struct Watched {
  TensorDataset inner;
  bool* paused;
  int* pauses;

  void seek(frugal::Cursor const& cursor) { inner.seek(cursor); }
  std::optional<frugal::Batch> next() {
    CHECK_FALSE(*paused);
    return inner.next();
  }
  bool pause() {
    ++*pauses;
    if (refusals-- > 0) return false;
    return *paused = true;
  }
  void resume() { *paused = false; }

  int refusals = 0;
};

TEST_CASE("the source is paused during a capture, and at no other time") {
  bool paused = false;
  int pauses = 0;
  int looks = 0;
  Replayed graph;
  graph.backend.at_capture = [&] {
    ++looks;
    CHECK(paused);
  };
  frugal::Trainer trainer{
      Mlp{}, frugal::CrossEntropy{}, frugal::Settings{}, Optimize<AdamW>{}, Accumulate<2>{}, graph};
  static_cast<void>(
      trainer.fit(Watched{TensorDataset(samples(64), {.batch = 4}), &paused, &pauses}));
  CHECK(looks == 3);
  CHECK(pauses == 1);
  CHECK_FALSE(paused);
}

TEST_CASE("while the source cannot be paused nothing is captured, and windows are eager") {
  bool paused = false;
  int pauses = 0;
  RecorderLog log;
  frugal::Trainer trainer{Mlp{}, frugal::CrossEntropy{}, frugal::Settings{}, Optimize<AdamW>{},
                          replayed(log)};
  static_cast<void>(trainer.fit(
      Watched{TensorDataset(samples(40), {.batch = 4}), &paused, &pauses, /*refusals=*/2}));
  CHECK(pauses == 3);
  CHECK(log.count("capture") == 1);
  CHECK(log.count("replay") == 10 - 3 - 2);
}

TEST_CASE("a prefetched source gives a replayed run the same bits") {
  auto const fit = [](auto source, auto... execution) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                            Optimize<AdamW>{.lr = 0.01}, execution...};
    static_cast<void>(trainer.fit(std::move(source)));
    return tensors_of(*module);
  };
  TensorDataset const plain(samples(40), {.batch = 4, .shuffle = true});
  RecorderLog log;
  CHECK(same_bits(fit(plain), fit(frugal::Prefetch(plain), replayed(log))));
  CHECK(log.count("replay") == 17);
}

TEST_CASE("a resumed replayed run has the bits of an uninterrupted one") {
  auto const fit = [](Resume resume, RecorderLog& log) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 3},
                            Optimize<AdamW>{.lr = 0.01},
                            frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                            frugal::ClipNorm<0.3>{},
                            frugal::Average<frugal::Ema<0.9>>{},
                            Accumulate<2>{},
                            replayed(log, 2),
                            resume};
    static_cast<void>(trainer.fit(TensorDataset(samples(62), {.batch = 4, .shuffle = true})));
    auto all = tensors_of(*module);
    for (auto const& [name, tensor] : trainer.template policy<k::average>().weights().tensors) {
      all.emplace("average/" + name, tensor);
    }
    return all;
  };
  RecorderLog log;
  std::map<std::uint64_t, Frozen> frozen;
  auto const whole = fit({.after_step = &frozen}, log);
  REQUIRE(frozen.size() == 24);
  for (std::uint64_t const step : {1U, 5U, 8U, 13U, 24U}) {
    RecorderLog again;
    CHECK(same_bits(whole, fit({.from = &frozen.at(step)}, again)));
    CHECK((again.count("replay") > 0) == (step < 20));
  }
}

TEST_CASE("a checkpoint of a replayed run resumes, and an eager run refuses it") {
  RecorderLog log;
  auto const fit = [](std::filesystem::path const& folder, std::uint64_t steps, auto... execution) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.run_dir = folder, .epochs = 3, .steps = steps},
                            Optimize<AdamW>{.lr = 0.01},
                            frugal::Checkpoint<frugal::Every<100>>{},
                            frugal::Log<frugal::Every<2>>{},
                            execution...};
    static_cast<void>(trainer.fit(TensorDataset(samples(40), {.batch = 4, .shuffle = true})));
    return tensors_of(*module);
  };
  TemporaryFolder const whole;
  TemporaryFolder const parts;
  fit(parts.path(), 12, replayed(log));
  CHECK(same_bits(fit(whole.path(), 30, replayed(log)), fit(parts.path(), 30, replayed(log))));
  CHECK_THROWS_AS(fit(parts.path(), 30), frugal::StateError);
}

TEST_CASE("after a rollback the step is captured again, because its tensors have moved") {
  auto batches = batches_of({4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
  batches[6].data[0][0] = std::nan("");
  auto const fit = [&](int warm_up, RecorderLog& log) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{},
                            Optimize<AdamW>{.lr = 0.01},
                            frugal::Average<>{},
                            frugal::Rollback<frugal::Every<1>>{},
                            replayed(log, warm_up)};
    auto const report = trainer.fit(batches);
    CHECK(report.steps == 11);
    return tensors_of(*module);
  };
  RecorderLog idle, log;
  CHECK(same_bits(fit(never, idle), fit(2, log)));
  CHECK(log.count("capture") == 2);
}

/// A layer that is skipped for small batches, so that its parameters have no gradients.
struct Sometimes : torch::nn::Module {
  Sometimes()
      : first(register_module("first", torch::nn::Linear(6, 3))),
        second(register_module("second", torch::nn::Linear(6, 3))) {
    at::NoGradGuard const no_gradients;
    std::uint32_t which = 0;
    for (at::Tensor& each : parameters()) each.copy_(table(each.sizes().vec(), 90, which++));
  }
  at::Tensor forward(at::Tensor const& x) {
    at::Tensor const y = first->forward(x);
    return x.size(0) < 4 ? y : y + second->forward(x);
  }
  torch::nn::Linear first, second;
};

TEST_CASE("when the optimizer's counters diverge the step is captured again") {
  auto const batches = batches_of({4, 4, 4, 4, 2, 4, 4, 4, 4, 4});
  auto const fit = [&](int warm_up, RecorderLog& log) {
    auto const module = std::make_shared<Sometimes>();
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{},
                            Optimize<AdamW>{.lr = 0.1}, replayed(log, warm_up)};
    static_cast<void>(trainer.fit(batches));
    return tensors_of(*module);
  };
  RecorderLog idle, log;
  CHECK(same_bits(fit(never, idle), fit(2, log)));
  CHECK(log.count("capture") == 2);
  CHECK(log.count("replay") == 2 + 3);
}

/// Reads the norm and the loss of every step, like a log.
struct Norms {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Norms";
  };
  using listens = frugal::list<frugal::on::step>;
  using after = everything;
  std::vector<double>* seen = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Norms const& settings) : seen_(settings.seen) {}
    void on_step(frugal::Step& phase) {
      seen_->push_back(phase.gradient_norm().value());
      seen_->push_back(phase.last_loss());
    }

   private:
    std::vector<double>* seen_;
  };
};

TEST_CASE("losses and the gradients' norms are those of each step, not of the captured one") {
  auto const norms = [](int warm_up) {
    std::vector<double> seen;
    RecorderLog log;
    run(Mlp::Shape{}, samples(30), Optimize<AdamW>{}, frugal::ClipNorm<0.1>{}, Norms{&seen},
        replayed(log, warm_up));
    return seen;
  };
  auto const seen = norms(2);
  CHECK(seen.size() == 48);
  CHECK(seen == norms(never));
  CHECK(std::set<double>(seen.begin(), seen.end()).size() == 48);
}

TEST_CASE("operations are counted in a step that is not replayed") {
  auto const flops = [](auto... execution) {
    frugal::Trainer trainer{Mlp{},
                            frugal::CrossEntropy{},
                            frugal::Settings{},
                            Optimize<AdamW>{},
                            frugal::Throughput<frugal::Every<2>>{.peak_flops = 1e12},
                            execution...};
    static_cast<void>(trainer.fit(TensorDataset(samples(64), {.batch = 4})));
    return trainer.template policy<k::throughput>().last()->flops_per_step;
  };
  RecorderLog log;
  double const eager = flops().value();
  CHECK(eager > 0);
  CHECK(flops(replayed(log)).value() == doctest::Approx(eager));
  CHECK(log.count("replay") == 13);
}

/// A user-defined batch, with its own tensor names.
struct Pair {
  at::Tensor left, right;
};

TEST_CASE("on a CPU it throws an error that says what to write instead") {
  frugal::Trainer trainer{Mlp{}, frugal::CrossEntropy{}, frugal::Settings{}, Optimize<AdamW>{},
                          CudaGraph<WholeStep>{}};
  try {
    static_cast<void>(trainer.fit(TensorDataset(samples(8), {.batch = 4})));
    FAIL("it trained");
  } catch (frugal::SettingsError const& error) {
    CHECK(error.fault().what == "CudaGraph<WholeStep> on cpu");
    CHECK(error.fault().fix.find("Remove CudaGraph<WholeStep>, so that steps run eagerly") == 0);
  }
}

TEST_CASE("CudaGraph's settings must be at least 1") {
  RecorderLog log;
  CHECK_THROWS_AS(fit_with([](Mlp&, frugal::Loss&) {}, replayed(log, 0)), frugal::SettingsError);
  Replayed graph = replayed(log);
  graph.most_captures = 0;
  CHECK_THROWS_AS(fit_with([](Mlp&, frugal::Loss&) {}, graph), frugal::SettingsError);
}

TEST_CASE("recipes with host syncs within a step, or random draws in backward, are not legal") {
  using frugal::Recipe;
  using Job = Recipe<CudaGraph<>>;
  CHECK(Job::with<Optimize<AdamW>>::legal);
  CHECK(Job::with<Optimize<frugal::SGD>>::with<frugal::Precision<frugal::FP16>>::legal);
  CHECK(Job::with<Optimize<frugal::Any>>::fault == frugal::detail::waits_in_graph::text);
  CHECK(Job::with<frugal::Recompute<>>::fault == frugal::detail::not_capturable::text);
  CHECK(Job::with<frugal::Activations<frugal::Offload>>::fault ==
        frugal::detail::not_capturable::text);
  CHECK(Job::with<Spy>::fault == frugal::detail::not_capturable::text);
  CHECK(Recipe<Optimize<frugal::Any>, frugal::Recompute<>, frugal::Eager>::legal);
}

TEST_CASE("the recorder is as strict as a device") {
  Recorder recorder;
  at::Tensor const x = at::ones({2});
  at::Tensor result;
  double factor = 3;
  // A host number keeps its value, and writes within a capture have no effect.
  Tape tape = recorder.capture({}, [&] {
    result = x * factor;
    x.add_(1);
  });
  CHECK(x.equal(at::ones({2})));
  CHECK(result.isnan().all().item<bool>());
  factor = 5;
  x.fill_(2);
  tape.replay();
  CHECK(result.equal(at::full({2}, 6.0)));
  CHECK(x.equal(at::full({2}, 3.0)));
  // Memory that nothing keeps alive is freed.
  at::Tensor input = at::ones({2});
  Tape late = recorder.capture({}, [&] { result = input * 2; });
  late.replay();
  input = at::Tensor();
  CHECK_THROWS_AS(late.replay(), c10::Error);
  CHECK_THROWS_AS(recorder.capture({}, [&] { static_cast<void>(x.sum().item<double>()); }),
                  c10::Error);
}

}  // namespace frugal_test::policy_graph

/// Tensors with names that frugal does not know.
template <>
struct frugal::batch_traits<frugal_test::policy_graph::Pair> {
  using Pair = frugal_test::policy_graph::Pair;
  static std::int64_t samples(Pair const& batch) { return batch.left.size(0); }
  static std::int64_t tokens(Pair const& batch) { return batch.left.size(0); }
  static void to(Pair&, at::Device) {}
  template <class Self, class F>
  static void each_tensor(Self& batch, F&& f) {
    f(batch.left);
    f(batch.right);
  }
};

namespace frugal_test::policy_graph {

TEST_CASE("a user-defined batch type declares its tensors") {
  std::vector<Pair> batches;
  for (frugal::Batch const& each : batches_of({4, 4, 4, 4, 4, 4, 4})) {
    batches.push_back({each.data, each.target});
  }
  auto const fit = [&](auto... execution) {
    auto const module = std::make_shared<Mlp>();
    auto const objective = [](auto& net, Pair const& batch) {
      return at::cross_entropy_loss(net->forward(batch.left), batch.right);
    };
    frugal::Trainer trainer{module, objective, frugal::Settings{}, Optimize<AdamW>{}, execution...};
    static_cast<void>(trainer.fit(batches));
    return tensors_of(*module);
  };
  RecorderLog log;
  CHECK(same_bits(fit(), fit(replayed(log))));
  CHECK(log.count("replay") == 4);
}

}  // namespace frugal_test::policy_graph
