// SPDX-License-Identifier: Apache-2.0
#include "policy/optimize/fixture.hpp"

#include <doctest/doctest.h>

#include <torch/nn/modules/embedding.h>

#include <limits>

namespace frugal_test::policy_optimize_fused {

using namespace frugal_test::policy_optimize;
using frugal::Adagrad;
using frugal::Adam;
using frugal::AdamW;
using frugal::Optimize;
using frugal::SGD;

std::vector<Table> ones(std::size_t parameters, std::size_t steps) {
  std::vector<Table> all;
  for (std::size_t step = 0; step < steps; ++step) {
    Table table;
    for (std::size_t p = 0; p < parameters; ++p) table.gradients.push_back(at::ones({2}));
    all.push_back(table);
  }
  return all;
}

std::vector<at::Tensor> zeros(std::size_t parameters, std::int64_t size = 2) {
  std::vector<at::Tensor> all;
  for (std::size_t p = 0; p < parameters; ++p) all.push_back(at::zeros({size}));
  return all;
}

/// Numbers that differ in every element.
at::Tensor number_tensor(std::vector<std::int64_t> const& shape, std::uint32_t which) {
  at::Tensor values = at::empty(shape);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    values.mutable_data_ptr<float>()[i] =
        static_cast<float>(number({9, which, static_cast<std::uint32_t>(i)}));
  }
  return values;
}

TEST_CASE("saved moments carry the parameters' names") {
  std::map<std::uint64_t, Frozen> saved;
  frugal::Trainer{std::make_shared<Parts>(zeros(2)), Linear{}, frugal::Settings{},
                  Optimize<AdamW>{.amsgrad = true}, Resume{.after_step = &saved}}
      .fit(ones(2, 3));
  auto const& memory = saved.at(3).run;
  for (std::string const name : {"p0", "p1"}) {
    for (std::string const moment : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
      CHECK(memory.tensors.count("policies/Optimize/" + name + "/" + moment) == 1);
    }
    CHECK(std::get<double>(memory.values.at("policies/Optimize/" + name + "/step")) == 3.0);
  }
}

template <class Algorithm>
std::string refusal(Frozen const& from, std::vector<at::Tensor> const& start,
                    Optimize<Algorithm> const& policy) {
  // Only the optimizer's state is wrong here, so only the module is left unchanged.
  struct Load {
    static void into(frugal::StateDict const& memory, std::vector<at::Tensor> const& parts,
                     Optimize<Algorithm> const& optimizer) {
      Frozen frozen{.module = tensors_of(Parts(parts)),
                    .generator = at::detail::getDefaultCPUGenerator().get_state(),
                    .run = memory};
      frugal::Trainer{std::make_shared<Parts>(parts), Linear{}, frugal::Settings{}, optimizer,
                      Resume{.from = &frozen}}
          .fit(ones(parts.size(), 5));
    }
  };
  return error_of<frugal::StateError>([&] { Load::into(from.run, start, policy); });
}

TEST_CASE("saved moments of another shape are refused and the parameter is named") {
  std::map<std::uint64_t, Frozen> saved;
  Optimize<AdamW> const policy;
  frugal::Trainer{std::make_shared<Parts>(zeros(2)), Linear{}, frugal::Settings{}, policy,
                  Resume{.after_step = &saved}}
      .fit(ones(2, 3));
  auto start = zeros(2);
  start[1] = at::zeros({2, 1});
  std::string const text = refusal(saved.at(2), start, policy);
  CHECK(contains(text, "p1/exp_avg"));
  CHECK(contains(text, "[2]"));
  CHECK(contains(text, "[2, 1]"));
}

TEST_CASE("saved moments of another dtype are refused and the parameter is named") {
  std::map<std::uint64_t, Frozen> saved;
  Optimize<SGD> const policy{.momentum = 0.9};
  frugal::Trainer{std::make_shared<Parts>(zeros(1)), Linear{}, frugal::Settings{}, policy,
                  Resume{.after_step = &saved}}
      .fit(ones(1, 3));
  CHECK(
      contains(refusal(saved.at(2), {at::zeros({2}, at::kDouble)}, policy), "p0/momentum_buffer"));
}

TEST_CASE("a parameter that is missing from the saved state is refused and named") {
  std::map<std::uint64_t, Frozen> saved;
  Optimize<Adagrad> const policy;
  frugal::Trainer{std::make_shared<Parts>(zeros(1)), Linear{}, frugal::Settings{}, policy,
                  Resume{.after_step = &saved}}
      .fit(ones(1, 3));
  CHECK(contains(refusal(saved.at(1), zeros(2), policy), "p1/step"));
}

TEST_CASE("saved state of another optimizer is refused") {
  std::map<std::uint64_t, Frozen> saved;
  frugal::Trainer{std::make_shared<Parts>(zeros(1)), Linear{}, frugal::Settings{},
                  Optimize<SGD>{.momentum = 0.9}, Resume{.after_step = &saved}}
      .fit(ones(1, 3));
  CHECK(contains(refusal(saved.at(1), zeros(1), Optimize<AdamW>{}), "p0/exp_avg"));
}

/// One weight under two names.
struct Tied : torch::nn::Module {
  Tied() {
    at::Tensor const weight = register_parameter("encoder", at::zeros({2}));
    register_parameter("decoder", weight);
  }
};

TEST_CASE("tied weights are updated once per step") {
  auto const module = std::make_shared<Tied>();
  // The objective uses both names: the gradient is 2, and the step is 2 lr, not 4 lr.
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 0.25}}.fit(ones(2, 1));
  CHECK(at::equal(module->parameters()[0], at::full({2}, -0.5)));
}

TEST_CASE_TEMPLATE("a frozen parameter keeps its bits, weight decay or not", A, AdamW, Adam, SGD,
                   Adagrad) {
  auto const module = std::make_shared<Parts>(fixture().start);
  module->parameters()[1].set_requires_grad(false);
  auto const before = tensors_of(*module);
  auto tables = fixture().tables(fixture().file.at("cases").front());
  tables.resize(5);
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<A>{.weight_decay = 0.1}}.fit(
      tables);
  auto const after = tensors_of(*module);
  CHECK(at::equal(before.at("p1"), after.at("p1")));
  CHECK_FALSE(at::equal(before.at("p0"), after.at("p0")));
}

TEST_CASE_TEMPLATE("a parameter that is unfrozen during a run trains as from a start", A, AdamW,
                   Adam, SGD, Adagrad) {
  Optimize<A> const policy{.lr = 0.1, .weight_decay = 0.1};
  auto const tables = fixture().tables(fixture().file.at("cases").front());
  auto const module = std::make_shared<Parts>(fixture().start);
  module->parameters()[1].set_requires_grad(false);
  Spy spy{.each_step = [&](frugal::Counters const& at) {
    if (at.step == 4) module->parameters()[1].set_requires_grad(true);
  }};
  frugal::Trainer{module, Linear{}, frugal::Settings{.steps = 10}, policy, spy}.fit(tables);

  // The same parameter alone, with the gradients that it received.
  auto const alone = std::make_shared<Parts>(std::vector<at::Tensor>{fixture().start[1]});
  std::vector<Table> seen;
  for (std::size_t step = 4; step < 10; ++step) seen.push_back({{tables[step].gradients[1]}});
  frugal::Trainer{alone, Linear{}, frugal::Settings{}, policy}.fit(seen);
  CHECK(at::equal(module->parameters()[1], alone->parameters()[0]));
}

struct Embedded : torch::nn::Module {
  Embedded()
      : words(register_module(
            "words", torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 2).sparse(true)))) {}
  torch::nn::Embedding words;
};

TEST_CASE("a sparse gradient is refused and the parameter is named") {
  auto const objective = [](std::shared_ptr<Embedded>& module, at::Tensor const& index) {
    return module->words->forward(index).sum();
  };
  frugal::Trainer trainer{std::make_shared<Embedded>(), objective, frugal::Settings{},
                          Optimize<AdamW>{}};
  std::string const text = error_of<frugal::SettingsError>(
      [&] { trainer.fit(std::vector<at::Tensor>{at::zeros({1}, at::kLong)}); });
  CHECK(contains(text, "'words.weight' has a sparse gradient"));
}

TEST_CASE("parameters of two dtypes train together, each by its own kernel call") {
  auto const module =
      std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({2}), at::zeros({2}, at::kDouble)});
  auto const operators = operators_of([&] {
    frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0}}.fit(ones(2, 1));
  });
  CHECK(operators.at("aten::_fused_sgd_") == 2);
  CHECK(at::equal(module->parameters()[0], at::full({2}, -1.0)));
  CHECK(at::equal(module->parameters()[1], at::full({2}, -1.0, at::kDouble)));
}

/// The operators of a step after warm-up: the difference of two runs.
template <class Policy>
std::map<std::string, int> per_step(Policy const& policy) {
  auto const run = [&](std::size_t steps) {
    return operators_of([&] {
      frugal::Trainer{std::make_shared<Parts>(zeros(7)), Linear{}, frugal::Settings{}, policy}.fit(
          ones(7, steps));
    });
  };
  auto const few = run(3);
  auto many = run(4);
  for (auto const& [name, count] : few) many[name] -= count;
  return many;
}

TEST_CASE("an update is one kernel call however many parameters, and no other operator") {
  auto const nothing = per_step(Optimize<frugal::Nothing>{});
  auto count = [&](std::map<std::string, int> with, std::string const& kernel) {
    CHECK(with[kernel] == 1);
    with.erase(kernel);
    for (auto const& [name, times] : nothing) with[name] -= times;
    for (auto const& [name, times] : with) {
      // The CPU kernels themselves read each step count.
      if (name == "aten::item" || name == "aten::_local_scalar_dense") continue;
      CAPTURE(name);
      CHECK(times == 0);
    }
  };
  count(per_step(Optimize<SGD>{.momentum = 0.9}), "aten::_fused_sgd_");
  count(per_step(Optimize<AdamW>{}), "aten::_fused_adamw_");
  count(per_step(Optimize<Adam>{}), "aten::_fused_adam_");
  count(per_step(Optimize<Adagrad>{}), "aten::_fused_adagrad_");
}

TEST_CASE("after counters diverge no step reads them") {
  // The first parameter misses the second step; then all have a gradient again.
  auto const run = [&](std::size_t steps) {
    auto tables = ones(7, steps);
    tables[1].gradients[0] = at::Tensor();
    return operators_of([&] {
      frugal::Trainer{std::make_shared<Parts>(zeros(7)), Linear{}, frugal::Settings{},
                      Optimize<SGD>{.momentum = 0.9}}
          .fit(tables);
    });
  };
  auto const few = run(4);
  auto const many = run(9);
  CHECK(many.at("aten::_fused_sgd_") == few.at("aten::_fused_sgd_") + 5);
  auto const reads = [](std::map<std::string, int> of) { return of["aten::_local_scalar_dense"]; };
  CHECK(reads(many) == reads(few));
}

/// Produces gradients in row-major layout, whatever the parameters' layout.
struct RowByRow {
  using kind = support::kinds::restore;
  using listens = frugal::list<frugal::on::backward>;
  struct State {
    using transient = void;
    explicit State(RowByRow const&) {}
    void on_backward(frugal::Backward& phase) {
      for (at::Tensor const& each : phase.parameters().tensors) {
        if (each.grad().defined()) each.mutable_grad() = each.grad().contiguous();
      }
    }
  };
};

TEST_CASE_TEMPLATE("a gradient with another layout than its parameter is the same gradient", A,
                   AdamW, Adam, SGD, Adagrad) {
  std::vector<at::Tensor> const start{number_tensor({4, 3, 2, 2}, 1), number_tensor({5}, 2)};
  std::vector<at::Tensor> last{start[0].contiguous(at::MemoryFormat::ChannelsLast), start[1]};
  std::vector<Table> tables;
  for (std::uint32_t step = 0; step < 5; ++step) {
    tables.push_back({{number_tensor({4, 3, 2, 2}, 3 + step), number_tensor({5}, 13 + step)}});
  }
  auto const rows = std::make_shared<Parts>(start);
  auto const channels = std::make_shared<Parts>(last);
  REQUIRE(channels->parameters()[0].is_contiguous(at::MemoryFormat::ChannelsLast));
  frugal::Trainer{rows, Linear{}, frugal::Settings{}, Optimize<A>{}}.fit(tables);
  frugal::Trainer{channels, Linear{}, frugal::Settings{}, Optimize<A>{}, RowByRow{}}.fit(tables);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(at::equal(rows->parameters()[i], channels->parameters()[i]));
  }
}

/// A parameter that is every second column of a larger tensor.
struct Sparse : torch::nn::Module {
  Sparse() { register_parameter("columns", at::zeros({4, 6}).slice(1, 0, 6, 2)); }
};

TEST_CASE("a parameter with gaps in memory is refused and named") {
  frugal::Trainer trainer{std::make_shared<Sparse>(), Linear{}, frugal::Settings{},
                          Optimize<AdamW>{}};
  std::vector<Table> const tables{{{at::ones({4, 3})}}};
  std::string const text = error_of<frugal::SettingsError>([&] { trainer.fit(tables); });
  CHECK(contains(text, "'columns' is not contiguous in memory"));
}

}  // namespace frugal_test::policy_optimize_fused

namespace frugal_test::policy_optimize_adagrad {

using namespace frugal_test::policy_optimize;
using frugal::Adagrad;
using frugal::Optimize;

TEST_CASE("Optimize<Adagrad> follows torch.optim.Adagrad for 100 steps in every reference case") {
  CHECK(compare_all<Adagrad>("Adagrad") == 6);
}

TEST_CASE("Adagrad resumed from saved state ends with the same bits, missing gradients included") {
  resumes(Optimize<Adagrad>{.lr_decay = 0.1, .initial_accumulator = 0.5},
          case_named(fixture().file.at("cases"), "adagrad, absent gradients"));
}

TEST_CASE("Adagrad maximizing is Adagrad minimizing the negative") {
  Json const& which = case_named(fixture().file.at("cases"), "adagrad");
  auto tables = fixture().tables(which);
  auto const down = std::make_shared<Parts>(fixture().start);
  frugal::Trainer{down, Linear{}, frugal::Settings{}, Optimize<Adagrad>{}}.fit(tables);
  for (Table& table : tables) {
    for (at::Tensor& gradient : table.gradients) gradient = gradient.neg();
  }
  auto const up = std::make_shared<Parts>(fixture().start);
  frugal::Trainer{up, Linear{}, frugal::Settings{}, Optimize<Adagrad>{.maximize = true}}.fit(
      tables);
  CHECK(same_bits(tensors_of(*down), tensors_of(*up)));
}

std::string refusal(Optimize<Adagrad> const& policy) {
  frugal::Trainer trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                          policy};
  return error_of<frugal::SettingsError>(
      [&] { trainer.fit(fixture().tables(fixture().file.at("cases").front())); });
}

TEST_CASE("Adagrad refuses settings out of range and names them") {
  CHECK(contains(refusal({.lr = -1.0}), "lr is -1"));
  CHECK(contains(refusal({.lr_decay = -0.5}), "lr_decay is -0.5"));
  CHECK(contains(refusal({.weight_decay = -0.5}), "weight_decay is -0.5"));
  CHECK(contains(refusal({.initial_accumulator = -0.5}), "initial_accumulator is -0.5"));
  CHECK(contains(refusal({.eps = -1.0}), "eps is -1"));
}

}  // namespace frugal_test::policy_optimize_adagrad

namespace frugal_test::policy_optimize_sgd {

using namespace frugal_test::policy_optimize;
using frugal::Optimize;
using frugal::SGD;

TEST_CASE("Optimize<SGD> follows torch.optim.SGD for 100 steps in every reference case") {
  CHECK(compare_all<SGD>("SGD") == 9);
}

TEST_CASE("SGD resumed from saved state ends with the same bits, missing gradients included") {
  Json const& which = case_named(fixture().file.at("cases"), "sgd, absent gradients");
  resumes(Optimize<SGD>{.lr = 1e-2}, which);
  resumes(Optimize<SGD>{.lr = 1e-2, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1}, which);
}

std::string refusal(Optimize<SGD> const& policy) {
  frugal::Trainer trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                          policy};
  return error_of<frugal::SettingsError>(
      [&] { trainer.fit(fixture().tables(fixture().file.at("cases").front())); });
}

TEST_CASE("SGD refuses settings out of range and names them") {
  CHECK(contains(refusal({.lr = -1.0}), "lr is -1"));
  CHECK(contains(refusal({.lr = std::numeric_limits<double>::infinity()}), "lr is inf"));
  CHECK(contains(refusal({.momentum = -0.5}), "momentum is -0.5"));
  CHECK(contains(refusal({.momentum = 0.9, .dampening = std::nan("")}), "dampening is nan"));
  CHECK(contains(refusal({.weight_decay = -0.5}), "weight_decay is -0.5"));
}

TEST_CASE("SGD refuses nesterov without momentum or with dampening") {
  CHECK(contains(refusal({.nesterov = true}), "nesterov is set with momentum 0"));
  CHECK(contains(refusal({.momentum = 0.9, .dampening = 0.5, .nesterov = true}), "dampening 0.5"));
}

}  // namespace frugal_test::policy_optimize_sgd

namespace frugal_test::policy_optimize_adam {

using namespace frugal_test::policy_optimize;
using frugal::Adam;
using frugal::AdamW;
using frugal::Optimize;

TEST_CASE("the number formula gives the gradients that the reference file was made with") {
  for (Json const& check : fixture().file.at("gradient_check")) {
    auto const p = check.at("parameter").get<std::uint32_t>();
    double const value = number(
        {1, check.at("step").get<std::uint32_t>(), p, check.at("index").get<std::uint32_t>()});
    CHECK(std::ldexp(value, -static_cast<int>(p)) == check.at("value").get<double>());
  }
}

TEST_CASE("Optimize<AdamW> follows torch.optim.AdamW for 100 steps in every reference case") {
  CHECK(compare_all<AdamW>("AdamW") == 8);
}

TEST_CASE("Optimize<Adam> follows torch.optim.Adam for 100 steps in every reference case") {
  CHECK(compare_all<Adam>("Adam") == 6);
}

TEST_CASE("AdamW resumed from saved state ends with the same bits, missing gradients included") {
  Json const& which = case_named(fixture().file.at("cases"), "adamw, absent gradients");
  Optimize<AdamW> policy{.lr = 1e-2, .weight_decay = 0.1, .amsgrad = true};
  resumes(policy, which);
  policy.groups = {frugal::no_decay_for_biases_and_norms()};
  resumes(policy, which);
}

TEST_CASE("Adam resumed from saved state ends with the same bits, missing gradients included") {
  resumes(Optimize<Adam>{.lr = 1e-2, .weight_decay = 0.1},
          case_named(fixture().file.at("cases"), "adam, absent gradients"));
}

template <class Algorithm>
std::string refusal(Optimize<Algorithm> const& policy) {
  frugal::Trainer trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                          policy};
  return error_of<frugal::SettingsError>(
      [&] { trainer.fit(fixture().tables(fixture().file.at("cases").front())); });
}

TEST_CASE_TEMPLATE("Adam and AdamW refuse settings out of range and name them", A, Adam, AdamW) {
  double const nan = std::nan("");
  CHECK(contains(refusal(Optimize<A>{.lr = -1.0}), "lr is -1"));
  CHECK(contains(refusal(Optimize<A>{.lr = nan}), "lr is nan"));
  CHECK(contains(refusal(Optimize<A>{.lr = HUGE_VAL}), "lr is inf"));
  CHECK(contains(refusal(Optimize<A>{.beta1 = 1.0}), "beta1 is 1"));
  CHECK(contains(refusal(Optimize<A>{.beta1 = -0.1}), "beta1 is -0.1"));
  CHECK(contains(refusal(Optimize<A>{.beta2 = 1.5}), "beta2 is 1.5"));
  CHECK(contains(refusal(Optimize<A>{.eps = -1e-3}), "eps is -0.001"));
  CHECK(contains(refusal(Optimize<A>{.weight_decay = -0.5}), "weight_decay is -0.5"));
}

}  // namespace frugal_test::policy_optimize_adam
