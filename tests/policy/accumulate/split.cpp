// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <c10/util/Exception.h>
#include <torch/nn/modules/batchnorm.h>

#include <new>

#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/activations.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/report/find_learning_rate.hpp>
#include <frugal/report/throughput.hpp>

#include "support/files.hpp"
#include "support/training.hpp"

template <>
struct frugal::batch_traits<std::pair<at::Tensor, at::Tensor>> {
  using Pair = std::pair<at::Tensor, at::Tensor>;
  static std::int64_t samples(Pair const& batch) { return batch.first.size(0); }
  static std::int64_t tokens(Pair const& batch) {
    return batch.second.ne(-100).sum().item<std::int64_t>();
  }
  static void to(Pair&, at::Device) {}
  static Pair narrow(Pair const& batch, std::int64_t begin, std::int64_t count) {
    return {batch.first.narrow(0, begin, count), batch.second.narrow(0, begin, count)};
  }
};

namespace frugal_test::policy_accumulate_split {

using namespace frugal_test::support;
using frugal::Accumulate;
using frugal::Auto;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;
using frugal::detail::Parts;
namespace k = frugal::kinds;

using Split = Accumulate<Auto>;

enum class Where { forward, backward, bad_alloc, nested };

/// Simulated memory that holds a given number of samples, fewer from some step on: cross entropy
/// that runs out of it after statistics and generators have changed.
struct Tight {
  std::int64_t holds = 1 << 20;
  std::int64_t later = 1 << 20;
  std::uint64_t from = 1 << 30;
  Where where = Where::forward;
  std::uint64_t* step = nullptr;
  int* passes = nullptr;

  /// Fails in backward.
  struct Fails : torch::autograd::Function<Fails> {
    static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor const& loss) {
      return loss.clone();
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list const&) {
      fail();
      return {};
    }
  };
  [[noreturn]] static void fail() {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "a test has no memory");
  }

  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    if (passes) ++*passes;
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (!at::GradMode::is_enabled()) return loss;
    if (batch.data.size(0) <= (step && *step >= from ? later : holds)) return loss;
    switch (where) {
      case Where::backward:
        loss.value = Fails::apply(loss.value);
        return loss;
      case Where::bad_alloc:
        throw std::bad_alloc();
      case Where::nested:
        try {
          fail();
        } catch (...) {
          std::throw_with_nested(std::runtime_error("a layer failed"));
        }
      case Where::forward:
        break;
    }
    fail();
  }
};

struct Result {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
  at::Tensor generator;
  std::int64_t micro_batch = 0;
  int passes = 0;
  std::vector<frugal::Counters> counters;
};

struct Plan {
  Tight memory{};
  std::int64_t samples = 0;
  double dropout = 0.3;
  bool norm = true;
  std::uint64_t epochs = 3;
};

template <class... Ps>
Result run(Plan plan, Ps const&... policies) {
  Result result;
  std::uint64_t step = 0;
  plan.memory.step = &step;
  plan.memory.passes = &result.passes;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = plan.dropout, .norm = plan.norm});
  Spy spy{.seen = &result.seen, .each_step = [&](frugal::Counters const& at) {
            step = at.step;
            result.counters.push_back(at);
            result.generator = at::detail::getDefaultCPUGenerator().get_state();
          }};
  frugal::Trainer trainer{module,
                          plan.memory,
                          frugal::Settings{.epochs = plan.epochs, .seed = 5},
                          Split{.samples = plan.samples},
                          spy,
                          policies...};
  result.report = trainer.fit(TensorDataset(samples(44), {.batch = 16, .shuffle = true}));
  result.tensors = tensors_of(*module);
  result.micro_batch = trainer.template policy<k::accumulate>().micro_batch();
  return result;
}

TEST_CASE("a batch is split into as few parts as the limit allows, of sizes that differ by one") {
  for (std::int64_t batch = 1; batch < 40; ++batch) {
    for (std::int64_t most = 0; most < 45; ++most) {
      Parts const parts(batch, most);
      std::int64_t sum = 0;
      std::int64_t least = batch;
      for (std::int64_t i = 0; i < parts.count; ++i) {
        CHECK(parts.begin(i) == sum);
        sum += parts.size(i);
        least = std::min(least, parts.size(i));
        CHECK(parts.size(i) <= parts.largest());
        if (most != 0) CHECK(parts.size(i) <= most);
      }
      CHECK(sum == batch);
      CHECK(parts.largest() - least <= 1);
      CHECK(parts.count == (most == 0 ? 1 : (batch + most - 1) / most));
    }
  }
}

TEST_CASE("unsplit, Accumulate<Auto> has the bits of a run without it") {
  auto const split = run({}, Optimize<frugal::AdamW>{});
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
  frugal::Trainer plain{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3, .seed = 5},
                        Optimize<frugal::AdamW>{}};
  auto const report = plain.fit(TensorDataset(samples(44), {.batch = 16, .shuffle = true}));
  CHECK(same_bits(split.tensors, tensors_of(*module)));
  CHECK(split.report.train_loss == report.train_loss);
  CHECK(split.report.steps == report.steps);
  CHECK(split.report.warnings.empty());
  CHECK(split.micro_batch == 0);
}

TEST_CASE("a split step is that of the whole batch: FP32, BF16, FP16, ragged last batch") {
  auto const check = [](auto precision, double losses, double weights) {
    for (std::int64_t const most : {1, 3, 5, 8, 15}) {
      CAPTURE(most);
      Plan const whole{.dropout = 0, .norm = false};
      Plan const split{.samples = most, .dropout = 0, .norm = false};
      auto const a = run(whole, Optimize<SGD>{.lr = 0.1}, precision);
      auto const b = run(split, Optimize<SGD>{.lr = 0.1}, precision);
      CHECK(b.report.steps == 9);
      CHECK(b.micro_batch == most);
      CHECK(std::abs(a.report.train_loss - b.report.train_loss) <= losses);
      for (auto const& [name, tensor] : a.tensors) {
        CAPTURE(name);
        CHECK(distance(tensor, b.tensors.at(name)) <= weights);
      }
    }
  };
  // Rounding errors of nine steps, 2^-24, 2^-9 and 2^-11, of numbers near one.
  check(frugal::Precision<frugal::FP32>{}, 1e-6, 1e-6);
  check(frugal::Precision<frugal::BF16>{}, 5e-3, 5e-3);
  check(frugal::Precision<frugal::FP16>{}, 2e-3, 2e-3);
}

TEST_CASE("micro-batches count by their weights, as in PyTorch's big batch") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "accumulate, weighted");
  // 8 batches in windows of 4 there correspond to two whole batches here.
  for (std::int64_t const most : {0, 1, 7, 12}) {
    CAPTURE(most);
    auto const net = file.network();
    auto const hand = file.network();
    auto all = file.batches({17, 23});
    std::vector<std::pair<at::Tensor, at::Tensor>> batches;
    for (auto const& each : all) {
      at::Tensor target = each.rows.target.clone();
      // Every second label from the fourth on is padding, so the weights are unequal.
      for (std::int64_t i = 3; i < target.size(0); i += 2) target[i] = -100;
      batches.emplace_back(each.rows.data, target);
    }
    auto const objective = [](auto& module, std::pair<at::Tensor, at::Tensor> const& batch) {
      auto const labels = batch.second.ne(-100).sum();
      auto const sum = at::cross_entropy_loss(frugal::forward(module, batch.first), batch.second,
                                              {}, at::Reduction::Sum);
      double const count = labels.template item<double>();
      return frugal::Loss{.value = count == 0 ? sum : sum / count, .weight = count};
    };
    frugal::Trainer trainer{net, objective, frugal::Settings{.epochs = 2}, Optimize<SGD>{.lr = 0.3},
                            Split{.samples = most}};
    static_cast<void>(trainer.fit(batches));
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto const& batch : batches) {
        auto copy = hand;
        copy->zero_grad();
        objective(copy, batch).value.backward();
        at::NoGradGuard const no_gradients;
        for (at::Tensor& parameter : copy->parameters()) parameter.sub_(parameter.grad(), 0.3);
      }
    }
    auto const found = tensors_of(*net);
    for (auto const& [name, tensor] : tensors_of(*hand)) {
      CHECK(distance(tensor, found.at(name)) < 1e-6);
    }
  }
  CHECK(which.at("window") == 4);
}

/// A run that ran out of memory at `step` equals one that was stopped there and given the size.
template <class... Ps>
void equals_told(Where where, Ps const&... policies) {
  CAPTURE(static_cast<int>(where));
  Plan struck{.memory = {.later = 7, .from = 4, .where = where}};
  auto const a = run(struck, policies...);
  CHECK(a.micro_batch == 4);
  // The same run, unsplit for four steps, then saved, and resumed with the split given.
  std::map<std::uint64_t, Frozen> saved;
  auto const before =
      run({.memory = {.where = where}}, policies..., Resume{.after_step = &saved, .stop_at = 4});
  Frozen from = saved.at(4);
  from.run.values.at("policies/Accumulate/samples") = std::int64_t{4};
  from.run.values.at("policies/Accumulate/known") = true;
  auto const b = run({.memory = {.where = where}}, policies..., Resume{.from = &from});
  CHECK(b.micro_batch == 4);
  CHECK(same_bits(a.tensors, b.tensors));
  CHECK(at::equal(a.generator, b.generator));
  CHECK(a.report.train_loss == b.report.train_loss);
  CHECK(a.report.samples == b.report.samples);
  CHECK(a.counters.back() == b.counters.back());
  CHECK(a.seen.rates.size() == before.seen.rates.size() + b.seen.rates.size());
}

TEST_CASE("a run that ran out of memory is, bit for bit, one with the split given from there") {
  equals_told(Where::forward, Optimize<frugal::AdamW>{});
  equals_told(Where::backward, Optimize<frugal::AdamW>{});
  equals_told(Where::bad_alloc, Optimize<SGD>{.lr = 0.1});
  equals_told(Where::nested, Optimize<SGD>{.lr = 0.1});
}

TEST_CASE("so is a run with every policy that takes part in a window") {
  equals_told(Where::forward, Optimize<frugal::AdamW>{}, frugal::Precision<frugal::BF16>{},
              frugal::ClipNorm<>{});
  equals_told(Where::backward, Optimize<frugal::AdamW>{}, frugal::Precision<frugal::FP16>{},
              frugal::ClipNorm<>{});
  equals_told(Where::backward, Optimize<SGD>{.lr = 0.1}, frugal::Recompute<frugal::Segments<2>>{});
  equals_told(Where::forward, Optimize<SGD>{.lr = 0.1},
              frugal::Recompute<frugal::Modules<frugal::OfType<torch::nn::Dropout>>>{});
  equals_told(Where::backward, Optimize<SGD>{.lr = 0.1}, frugal::Activations<frugal::BF16>{});
  equals_told(Where::backward, Optimize<SGD>{.lr = 0.1}, frugal::Throughput<frugal::Every<2>>{});
  equals_told(Where::forward, Optimize<frugal::Any>{.make = [](std::vector<at::Tensor> parameters) {
                return std::make_unique<torch::optim::RMSprop>(std::move(parameters), 1e-2);
              }});
}

TEST_CASE("LBFGS, which evaluates a window again, is split in the middle of a step as well") {
  auto const lbfgs = Optimize<frugal::Any>{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::LBFGS>(
        std::move(parameters), torch::optim::LBFGSOptions(0.1).max_iter(3).history_size(4));
  }};
  auto const fit = [&](std::int64_t most, int strike) {
    int calls = 0;
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.2});
    auto const objective = [&](std::shared_ptr<Mlp>& net, frugal::Batch const& batch) {
      if (++calls == strike && batch.data.size(0) > 8) Tight::fail();
      return frugal::CrossEntropy{}(net, batch);
    };
    frugal::Trainer trainer{module, objective, frugal::Settings{.epochs = 2}, lbfgs,
                            Split{.samples = most}};
    auto const report = trainer.fit(TensorDataset(samples(44), {.batch = 16}));
    CHECK(report.steps == 6);
    CHECK(report.samples == 88);
    return std::pair(tensors_of(*module), trainer.policy<k::accumulate>().micro_batch());
  };
  // The first call is the window's own; the optimizer requests the second.
  auto const [first, halved] = fit(0, 1);
  CHECK(halved == 8);
  CHECK(same_bits(first, fit(8, 0).first));
  auto const [second, in_the_middle] = fit(0, 2);
  CHECK(in_the_middle == 8);
  for (auto const& [name, tensor] : second) CHECK(tensor.isfinite().all().item<bool>());
  // Without dropout the split does not matter, whenever memory ran out.
  auto const plain = run({.dropout = 0, .norm = false}, lbfgs);
  auto const split = run({.memory = {.later = 7, .from = 2}, .dropout = 0, .norm = false}, lbfgs);
  for (auto const& [name, tensor] : plain.tensors) {
    CHECK(distance(tensor, split.tensors.at(name)) < 1e-4);
  }
}

TEST_CASE("BatchNorm in a split batch gives a note in advice, and only there") {
  auto const speaks = [](frugal::Report const& report) {
    return std::any_of(report.warnings.begin(), report.warnings.end(), [](std::string const& line) {
      return line.find("BatchNorm takes its statistics of each micro-batch") != std::string::npos;
    });
  };
  CHECK(speaks(run({.samples = 8, .norm = true}, Optimize<SGD>{}).report));
  CHECK_FALSE(speaks(run({.samples = 8, .norm = false}, Optimize<SGD>{}).report));
  CHECK_FALSE(speaks(run({.samples = 16, .norm = true}, Optimize<SGD>{}).report));
  CHECK(speaks(run({.memory = {.holds = 15}, .norm = true}, Optimize<SGD>{}).report));
}

TEST_CASE("a window is halved until it fits, and a single sample that does not is a MemoryError") {
  auto const result = run({.memory = {.holds = 3}, .norm = false}, Optimize<SGD>{});
  CHECK(result.micro_batch == 2);
  // 16 in one, 8 in one, 4 in one; then 16 twos, and all that follows.
  CHECK(result.passes == 3 + 3 * 22);
  CHECK(result.counters.back().micro_batch == 3 * 22);
  CHECK(result.report.warnings.size() == 3);
  auto const module = std::make_shared<Mlp>();
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module, Tight{.holds = 0}, frugal::Settings{}, Optimize<SGD>{}, Split{}};
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8), {.batch = 8})), frugal::MemoryError);
  CHECK(same_bits(before, tensors_of(*module)));
  for (at::Tensor const& parameter : module->parameters()) CHECK_FALSE(parameter.grad().defined());
}

TEST_CASE("errors other than out-of-memory pass through unchanged") {
  auto const fit = [](auto objective) {
    frugal::Trainer trainer{std::make_shared<Mlp>(), objective, frugal::Settings{}, Optimize<SGD>{},
                            Split{}};
    static_cast<void>(trainer.fit(TensorDataset(samples(8), {.batch = 8})));
  };
  using Net = std::shared_ptr<Mlp>;
  CHECK_THROWS_AS(
      fit([](Net&, frugal::Batch const&) -> at::Tensor { throw std::domain_error("mine"); }),
      std::domain_error);
  CHECK_THROWS_AS(fit([](Net& net, frugal::Batch const& batch) {
                    return net->forward(batch.data.narrow(1, 0, 5)).sum();
                  }),
                  frugal::ShapeError);
  CHECK_THROWS_AS(fit([](Net& net, frugal::Batch const& batch) {
                    return net->forward(batch.data).sum() * std::nan("");
                  }),
                  frugal::NonFiniteLossError);
  CHECK_THROWS_AS((frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                                   frugal::Settings{}, Optimize<SGD>{}, Split{.samples = -1}}
                       .fit(TensorDataset(samples(8), {.batch = 8}))),
                  frugal::SettingsError);
}

TEST_CASE("a resumed run is split like the original one") {
  auto const fit = [](std::filesystem::path const& where, std::uint64_t steps, std::int64_t holds) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
    frugal::Trainer trainer{module,
                            Tight{.holds = holds},
                            frugal::Settings{.run_dir = where, .epochs = 3, .steps = steps},
                            Optimize<frugal::AdamW>{},
                            frugal::Checkpoint<frugal::Every<1>>{},
                            Split{}};
    static_cast<void>(trainer.fit(TensorDataset(samples(44), {.batch = 16, .shuffle = true})));
    CHECK(trainer.policy<k::accumulate>().micro_batch() == 4);
    return tensors_of(*module);
  };
  TemporaryFolder folder;
  auto const whole = fit(folder / "whole", 9, 5);
  for (std::uint64_t const at : {1U, 3U, 8U}) {
    auto const where = folder / std::to_string(at);
    fit(where, at, 5);
    CHECK(same_bits(whole, fit(where, 9, 1000)));
  }
}

TEST_CASE("Rollback forgets the losses of a retried window, but not the memory limit") {
  // Losses grow from window to window: a jump is judged by their mean.
  equals_told(Where::backward, Optimize<SGD>{.lr = 0.05},
              frugal::Rollback<frugal::Every<100>>{.jump = 1e6});
  // NaN at step 6 takes the run back to step 3, before memory ran out at step 4.
  int bad = 0;
  std::uint64_t step = 0;
  int failed = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& net, frugal::Batch const& batch) {
    if (step == 4 && batch.data.size(0) > 7) {
      ++failed;
      Tight::fail();
    }
    frugal::Loss loss = frugal::CrossEntropy{}(net, batch);
    if (step == 5 && bad++ == 0) loss.value = loss.value * std::nan("");
    return loss;
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.epochs = 3},
                          Optimize<SGD>{.lr = 0.1},
                          Split{},
                          frugal::Rollback<frugal::Every<3>>{},
                          Spy{.each_step = [&](frugal::Counters const& at) { step = at.step; }}};
  auto const report = trainer.fit(TensorDataset(samples(44), {.batch = 16}));
  CHECK(bad > 0);
  CHECK(failed == 2);  // 16 and 8; when the run gets there again it is split already
  CHECK(report.steps == 8);
  CHECK(trainer.policy<k::accumulate>().micro_batch() == 4);
}

TEST_CASE("a range test that runs out of memory finds the same rate as with the split given") {
  auto const suggestion = [](std::int64_t most, Tight memory) {
    frugal::Trainer trainer{std::make_shared<Mlp>(), memory, frugal::Settings{},
                            Optimize<SGD>{.lr = 0.1}, Split{.samples = most}};
    auto const curve = frugal::find_learning_rate(
        trainer, TensorDataset(samples(44), {.batch = 16}), {.from = 1e-4, .to = 10, .steps = 20});
    std::vector<double> losses;
    for (auto const& point : curve.points) losses.push_back(point.loss);
    return losses;
  };
  CHECK(suggestion(4, {}) == suggestion(0, {.holds = 7, .where = Where::backward}));
}

/// Records events, one letter each.
struct Listens {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Listens";
  };
  using listens =
      frugal::list<frugal::on::loss, frugal::on::backward, frugal::on::step, frugal::on::undo>;
  std::string* out = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Listens const& settings) : out_(settings.out) {}
    void on_loss(frugal::LossReady&) { *out_ += 'l'; }
    void on_backward(frugal::Backward&) { *out_ += 'b'; }
    void on_step(frugal::Step&) { *out_ += 's'; }
    void on_undo(frugal::WindowRetry const& phase) {
      *out_ += 'x';
      CHECK(phase.counters().micro_batch == 1);
    }

   private:
    std::string* out_;
  };
};

TEST_CASE("counters within a window are notified of the retry") {
  std::string text;
  std::uint64_t step = 0;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          Tight{.later = 7, .from = 1, .where = Where::backward, .step = &step},
                          frugal::Settings{},
                          Optimize<SGD>{},
                          Split{},
                          Listens{.out = &text},
                          Spy{.each_step = [&](frugal::Counters const& at) { step = at.step; }}};
  static_cast<void>(trainer.fit(TensorDataset(samples(44), {.batch = 16})));
  CHECK(text == "lbslxlxlblblblbslblblbs");
}

}  // namespace frugal_test::policy_accumulate_split
