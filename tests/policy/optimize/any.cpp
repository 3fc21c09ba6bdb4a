// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/optimize/any.hpp>
#include <frugal/policy/schedule.hpp>

#include "policy/optimize/fixture.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_optimize_any {

using namespace frugal_test::policy_optimize;
using frugal::Any;
using frugal::Optimize;

template <class Optimizer, class Options>
Optimize<Any> any(Options const& options) {
  return {.make = [options](std::vector<at::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  }};
}

Optimize<Any> rmsprop(Json const& from) {
  return any<torch::optim::RMSprop>(torch::optim::RMSpropOptions(from.at("lr"))
                                        .alpha(from.at("alpha"))
                                        .eps(from.at("eps"))
                                        .weight_decay(from.at("weight_decay"))
                                        .momentum(from.at("momentum"))
                                        .centered(from.at("centered")));
}

TEST_CASE("Optimize<Any> with RMSprop follows torch.optim.RMSprop in every reference case") {
  int cases = 0;
  for (Json const& which : fixture().file.at("cases")) {
    if (which.at("optimizer") != "RMSprop") continue;
    ++cases;
    CAPTURE(which.at("name").get<std::string>());
    compare(rmsprop(which.at("groups").front()), which, {0, 1, 2, 3});
  }
  CHECK(cases == 2);
}

TEST_CASE("Optimize<Any> with torch's AdamW follows the same reference as Optimize<AdamW>") {
  Json const& which = case_named(fixture().file.at("cases"), "adamw, absent gradients");
  compare(any<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-2).weight_decay(0.1)), which,
          {0, 1, 2, 3});
}

TEST_CASE("the schedule's factor multiplies the rate of every group of a torch optimizer") {
  auto const module =
      std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1}), at::zeros({1})});
  Optimize<Any> const two_groups{.make = [](std::vector<at::Tensor> parameters) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<at::Tensor>{parameters[0]},
                        std::make_unique<torch::optim::SGDOptions>(1.0));
    groups.emplace_back(std::vector<at::Tensor>{parameters[1]},
                        std::make_unique<torch::optim::SGDOptions>(0.5));
    return std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(1.0));
  }};
  std::vector<double> first, second;
  Spy spy{.each_step = [&](frugal::Counters const&) {
    first.push_back(module->parameters()[0].item<double>());
    second.push_back(module->parameters()[1].item<double>());
  }};
  // Factors 1/2 and then 1.
  std::vector<std::optional<double>> shown;
  frugal::Trainer{module,
                  Linear{},
                  frugal::Settings{},
                  two_groups,
                  frugal::Schedule<frugal::Warmup<2>>{},
                  spy,
                  RateShown{.found = &shown}}
      .fit(std::vector<Table>(2, Table{{at::ones({1}), at::ones({1})}}));
  CHECK(first == std::vector<double>{-0.5, -1.5});
  CHECK(second == std::vector<double>{-0.25, -0.75});
  CHECK((shown == std::vector<std::optional<double>>{0.5, 1.0}));  // of the first group
}

/// Half of |A x - b|^2 averaged over the rows of a batch: convex, with a closed-form minimum.
/// Shapes: N = 12 rows, F = 3 unknowns.
struct Convex {
  at::Tensor a_NF = table({12, 3}, 70, 0);
  at::Tensor b_N = table({12}, 70, 1);

  at::Tensor minimum() const {
    at::Tensor const a = a_NF.to(at::kDouble);
    at::Tensor const normal = at::matmul(a.t(), a);
    return at::linalg_solve(normal, at::matmul(a.t(), b_N.to(at::kDouble)));
  }
  /// All rows, in batches that end at these rows.
  std::vector<frugal::Batch> batches(std::vector<std::int64_t> const& ends) const {
    std::vector<frugal::Batch> all;
    std::int64_t begin = 0;
    for (std::int64_t const end : ends) {
      all.push_back({a_NF.slice(0, begin, end), b_N.slice(0, begin, end)});
      begin = end;
    }
    return all;
  }
};

struct LeastSquares {
  int* calls;
  template <class Module>
  at::Tensor operator()(Module& module, frugal::Batch const& batch) const {
    ++*calls;
    at::Tensor const x = frugal::base_module(module).parameters()[0];
    return (at::matmul(batch.data, x) - batch.target).square().mean();
  }
};

Optimize<Any> lbfgs() {
  return any<torch::optim::LBFGS>(
      torch::optim::LBFGSOptions(1.0).max_iter(20).line_search_fn("strong_wolfe"));
}

TEST_CASE("LBFGS evaluates the window again along its line and reaches a convex minimum") {
  Convex const problem;
  int calls = 0;
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  frugal::Trainer trainer{module, LeastSquares{&calls}, frugal::Settings{.epochs = 3}, lbfgs()};
  auto const report = trainer.fit(problem.batches({12}));
  CHECK(report.steps == 3);
  CHECK(calls > 3);
  // Float32 gradients vanish at about 1e-7 of the terms that cancel in them.
  CHECK(distance(module->parameters()[0], problem.minimum()) < 1e-5);
}

TEST_CASE("LBFGS sees all micro-batches of a window as one big batch") {
  Convex const problem;
  int whole_calls = 0;
  int cut_calls = 0;
  auto const whole = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  auto const cut = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  frugal::Trainer{whole, LeastSquares{&whole_calls}, frugal::Settings{.epochs = 1}, lbfgs()}.fit(
      problem.batches({12}));
  // Of unequal size, so that the weights matter.
  frugal::Trainer{cut, LeastSquares{&cut_calls}, frugal::Settings{.epochs = 1}, lbfgs(),
                  frugal::Accumulate<2>{}}
      .fit(problem.batches({3, 12}));
  CHECK(cut_calls == 2 * whole_calls);
  CHECK(distance(whole->parameters()[0], cut->parameters()[0]) < 1e-5);
  CHECK(distance(cut->parameters()[0], problem.minimum()) < 1e-4);
}

TEST_CASE("the gradients of LBFGS's line search are clipped like the first ones") {
  Convex const problem;
  int calls = 0;
  int clipped = 0;
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  auto const operators = operators_of([&] {
    frugal::Trainer{module, LeastSquares{&calls}, frugal::Settings{.epochs = 1}, lbfgs(),
                    frugal::ClipNorm<>{}}
        .fit(problem.batches({12}));
  });
  clipped = operators.at("aten::_foreach_norm");
  CHECK(clipped == calls);
}

TEST_CASE("a torch optimizer resumed from saved state ends with the same bits") {
  auto const tables = fixture().tables(case_named(fixture().file.at("cases"), "adamw"));
  auto const check = [&](Optimize<Any> const& policy) {
    std::map<std::uint64_t, Frozen> saved;
    auto const whole = std::make_shared<Parts>(fixture().start);
    // With a schedule: the saved rate is that of one step, not the base for the next.
    frugal::Schedule<frugal::Warmup<10>, frugal::Cosine> const schedule;
    frugal::Settings const settings{.steps = 40};
    frugal::Trainer{whole, Linear{}, settings, policy, schedule, Resume{.after_step = &saved}}.fit(
        tables);
    for (std::uint64_t const step : {1U, 5U, 30U}) {
      CAPTURE(step);
      auto const resumed = std::make_shared<Parts>(fixture().start);
      frugal::Trainer{resumed, Linear{}, settings,
                      policy,  schedule, Resume{.from = &saved.at(step)}}
          .fit(tables);
      CHECK(same_bits(tensors_of(*resumed), tensors_of(*whole)));
    }
  };
  check(any<torch::optim::AdamW>(torch::optim::AdamWOptions(1e-2).amsgrad(true)));
  check(
      any<torch::optim::RMSprop>(torch::optim::RMSpropOptions(1e-2).momentum(0.9).centered(true)));
  check(any<torch::optim::SGD>(torch::optim::SGDOptions(1e-2).momentum(0.9)));
}

TEST_CASE("a resumed torch optimizer has the options of the program, not the saved ones") {
  // One parameter, gradient 1 in every step. Plain SGD moves it by lr; weight decay adds lr * wd *
  // w.
  struct Sum {
    at::Tensor operator()(std::shared_ptr<Parts>& module, at::Tensor const&) const {
      return module->parameters()[0].sum();
    }
  };
  auto const decays = [](double decay) {
    return any<torch::optim::SGD>(torch::optim::SGDOptions(0.5).weight_decay(decay));
  };
  auto const start = [] { return std::make_shared<Parts>(std::vector<at::Tensor>{at::ones({1})}); };
  std::vector<at::Tensor> const batches(4, at::zeros({1}));
  std::map<std::uint64_t, Frozen> saved;
  frugal::Trainer{start(), Sum{}, frugal::Settings{.steps = 1}, decays(0),
                  Resume{.after_step = &saved}}
      .fit(batches);
  auto const resumed = start();
  frugal::Trainer{resumed, Sum{}, frugal::Settings{.steps = 2}, decays(1),
                  Resume{.from = &saved.at(1)}}
      .fit(batches);
  // 1 - 0.5 = 0.5; then 0.5 - 0.5 (1 + 1 * 0.5) = -0.25. With the saved options: 0.
  CHECK(resumed->parameters()[0].item<float>() == -0.25F);
}

TEST_CASE("LBFGS resumed from saved state ends with the same bits") {
  Convex const problem;
  int calls = 0;
  std::map<std::uint64_t, Frozen> saved;
  frugal::Settings const settings{.epochs = 4};
  auto const few = any<torch::optim::LBFGS>(torch::optim::LBFGSOptions(0.5).max_iter(2));
  auto const whole = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  frugal::Trainer{whole, LeastSquares{&calls}, settings, few, Resume{.after_step = &saved}}.fit(
      problem.batches({12}));
  auto const resumed = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  frugal::Trainer{resumed, LeastSquares{&calls}, settings, few, Resume{.from = &saved.at(2)}}.fit(
      problem.batches({12}));
  CHECK(same_bits(tensors_of(*resumed), tensors_of(*whole)));
}

std::string refused(Optimize<Any> const& with, Optimize<Any> const& from) {
  auto const tables = fixture().tables(case_named(fixture().file.at("cases"), "adamw"));
  std::map<std::uint64_t, Frozen> saved;
  frugal::Settings const settings{.steps = 3};
  frugal::Trainer{std::make_shared<Parts>(fixture().start), Linear{}, settings, from,
                  Resume{.after_step = &saved}}
      .fit(tables);
  return error_of<frugal::StateError>([&] {
    frugal::Trainer{std::make_shared<Parts>(fixture().start), Linear{}, settings, with,
                    Resume{.from = &saved.at(2)}}
        .fit(tables);
  });
}

TEST_CASE("the state of another torch optimizer is refused") {
  auto const sgd = any<torch::optim::SGD>(torch::optim::SGDOptions(1e-2).momentum(0.9));
  auto const adam = any<torch::optim::Adam>(torch::optim::AdamOptions(1e-2));
  CHECK(contains(refused(adam, sgd), "does not fit the optimizer"));
  CHECK(contains(refused(sgd, adam), "does not fit the optimizer"));
}

TEST_CASE("Optimize<Any> without a function, or with one that returns nothing, is refused") {
  auto const refusal = [](Optimize<Any> const& policy) {
    return error_of<frugal::SettingsError>([&] {
      frugal::Trainer{std::make_shared<Parts>(fixture().start), Linear{}, frugal::Settings{},
                      policy}
          .fit(std::vector<Table>(1));
    });
  };
  CHECK(contains(refusal({}), "make was not set"));
  CHECK(contains(refusal({.make = [](auto) { return nullptr; }}), "make returned nothing"));
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK(contains(refusal(any<torch::optim::SGD>(torch::optim::SGDOptions(infinity))), "lr is inf"));
}

using frugal::detail::save_by_place;
using Parameters = std::vector<at::Tensor>;

/// Twelve parameters with rising or falling addresses.
Parameters parameters(bool rising) {
  Parameters made;
  for (int i = 0; i < 12; ++i) made.push_back(at::zeros({2}));
  std::sort(made.begin(), made.end(), [&](at::Tensor const& a, at::Tensor const& b) {
    bool const before = a.unsafeGetTensorImpl() < b.unsafeGetTensorImpl();
    return rising ? before : b.unsafeGetTensorImpl() < a.unsafeGetTensorImpl();
  });
  for (at::Tensor& each : made) each.requires_grad_();
  return made;
}

/// One update in which parameter i has the gradient i + 1.
void step(torch::optim::Optimizer& optimizer, Parameters const& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].mutable_grad() = at::full({2}, static_cast<double>(i + 1));
  }
  optimizer.step([] { return at::zeros({}); });
}

std::string bytes_of(torch::optim::Optimizer const& optimizer) {
  torch::serialize::OutputArchive archive;
  save_by_place(optimizer, archive);
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}

/// Two groups, the second with half the rate.
template <class Optimizer, class Options>
std::unique_ptr<Optimizer> in_two_groups(Parameters const& all, Options const& options) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Parameters(all.begin(), all.begin() + 5), std::make_unique<Options>(options));
  groups.emplace_back(Parameters(all.begin() + 5, all.end()), std::make_unique<Options>(options));
  groups[1].options().set_lr(0.5 * options.lr());
  return std::make_unique<Optimizer>(groups, options);
}

template <class Optimizer, class Options>
void saves_the_same_bytes(Options const& options) {
  Parameters const rising = parameters(true);
  Parameters const falling = parameters(false);
  auto const one = in_two_groups<Optimizer>(rising, options);
  auto const other = in_two_groups<Optimizer>(falling, options);
  step(*one, rising);
  step(*other, falling);
  CHECK((bytes_of(*one) == bytes_of(*other)));
  step(*one, rising);
  CHECK((bytes_of(*one) != bytes_of(*other)));
}

TEST_CASE("equal states of a torch optimizer are equal bytes, wherever its parameters are") {
  saves_the_same_bytes<torch::optim::Adam>(torch::optim::AdamOptions(0.1).amsgrad(true));
  saves_the_same_bytes<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

TEST_CASE("so are those of LBFGS, which has one state for all parameters") {
  auto const make = [](Parameters const& all) {
    auto made =
        std::make_unique<torch::optim::LBFGS>(all, torch::optim::LBFGSOptions(0.1).max_iter(1));
    step(*made, all);
    return made;
  };
  CHECK((bytes_of(*make(parameters(true))) == bytes_of(*make(parameters(false)))));
}

/// An update, a save, an update; and the second update repeated by another optimizer that has
/// loaded the save. Returns both results.
template <class Save>
std::pair<at::Tensor, at::Tensor> both_ends(Save&& save) {
  torch::optim::AdamOptions const options(0.1);
  Parameters const all = parameters(true);
  auto const one = in_two_groups<torch::optim::Adam>(all, options);
  step(*one, all);
  torch::serialize::OutputArchive out;
  save(*one, out);
  std::ostringstream bytes;
  out.save_to(bytes);

  Parameters const others = parameters(false);
  {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < all.size(); ++i) others[i].copy_(all[i]);
  }
  auto const other = in_two_groups<torch::optim::Adam>(others, options);
  std::istringstream stream(bytes.str());
  torch::serialize::InputArchive in;
  in.load_from(stream);
  other->load(in);
  step(*one, all);
  step(*other, others);
  return {at::cat(all).detach(), at::cat(others).detach()};
}

TEST_CASE("LibTorch loads this form, and Optimizer::save's form still loads") {
  auto const [end, resumed] =
      both_ends([](auto const& optimizer, auto& out) { save_by_place(optimizer, out); });
  CHECK(end.equal(resumed));
  auto const [old_end, old_resumed] =
      both_ends([](auto const& optimizer, auto& out) { optimizer.save(out); });
  CHECK(old_end.equal(old_resumed));
  CHECK(end.equal(old_end));
}

/// A user-defined optimizer with its own saved form.
struct Mine : torch::optim::SGD {
  using SGD::SGD;
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("mine", at::ones({1}));
  }
};

TEST_CASE("a user-defined optimizer is saved by its own save()") {
  torch::serialize::OutputArchive archive;
  save_by_place(Mine(parameters(true), torch::optim::SGDOptions(0.1)), archive);
  std::ostringstream out;
  archive.save_to(out);
  std::istringstream stream(out.str());
  torch::serialize::InputArchive in;
  in.load_from(stream);
  CHECK(in.keys() == std::vector<std::string>{"mine"});
}

}  // namespace frugal_test::policy_optimize_any
