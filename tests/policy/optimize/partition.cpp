// SPDX-License-Identifier: Apache-2.0
#include <frugal/policy/optimize/partition.hpp>

#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/precision/fp16.hpp>
#include <frugal/policy/schedule.hpp>
#include <frugal/report/explain.hpp>
#include <frugal/report/plan_memory.hpp>

#include "policy/optimize/fixture.hpp"
#include "policy/optimize/named_parts.hpp"
#include "support/files.hpp"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_optimize_partition {

using namespace frugal_test::policy_optimize;
using frugal::AdamW;
using frugal::Optimize;
using frugal::Partition;
using frugal::Settings;
using frugal::SGD;
using Both = Optimize<Partition<SGD, AdamW>>;

std::vector<std::string> const names{"critic.bias", "critic.weight", "generator.bias",
                                     "generator.weight"};

std::shared_ptr<Tree> game() {
  std::vector<std::pair<std::string, at::Tensor>> parts;
  for (std::uint32_t p = 0; p < names.size(); ++p) parts.emplace_back(names[p], table({3}, 0, p));
  return std::make_shared<Tree>(parts);
}

/// In some steps a parameter of each side has no gradient.
std::vector<Table> gradients(std::size_t steps = 20, double scale = 1) {
  std::vector<Table> all(steps);
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t p = 0; p < names.size(); ++p) {
      bool const absent = step % 4 == 1 && p % 2 == 0;
      all[step].gradients.push_back(absent ? at::Tensor() : table({3}, step + 1, p) * scale);
    }
  }
  return all;
}

Both sgd_and_adamw() {
  return {.select = {"critic.*"},
          .first = {.lr = 0.05,
                    .momentum = 0.9,
                    .weight_decay = 0.1,
                    .groups = {frugal::no_decay_for_biases_and_norms()}},
          .rest = {.lr = 0.01,
                   .beta1 = 0.5,
                   .groups = {frugal::group_by_pattern("*.weight", {.lr = 0.02})}}};
}

template <class Policy, class... Ps>
std::shared_ptr<Tree> trained(Policy const& policy, std::vector<Table> const& tables,
                              Ps const&... more) {
  auto const module = game();
  frugal::Trainer trainer{module, Linear{}, Settings{}, policy, more...};
  static_cast<void>(trainer.fit(tables));
  return module;
}

TEST_CASE("each side trains as a torch::optim optimizer of its own in a loop by hand") {
  Rates logged;
  auto const ours = trained(sgd_and_adamw(), gradients(), logging(logged));
  auto const theirs = game();
  auto const p = theirs->parameters();
  auto const decays = [](double decay) {
    return torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(decay);
  };
  torch::optim::SGD bias({p[0]}, decays(0)), weight({p[1]}, decays(0));  // of one dimension both
  auto const adamw = [](double lr) {
    return torch::optim::AdamWOptions(lr).betas({0.5, 0.999}).weight_decay(0.01);
  };
  torch::optim::AdamW generator({p[2]}, adamw(0.01)), faster({p[3]}, adamw(0.02));
  for (Table const& table : gradients()) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i].mutable_grad() = table.gradients[i];
    bias.step(), weight.step(), generator.step(), faster.step();
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(distance(ours->parameters()[i], p[i]) < 1e-6);
  }
  REQUIRE(logged.size() == 20);
  CHECK(logged.back() ==
        std::map<std::string, double>{{"first", 0.05}, {"rest", 0.01}, {"rest.*.weight", 0.02}});
}

TEST_CASE("two sides of one kind and the same settings have the bits of one optimizer") {
  Optimize<AdamW> const one{.lr = 0.01, .amsgrad = true};
  Optimize<Partition<AdamW, AdamW>> const two{.select = {"critic.*"}, .first = one, .rest = one};
  // The scale is too large at first: these windows are a step of none.
  auto const fit = [](auto const& policy) {
    auto const module = game();
    frugal::Trainer trainer{module,
                            Linear{},
                            Settings{.epochs = 3},
                            policy,
                            frugal::Accumulate<2>{},
                            frugal::ClipNorm<0.3>{},
                            frugal::Schedule<frugal::Warmup<4>, frugal::Cosine>{},
                            frugal::Precision<frugal::FP16>{.scaling = {.initial = 0x1p127}}};
    frugal::Report const report = trainer.fit(gradients(20, 64));
    CHECK(report.non_finite_windows > 0);
    CHECK(report.steps > 10);
    return tensors_of(*module);
  };
  CHECK(same_bits(fit(one), fit(two)));
}

TEST_CASE("the rest may be a partition too") {
  Optimize<Partition<SGD, Partition<SGD, AdamW>>> const three{
      .select = {"*.bias"},
      .first = {.lr = 0.5},
      .rest = {.select = {"critic.*"}, .first = {.lr = 0.25}, .rest = {.lr = 0.01}}};
  Rates logged;
  auto const module = trained(three, gradients(1), logging(logged));
  auto const start = game()->parameters();
  auto const now = module->parameters();
  Table const table = gradients(1).front();
  for (std::size_t i : {0U, 2U}) CHECK(at::equal(now[i], start[i] - 0.5 * table.gradients[i]));
  CHECK(at::equal(now[1], start[1] - 0.25 * table.gradients[1]));
  CHECK(distance(now[3], start[3]) > 0.009);  // Adam's first step is its rate
  CHECK(distance(now[3], start[3]) < 0.011);
  CHECK(logged.back() ==
        std::map<std::string, double>{{"first", 0.5}, {"rest.first", 0.25}, {"rest.rest", 0.01}});
}

TEST_CASE("a group's schedule multiplies the rates of its side alone") {
  Both policy{.select = {"critic.*"}, .first = {.lr = 1.0}, .rest = {.lr = 1.0}};
  auto const half = [](std::uint64_t step) { return step < 2 ? 0.5 : -1.0; };
  policy.rest.groups = {frugal::group_by_pattern("*.bias", {.name = "biases", .schedule = half})};
  auto const module = game();
  std::vector<at::Tensor> before;
  Rates logged;
  frugal::Trainer trainer{module,
                          Linear{},
                          Settings{},
                          policy,
                          logging(logged),
                          Spy{.each_step = [&](frugal::Counters const&) {
                            before.clear();
                            for (auto const& each : module->parameters())
                              before.push_back(each.detach().clone());
                          }}};
  std::string const text =
      error_of<frugal::SettingsError>([&] { static_cast<void>(trainer.fit(gradients(4))); });
  CHECK(contains(text, "the schedule of parameter group 'biases' gives the factor -1"));
  REQUIRE(logged.size() == 2);
  CHECK(logged.back() ==
        std::map<std::string, double>{{"first", 1.0}, {"rest.biases", 0.5}, {"rest", 1.0}});
  // A factor that is refused leaves the other side as it was, too.
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(at::equal(before[i], module->parameters()[i]));
  }
}

template <class Module = Tree>
std::string refusal(std::shared_ptr<Module> const& module, Both const& policy) {
  frugal::Trainer trainer{module, Linear{}, Settings{}, policy};
  return error_of<frugal::SettingsError>([&] { static_cast<void>(trainer.fit(gradients(1))); });
}

TEST_CASE("patterns that leave a parameter to no side or to both are refused, with names") {
  std::string text = refusal(game(), {.select = {"critic.*", "critics.*"}});
  CHECK(contains(text, "the pattern 'critics.*' matches no parameter"));
  CHECK(contains(text, "Optimize::select"));
  CHECK(contains(text, "critic.bias critic.weight generator.bias"));
  CHECK(contains(refusal(game(), {}), "`first` of a Partition has no parameters"));
  CHECK(contains(refusal(game(), {.select = {"*"}}), "`rest` of a Partition has no parameters"));

  auto const tied = game();
  tied->register_parameter("shared", tied->parameters()[0]);
  text = refusal(tied, {.select = {"critic.*"}});
  CHECK(contains(text, "is on both sides of a Partition"));
  CHECK(contains(text, "critic.bias"));
  CHECK(contains(text, "shared"));

  // A group sees the parameters of its side.
  Both groups{.select = {"critic.*"}};
  groups.first.groups = {frugal::group_by_prefix("generator", {.lr = 1})};
  text = refusal(game(), groups);
  CHECK(contains(text, "parameter group 'generator' selects nothing"));
  CHECK(contains(text, "Optimize::first.groups[0]"));
  groups.first.groups.clear();
  groups.rest.beta1 = 2;
  CHECK(contains(refusal(game(), groups), "beta1 is 2"));
}

TEST_CASE("a resumed run ends in the same bits, and another partition is refused") {
  support::TemporaryFolder const folder;
  std::vector<std::string> warnings;
  auto const run = [&](std::string const& name, Both const& policy, std::uint64_t steps) {
    auto const module = game();
    frugal::Trainer trainer{module, Linear{}, Settings{.run_dir = folder / name, .steps = steps},
                            policy, frugal::Checkpoint<frugal::Every<100>>{}};
    warnings = trainer.fit(gradients()).warnings;
    return tensors_of(*module);
  };
  auto const whole = run("whole", sgd_and_adamw(), 16);
  for (std::uint64_t const steps : {1U, 2U, 7U}) run("parts", sgd_and_adamw(), steps);

  Both other = sgd_and_adamw();
  other.select = {"critic.weight"};
  std::string const text = error_of<frugal::StateError>([&] { run("parts", other, 16); });
  CHECK(contains(text,
                 "'critic.bias': the saved run updated the parameter with `first`, this one with "
                 "`rest`"));

  CHECK(same_bits(run("parts", sgd_and_adamw(), 16), whole));
  other = sgd_and_adamw();
  other.first.momentum = 0.8;
  other.rest.weight_decay = 0.5;
  run("parts", other, 20);
  std::string all;
  for (std::string const& each : warnings) all += each;
  CHECK(contains(all, "the optimizer's first.momentum, group 0 was 0.9"));
  CHECK(contains(all, "the optimizer's rest.weight_decay, group 0 was 0.01"));
}

TEST_CASE("the memory of both sides is planned") {
  Both policy = sgd_and_adamw();
  policy.first.momentum = 0;
  auto const module = game();
  module->parameters()[3].set_requires_grad(false);
  frugal::Trainer trainer{module, Linear{}, Settings{}, policy};
  frugal::RecipeMemory const memory = frugal::plan_memory(trainer, gradients(1).front());
  CHECK(memory.knows_optimizer);
  CHECK(memory.optimizer_state == 2 * 3 * sizeof(float));  // of the generator's bias
  std::ostringstream out;
  frugal::explain(trainer, out);
  CHECK(contains(out.str(), "Partition<SGD, AdamW>"));
  MESSAGE(out.str());
}

/// Adds a parameter, as Lora does.
struct Adapter {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Adapter";
  };
  using listens = frugal::list<>;
  using properties = frugal::list<frugal::property::adapts>;
  static void adapt(torch::nn::Module& module) {
    if (!module.named_parameters().contains("adapter"))
      module.register_parameter("adapter", at::zeros({3}));
  }
};

TEST_CASE("a recipe is explained with the parameters that its policies add") {
  Both const policy{.select = {"adapter"}};
  frugal::Trainer trainer{game(), Linear{}, Settings{}, policy, Adapter{}};
  std::ostringstream out;
  frugal::explain(trainer, out);
  // Five tensors of 12 bytes, and two moments for each but the adapter.
  CHECK(contains(out.str(), "60 B weights and buffers, 96 B optimizer"));
}

TEST_CASE("a process of many has what is its own of each side, by the names of all") {
  frugal::TensorPlaces places;
  auto const module = game();
  frugal::Parameters const all = frugal::Parameters::of(*module);
  places.order = all.names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    places.tensors[all.names[i]] = {.place = i == 0 ? frugal::PlacedTensor::Place::here
                                                    : frugal::PlacedTensor::Place::elsewhere,
                                    .sizes = {3}};
  }
  frugal::Parameters own;
  own.names = {all.names[0]};
  own.tensors = {all.tensors[0]};
  frugal::detail::PartitionSides const sides({own, nullptr, places}, {"critic.*"});
  CHECK(sides[0].parameters.names == own.names);
  CHECK(sides[0].places.order == std::vector<std::string>{"critic.bias", "critic.weight"});
  CHECK(sides[0].places.tensors.size() == 2);
  CHECK(sides[1].parameters.size() == 0);
  CHECK(sides[1].places.order == std::vector<std::string>{"generator.bias", "generator.weight"});
}

}  // namespace frugal_test::policy_optimize_partition
