// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features, C channels.
#include <doctest/doctest.h>

#include <frugal/policy/auto_batch.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/dry_run.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/report/explain.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/throughput.hpp>
#include <frugal/trainer.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_auto_batch {

using namespace frugal_test::support;
using frugal::Accumulate;
using frugal::Auto;
using frugal::AutoBatch;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;
namespace k = frugal::kinds;

using Split = Accumulate<Auto>;
constexpr std::int64_t kib = 1024;

/// Takes 256 KiB per sample for the duration of forward and backward, in addition to cross entropy;
/// more from some step on.
struct Hungry {
  std::int64_t bytes = 256 * kib;
  std::int64_t later = 256 * kib;
  std::uint64_t from = 1 << 30;
  std::uint64_t* step = nullptr;

  /// Saves a tensor of that many bytes per sample for backward.
  struct Eats : torch::autograd::Function<Eats> {
    static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor const& loss,
                              std::int64_t bytes) {
      context->save_for_backward({at::empty({bytes}, at::kByte)});
      return loss.clone();
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   torch::autograd::variable_list const& grads) {
      return {grads[0], at::Tensor()};
    }
  };

  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (!at::GradMode::is_enabled()) return loss;
    std::int64_t const each = step && *step >= from ? later : bytes;
    loss.value = Eats::apply(loss.value, each * batch.data.size(0));
    return loss;
  }
};

struct Result {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
  at::Tensor generator;
  std::map<std::uint64_t, Frozen> after_step;
  std::int64_t micro_batch = 0;
  std::vector<frugal::Counters> counters;
};

struct Plan {
  Hungry hungry{};
  std::int64_t samples = 0;
  double dropout = 0.3;
  bool norm = false;
  std::int64_t batch = 16;
};

template <class... Ps>
Result run(Plan plan, Ps const&... policies) {
  Result result;
  std::uint64_t step = 0;
  plan.hungry.step = &step;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = plan.dropout, .norm = plan.norm});
  Spy spy{.seen = &result.seen, .each_step = [&](frugal::Counters const& at) {
            step = at.step;
            result.counters.push_back(at);
            result.generator = at::detail::getDefaultCPUGenerator().get_state();
          }};
  frugal::Trainer trainer{module,
                          plan.hungry,
                          frugal::Settings{.epochs = 3, .seed = 5},
                          Split{.samples = plan.samples},
                          spy,
                          Resume{.after_step = &result.after_step},
                          policies...};
  result.report = trainer.fit(TensorDataset(samples(44), {.batch = plan.batch, .shuffle = true}));
  result.tensors = tensors_of(*module);
  result.micro_batch = trainer.template policy<k::accumulate>().micro_batch();
  return result;
}

bool same(Result const& a, Result const& b) {
  CHECK(same_bits(a.tensors, b.tensors));
  CHECK(at::equal(a.generator, b.generator));
  CHECK(a.report.train_loss == b.report.train_loss);
  CHECK(a.seen.losses == b.seen.losses);
  CHECK(a.seen.rates == b.seen.rates);
  CHECK(a.seen.gradient_norms == b.seen.gradient_norms);
  CHECK((a.counters == b.counters));
  CHECK(a.micro_batch == b.micro_batch);
  return true;
}

/// Whether everything persisted after each step is equal, too: moments, scales, counters, losses.
bool same_states(Result const& a, Result const& b) {
  if (a.after_step.size() != b.after_step.size()) return false;
  for (auto const& [step, frozen] : a.after_step) {
    frugal::StateDict left = frozen.run;
    frugal::StateDict right = b.after_step.at(step).run;
    left.values.erase("policies/Log/size");
    right.values.erase("policies/Log/size");
    if (!(left == right)) return false;
  }
  return true;
}

// 16 samples take 4 MiB and a little for the network; 8 take 2 MiB.
AutoBatch const for_eight{.limit = 3 * kib * kib, .margin = 0.1};
AutoBatch const for_sixteen{.limit = 6 * kib * kib, .margin = 0.1};

TEST_CASE("AutoBatch finds the largest micro-batch below limit and margin, and reports it") {
  struct Case {
    std::int64_t limit;
    double margin;
    std::int64_t found;
  };
  // Parts of 16 samples have at most 16, 8, 6, 4, 3, 2 or 1; each sample takes 256 KiB.
  for (Case const& which :
       {Case{6 * kib * kib, 0.1, 0}, Case{3 * kib * kib, 0.1, 8}, Case{2200 * kib, 0, 8},
        Case{2200 * kib, 0.1, 6}, Case{1200 * kib, 0.1, 4}, Case{900 * kib, 0.1, 3},
        Case{700 * kib, 0.1, 2}, Case{400 * kib, 0.1, 1}}) {
    CAPTURE(which.limit);
    auto const result =
        run({}, Optimize<frugal::AdamW>{}, AutoBatch{.limit = which.limit, .margin = which.margin});
    CHECK(result.micro_batch == which.found);
    CHECK(result.report.steps == 9);
    REQUIRE(result.report.warnings.size() == 1);
    CHECK(result.report.warnings.front() ==
          (which.found == 0 ? "AutoBatch: a batch of 16 samples fits whole"
                            : "AutoBatch: micro-batches of " + std::to_string(which.found) +
                                  " samples fit, of batches of 16"));
  }
}

TEST_CASE("a fit with a search has the bits of one with the size given") {
  auto const any = Optimize<frugal::Any>{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::RMSprop>(std::move(parameters), 1e-2);
  }};
  auto const check = [](bool norm, auto const&... policies) {
    for (bool const whole : {false, true}) {
      CAPTURE(whole);
      Plan plan{.norm = norm};
      auto const probed = run(plan, whole ? for_sixteen : for_eight, policies...);
      plan.samples = whole ? 0 : 8;
      auto const told = run(plan, policies...);
      CHECK(probed.micro_batch == plan.samples);
      CHECK(same(probed, told));
      // The bytes of torch's archive differ in every run.
      bool const comparable =
          !(std::same_as<std::remove_cvref_t<decltype(policies)>, Optimize<frugal::Any>> || ...);
      if (comparable && !whole) CHECK(same_states(probed, told));
    }
  };
  check(true, Optimize<frugal::AdamW>{}, frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>{},
        frugal::ClipNorm<>{});
  check(false, Optimize<SGD>{.lr = 0.1, .momentum = 0.9}, frugal::Precision<frugal::BF16>{});
  check(true, Optimize<frugal::Adagrad>{}, frugal::Precision<frugal::FP16>{});
  check(false, any, frugal::Throughput<frugal::Every<2>>{});
  check(false, Optimize<SGD>{.lr = 0.1}, frugal::Rollback<frugal::Every<3>>{.jump = 50},
        frugal::DryRun<>{.out = nullptr});
  check(true, Optimize<SGD>{.lr = 0.1}, frugal::Recompute<frugal::Segments<2>>{});
}

TEST_CASE("the limit holds in later steps, and a step that exceeds it is split as if given") {
  Plan plan{.hungry = {.later = 512 * kib, .from = 4}, .norm = true};
  auto const struck = run(plan, Optimize<frugal::AdamW>{}, for_eight);
  CHECK(struck.micro_batch == 4);
  CHECK(struck.report.steps == 9);
  REQUIRE(struck.report.warnings.size() == 3);
  CHECK(struck.report.warnings[0] == "AutoBatch: micro-batches of 8 samples fit, of batches of 16");
  CHECK(struck.report.warnings[1].find("BatchNorm") != std::string::npos);
  CHECK(struck.report.warnings[2].find("memory ran out at step 4 with 8 samples") !=
        std::string::npos);
  // Two parts each in the first epoch except its last batch of 12, then four and three.
  std::vector<std::uint64_t> parts;
  for (auto const& at : struck.counters) parts.push_back(at.window_micro_batches);
  CHECK(parts == std::vector<std::uint64_t>{2, 2, 2, 2, 4, 3, 4, 4, 3});
  CHECK(struck.counters.back().sample == 3 * 44);
  CHECK(struck.counters.back().micro_batch == 26);
}

TEST_CASE("a limit that does not hold one sample is a MemoryError, before and during training") {
  for (std::int64_t const limit : {1 * kib, 200 * kib}) {
    auto const module = std::make_shared<Mlp>();
    auto const before = tensors_of(*module);
    frugal::Trainer trainer{module,          Hungry{}, frugal::Settings{},
                            Optimize<SGD>{}, Split{},  AutoBatch{.limit = limit}};
    CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8), {.batch = 4})), frugal::MemoryError);
    CHECK(same_bits(before, tensors_of(*module)));
    for (at::Tensor const& parameter : module->parameters())
      CHECK_FALSE(parameter.grad().defined());
  }
  Plan plan{.hungry = {.later = 16 * kib * kib, .from = 2}};
  try {
    run(plan, Optimize<SGD>{}, for_eight);
    FAIL("nothing was thrown");
  } catch (frugal::MemoryError const& error) {
    CHECK(error.fault().where == "step 2, Accumulate<Auto>");
    CHECK(frugal::detail::is_out_of_memory(std::current_exception()));
  }
}

TEST_CASE("BatchNorm refuses one sample, and the search continues with two") {
  Plan const plan{.norm = true};
  auto const two = run(plan, Optimize<SGD>{}, AutoBatch{.limit = 700 * kib});
  CHECK(two.micro_batch == 2);
  CHECK_THROWS_AS(run(plan, Optimize<SGD>{}, AutoBatch{.limit = 400 * kib}), frugal::MemoryError);
}

TEST_CASE("an error other than out-of-memory ends the search, and the module is unchanged") {
  auto const module = std::make_shared<Mlp>();
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module,          Hungry{}, frugal::Settings{},
                          Optimize<SGD>{}, Split{},  for_eight};
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8, 91, 5), {.batch = 4})), frugal::ShapeError);
  CHECK(same_bits(before, tensors_of(*module)));
}

TEST_CASE("AutoBatch refuses invalid settings") {
  auto const fit = [](AutoBatch policy) {
    frugal::Trainer trainer{std::make_shared<Mlp>(), Hungry{}, frugal::Settings{},
                            Optimize<SGD>{},         Split{},  policy};
    static_cast<void>(trainer.fit(TensorDataset(samples(8), {.batch = 4})));
  };
  CHECK_THROWS_AS(fit({}), frugal::SettingsError);
  CHECK_THROWS_AS(fit({.limit = -1}), frugal::SettingsError);
  CHECK_THROWS_AS(fit({.limit = kib * kib, .margin = 1}), frugal::SettingsError);
  CHECK_THROWS_AS(fit({.limit = kib * kib, .margin = -0.1}), frugal::SettingsError);
  CHECK_THROWS_AS(fit({.limit = kib * kib, .look = 0}), frugal::SettingsError);
}

TEST_CASE("of batches of different sizes the largest of the first ones is tried") {
  frugal::Batch const all = samples(40);
  std::vector<frugal::Batch> batches;
  std::int64_t begin = 0;
  for (std::int64_t const size : {3, 12, 5, 16, 4}) {
    batches.push_back({all.data.narrow(0, begin, size), all.target.narrow(0, begin, size)});
    begin += size;
  }
  auto const fit = [&](Split split, auto... probing) {
    auto const module = std::make_shared<Mlp>();
    std::vector<std::uint64_t> parts;
    Spy spy{.each_step = [&](auto const& at) { parts.push_back(at.window_micro_batches); }};
    frugal::Trainer trainer{
        module, Hungry{},  frugal::Settings{.epochs = 2}, Optimize<SGD>{.lr = 0.1}, split,
        spy,    probing...};
    static_cast<void>(trainer.fit(batches));
    return std::pair(parts, tensors_of(*module));
  };
  auto const [parts, tensors] = fit({}, for_eight);
  CHECK(parts == std::vector<std::uint64_t>{1, 2, 1, 2, 1, 1, 2, 1, 2, 1});
  auto const [told_parts, told] = fit({.samples = 8});
  CHECK(told_parts == parts);
  CHECK(same_bits(told, tensors));
  // Examining two batches, it finds that twelve samples fit with this limit; sixteen then do not.
  auto const [late, ignored] = fit({}, AutoBatch{.limit = 3600 * kib, .margin = 0, .look = 2});
  CHECK(late == std::vector<std::uint64_t>{1, 1, 1, 2, 1, 1, 2, 1, 2, 1});
}

TEST_CASE("a resumed run splits as before and does not search again, from its first step on") {
  TemporaryFolder folder;
  auto const fit = [&](std::uint64_t steps, std::filesystem::path const& where, AutoBatch policy) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true});
    frugal::Trainer trainer{module,
                            Hungry{},
                            frugal::Settings{.run_dir = where, .epochs = 3, .steps = steps},
                            Optimize<frugal::AdamW>{},
                            frugal::Checkpoint<frugal::Every<2>>{},
                            Split{},
                            policy};
    auto report = trainer.fit(TensorDataset(samples(44), {.batch = 16, .shuffle = true}));
    return std::tuple(report, tensors_of(*module),
                      trainer.template policy<k::accumulate>().micro_batch());
  };
  auto const [whole, expected, found] = fit(9, folder / "whole", for_eight);
  CHECK(found == 8);
  for (std::uint64_t const at : {1U, 4U}) {
    CAPTURE(at);
    auto const where = folder / ("parts" + std::to_string(at));
    auto const begun = fit(at, where, for_eight);
    // More memory than before, and still the same split.
    auto const [rest, tensors, again] = fit(9, where, for_sixteen);
    CHECK(again == 8);
    CHECK(rest.resumed.has_value());
    CHECK(same_bits(tensors, expected));
    CHECK(rest.warnings == std::get<0>(begun).warnings);  // and no message about another search
  }
}

TEST_CASE("the checkpoint of step 0 includes the split") {
  TemporaryFolder folder;
  bool saved = false;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    saved = saved || std::filesystem::exists(folder / "checkpoints" / "step-00000000");
    // Killed in the first real step.
    if (saved) throw std::runtime_error("killed");
    return Hungry{}(module, batch);
  };
  auto const trainer = [&](AutoBatch policy) {
    return frugal::Trainer{std::make_shared<Mlp>(),
                           objective,
                           frugal::Settings{.run_dir = folder.path()},
                           Optimize<frugal::AdamW>{},
                           frugal::Checkpoint<frugal::Every<2>>{},
                           Split{},
                           policy};
  };
  CHECK_THROWS_AS(trainer(for_eight).fit(TensorDataset(samples(44), {.batch = 16})),
                  std::runtime_error);
  auto second = trainer(for_sixteen);
  CHECK_THROWS_AS(second.fit(TensorDataset(samples(44), {.batch = 16})), std::runtime_error);
  CHECK(second.policy<k::accumulate>().micro_batch() == 8);
}

TEST_CASE("explain shows the result, and Log what happened") {
  TemporaryFolder folder;
  std::uint64_t step = 0;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          Hungry{.later = 512 * kib, .from = 4, .step = &step},
                          frugal::Settings{.run_dir = folder.path(), .epochs = 3},
                          Optimize<SGD>{},
                          Split{},
                          for_eight,
                          Spy{.each_step = [&](frugal::Counters const& at) { step = at.step; }},
                          frugal::Log<frugal::Every<1>>{}};
  std::ostringstream before;
  frugal::explain(trainer, before);
  CHECK(before.str().find("found") == std::string::npos);
  CHECK(before.str().find("Accumulate<Auto>") != std::string::npos);
  static_cast<void>(trainer.fit(TensorDataset(samples(44), {.batch = 16})));
  std::ostringstream after;
  frugal::explain(trainer, after);
  CHECK(after.str().find("found: Accumulate: a micro-batch has at most 4 samples\n") !=
        std::string::npos);
  CHECK(after.str().find("found: AutoBatch: micro-batches of 8 samples fit, of batches of 16\n") !=
        std::string::npos);
  std::string const log = text_of(folder / "metrics.jsonl");
  CHECK(log.find("\"event\":\"auto_batch\"") != std::string::npos);
  CHECK(log.find("\"event\":\"split\"") != std::string::npos);
  CHECK(log.find("\"before\":8") != std::string::npos);
}

}  // namespace frugal_test::policy_auto_batch
