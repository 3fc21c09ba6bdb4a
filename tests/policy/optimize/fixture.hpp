// SPDX-License-Identifier: Apache-2.0
// The job of tests/reference/optimizers.json: four parameters and a table of gradients.
#pragma once

#include <doctest/doctest.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

namespace frugal_test::policy_optimize {

using namespace frugal_test::support;

/// The gradients of one step; undefined for parameters without one.
struct Table {
  std::vector<at::Tensor> gradients;
};

}  // namespace frugal_test::policy_optimize

template <>
struct frugal::batch_traits<frugal_test::policy_optimize::Table> {
  static std::int64_t samples(frugal_test::policy_optimize::Table const&) { return 1; }
  static std::int64_t tokens(frugal_test::policy_optimize::Table const&) { return 1; }
  static void to(frugal_test::policy_optimize::Table&, at::Device) {}
};

namespace frugal_test::policy_optimize {

/// Parameters p0, p1, ... with given initial values.
struct Parts : torch::nn::Module {
  explicit Parts(std::vector<at::Tensor> const& start) {
    for (std::size_t i = 0; i < start.size(); ++i) {
      register_parameter("p" + std::to_string(i), start[i].clone());
    }
  }
};

/// Sum over the parameters of (p * g).sum(): its gradient at p is exactly g.
struct Linear {
  template <class Module>
  at::Tensor operator()(Module& module, Table const& table) const {
    at::Tensor loss = at::zeros({});
    auto const parameters = frugal::base_module(module).parameters();
    for (std::size_t i = 0; i < table.gradients.size(); ++i) {
      if (table.gradients[i].defined()) loss = loss + (parameters[i] * table.gradients[i]).sum();
    }
    return loss;
  }
};

/// Keeps the learning rate that loggers show of the last step.
struct RateShown {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.RateShown";
  };
  using listens = frugal::list<frugal::on::step>;
  using before = frugal::list<frugal::kinds::schedule>;

  std::vector<std::optional<double>>* found = nullptr;

  struct State {
    using transient = void;
    explicit State(RateShown const& settings) : found(settings.found) {}
    void on_step(frugal::Step& phase) { found->push_back(phase.learning_rate()); }
    std::vector<std::optional<double>>* found;
  };
};

struct Fixture {
  Json file = reference("optimizers.json");
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<at::Tensor> start;

  Fixture() {
    for (Json const& each : file.at("start")) {
      shapes.push_back(shape_in(each.at("shape")));
      start.push_back(tensor_in(each.at("values"), shapes.back()));
    }
  }

  /// The table of one case, with all of its 100 steps.
  std::vector<Table> tables(Json const& which) const {
    std::vector<Table> all;
    for (std::uint32_t step = 1; step <= 100; ++step) {
      Table table;
      for (std::uint32_t p = 0; p < shapes.size(); ++p) {
        at::Tensor gradient = at::empty(shapes[p], at::kFloat);
        for (std::int64_t i = 0; i < gradient.numel(); ++i) {
          gradient.mutable_data_ptr<float>()[i] = static_cast<float>(std::ldexp(
              number({1, step, p, static_cast<std::uint32_t>(i)}), -static_cast<int>(p)));
        }
        for (Json const& absent : which.at("absent")) {
          for (Json const& without : absent.at("steps")) {
            if (absent.at("parameter") == p && without == step) gradient = at::Tensor();
          }
        }
        table.gradients.push_back(gradient);
      }
      all.push_back(table);
    }
    return all;
  }
};

inline Fixture const& fixture() {
  static Fixture const once;
  return once;
}

inline void configure(frugal::Optimize<frugal::SGD>& to, Json const& from) {
  to.lr = from.at("lr");
  to.momentum = from.at("momentum");
  to.dampening = from.at("dampening");
  to.weight_decay = from.at("weight_decay");
  to.nesterov = from.at("nesterov");
  to.maximize = from.at("maximize");
}
inline void configure(frugal::Optimize<frugal::Adagrad>& to, Json const& from) {
  to.lr = from.at("lr");
  to.lr_decay = from.at("lr_decay");
  to.weight_decay = from.at("weight_decay");
  to.initial_accumulator = from.at("initial_accumulator_value");
  to.eps = from.at("eps");
}
template <class Algorithm>
void configure(frugal::Optimize<Algorithm>& to, Json const& from) {
  to.lr = from.at("lr");
  to.beta1 = from.at("betas").at(0);
  to.beta2 = from.at("betas").at(1);
  to.eps = from.at("eps");
  to.weight_decay = from.at("weight_decay");
  to.amsgrad = from.at("amsgrad");
  to.maximize = from.at("maximize");
}

/// Whether the groups differ only in what frugal's groups support: rate and weight decay.
inline bool groups_fit(Json const& groups) {
  for (Json group : groups) {
    Json first = groups.front();
    for (char const* own : {"parameters", "lr", "weight_decay"}) {
      group.erase(own);
      first.erase(own);
    }
    if (group != first) return false;
  }
  return true;
}

inline frugal::ParameterGroup group_of(Json const& from) {
  std::vector<std::string> names;
  for (Json const& p : from.at("parameters")) names.push_back("p" + std::to_string(p.get<int>()));
  return {.name = names.front(),
          .selects =
              [names](std::string_view name, at::Tensor const&) {
                return std::find(names.begin(), names.end(), name) != names.end();
              },
          .lr = from.at("lr").get<double>(),
          .weight_decay = from.at("weight_decay").get<double>()};
}

/// frugal and PyTorch compute the same up to rounding. The file's float64 run is the exact result
/// of both; `rounding` is the distance of PyTorch's float32 run from it, the result of about ten
/// roundings per step in one order. Another order of the same operations (the fused kernels', some
/// of them with fused multiply-add) is a second draw of the same errors: a factor of four is
/// generous for that, and a wrong formula is off by a factor of thousands.
inline constexpr double roundings = 4;

/// Trains 100 steps of a case and compares the parameters at every step in the file.
template <class Policy>
void compare(Policy const& policy, Json const& which, std::vector<int> const& compared) {
  auto const module = std::make_shared<Parts>(fixture().start);
  int looks = 0;
  Spy spy{.each_step = [&](frugal::Counters const& at) {
    std::string const step = std::to_string(at.step);
    if (!which.at("float64").contains(step)) return;
    ++looks;
    CAPTURE(step);
    double const allowed = roundings * which.at("rounding").at(step).get<double>();
    for (int const p : compared) {
      CAPTURE(p);
      auto const i = static_cast<std::size_t>(p);
      at::Tensor const expected =
          tensor_in(which.at("float64").at(step).at(i), fixture().shapes[i], at::kDouble);
      CHECK(distance(module->parameters()[i], expected) <= allowed);
    }
  }};
  frugal::Trainer trainer{module, Linear{}, frugal::Settings{}, policy, spy};
  CHECK(trainer.fit(fixture().tables(which)).steps == 100);
  CHECK(looks == 4);
}

/// Compares every case of one optimizer; returns how many there were.
template <class Algorithm>
int compare_all(std::string const& optimizer) {
  int cases = 0;
  for (Json const& which : fixture().file.at("cases")) {
    if (which.at("optimizer") != optimizer) continue;
    ++cases;
    CAPTURE(which.at("name").get<std::string>());
    Json const& groups = which.at("groups");
    frugal::Optimize<Algorithm> policy;
    configure(policy, groups.front());
    if (groups_fit(groups)) {
      if (groups.size() > 1) {
        for (Json const& group : groups) policy.groups.push_back(group_of(group));
      }
      compare(policy, which, {0, 1, 2, 3});
      continue;
    }
    // Groups that differ in momentum or the like are two recipes here. Each parameter's path
    // depends on its own gradients alone, so each group is compared in a separate run with its
    // settings.
    for (Json const& group : groups) {
      configure(policy, group);
      compare(policy, which, group.at("parameters").get<std::vector<int>>());
    }
  }
  return cases;
}

/// Stopped after some steps, saved, and loaded into a fresh run: the bits of an uninterrupted run.
template <class Policy>
void resumes(Policy const& policy, Json const& which) {
  std::vector<Table> const tables = fixture().tables(which);
  std::map<std::uint64_t, Frozen> saved;
  auto const whole = std::make_shared<Parts>(fixture().start);
  frugal::Trainer{whole, Linear{}, frugal::Settings{}, policy, Resume{.after_step = &saved}}.fit(
      tables);
  REQUIRE(saved.size() == 100);
  for (std::uint64_t const step : {1U, 4U, 10U, 51U, 99U, 100U}) {
    CAPTURE(step);
    std::map<std::uint64_t, Frozen> again;
    auto const resumed = std::make_shared<Parts>(fixture().start);
    frugal::Trainer trainer{resumed, Linear{}, frugal::Settings{}, policy,
                            Resume{.from = &saved.at(step), .after_step = &again}};
    CHECK(trainer.fit(tables).steps == 100);
    CHECK(same_bits(tensors_of(*resumed), tensors_of(*whole)));
    if (step == 100) continue;
    CHECK(again.size() == 100 - step);
    CHECK(again.at(100).run == saved.at(100).run);
  }
}

/// The message of the error that `body` throws; fails the test if it throws no error of that type.
template <class Error, class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (Error const& error) {
    return error.what();
  } catch (std::exception const& error) {
    FAIL_CHECK("another error came: " << std::string(error.what()));
    return "";
  }
  FAIL_CHECK("no error came");
  return "";
}

inline bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace frugal_test::policy_optimize
