// SPDX-License-Identifier: Apache-2.0
// The gradients are those of tests/reference/clip.json.
#include "policy/optimize/fixture.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/skip_non_finite.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::policy_clip {

using namespace frugal_test::policy_optimize;

/// Parameters of zeros, of the shapes in the file.
std::shared_ptr<Parts> parts_of(Json const& file) {
  std::vector<at::Tensor> start;
  for (Json const& shape : file.at("shapes")) start.push_back(at::zeros(shape_in(shape)));
  return std::make_shared<Parts>(start);
}

/// Undefined for parameters without a gradient.
Table gradients_of(Json const& file, Json const& name) {
  Table table;
  Json const& gradients = file.at("gradients").at(name.get<std::string>());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    table.gradients.push_back(gradients[i].is_null()
                                  ? at::Tensor()
                                  : tensor_in(gradients[i], shape_in(file.at("shapes")[i])));
  }
  return table;
}

}  // namespace frugal_test::policy_clip

namespace frugal_test::policy_clip_norm {

using namespace frugal_test::policy_clip;
using frugal::ClipNorm;
using frugal::Optimize;
using frugal::SGD;

TEST_CASE("ClipNorm clips what PyTorch's clip_grad_norm_ clips, in a run") {
  Json const file = reference("clip.json");
  int cases = 0;
  for (Json const& which : file.at("norms")) {
    if (which.at("norm_type") != "2") continue;
    ++cases;
    CAPTURE(which.dump().substr(0, 60));
    auto const module = parts_of(file);
    // A step of rate 1 from zero is minus the clipped gradient.
    frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                    ClipNorm<>{.max_norm = which.at("max_norm")}}
        .fit(std::vector<Table>{gradients_of(file, which.at("gradients"))});
    Json const& clipped = which.at("float64").at("clipped");
    for (std::size_t i = 0; i < clipped.size(); ++i) {
      at::Tensor const found = module->parameters()[i];
      if (clipped[i].is_null()) {
        CHECK(at::equal(found, at::zeros_like(found)));
        continue;
      }
      at::Tensor const expected = tensor_in(clipped[i], found.sizes().vec(), at::kDouble).neg();
      // A norm and a product in float32: a few units in the last place, 1.2e-7 each.
      CHECK(distance(found, expected) <= 5e-7 * expected.abs().max().item<double>());
    }
  }
  CHECK(cases == 7);
}

using ClipContext = frugal::Context<std::shared_ptr<Parts>, ClipNorm<>>;

TEST_CASE("the reported norm is the total norm before clipping") {
  Json const file = reference("clip.json");
  for (Json const& which : file.at("norms")) {
    if (which.at("norm_type") != "2") continue;
    auto module = parts_of(file);
    frugal::Settings const settings;
    frugal::Run<ClipContext> run(module, settings, {});
    Table const table = gradients_of(file, which.at("gradients"));
    for (std::size_t i = 0; i < table.gradients.size(); ++i) {
      run.parameters.tensors[i].mutable_grad() = table.gradients[i];
    }
    run.window.gradients().collect(run.parameters);
    ClipNorm<>::State state(ClipNorm<>{.max_norm = which.at("max_norm")});
    CHECK_FALSE(run.window.norm().known());
    frugal::Gradients phase(run);
    state.on_gradients(phase);
    CHECK(run.window.norm().value() ==
          doctest::Approx(which.at("float64").at("norm").get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("gradients below the limit keep their bits") {
  Json const file = reference("clip.json");
  Table const table = gradients_of(file, "usual");
  auto const module = parts_of(file);
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                  ClipNorm<1000.0>{}}
      .fit(std::vector<Table>{table});
  for (std::size_t i = 0; i < table.gradients.size(); ++i) {
    CHECK(at::equal(module->parameters()[i], table.gradients[i].neg()));
  }
}

TEST_CASE("the gradient of the whole window is clipped") {
  // Two micro-batches of gradients 3 and 1: their mean is 2, and clips to 1.5.
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
  Seen seen;
  frugal::Trainer{module,
                  Linear{},
                  frugal::Settings{},
                  Optimize<SGD>{.lr = 1.0},
                  frugal::Accumulate<2>{},
                  ClipNorm<1.5>{},
                  Spy{.seen = &seen}}
      .fit(std::vector<Table>{{{at::full({1}, 3.0)}}, {{at::full({1}, 1.0)}}});
  REQUIRE(seen.gradient_norms.size() == 1);
  CHECK(seen.gradient_norms[0] == doctest::Approx(1.5).epsilon(1e-6));
  CHECK(module->parameters()[0].item<double>() == doctest::Approx(-1.5).epsilon(1e-6));
}

TEST_CASE("clipping reads no scalar through LibTorch, above or below the limit") {
  auto const per_step = [](auto policy) {
    auto const run = [&](std::size_t steps) {
      return operators_of([&] {
        frugal::Trainer{std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})}), Linear{},
                        frugal::Settings{}, Optimize<SGD>{}, policy}
            .fit(std::vector<Table>(steps, Table{{at::ones({3})}}));
      });
    };
    auto const few = run(3);
    auto many = run(7);
    for (auto const& [name, count] : few) many[name] -= count;
    return many;
  };
  for (double const limit : {0.5, 100.0}) {
    auto operators = per_step(ClipNorm<>{.max_norm = limit});
    CHECK(operators["aten::_foreach_norm"] == 4);
    CHECK(operators["aten::item"] == 0);
    CHECK(operators["aten::_local_scalar_dense"] == 0);
  }
}

/// Two parameters, of which the second gets this gradient in the second step.
std::shared_ptr<Parts> clipped(at::Tensor const& gradient) {
  auto const module =
      std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({2}), at::zeros({2})});
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0}, ClipNorm<>{}}.fit(
      std::vector<Table>{{{at::tensor({0.5F, 0.0F}), at::zeros({2})}},
                         {{at::zeros({2}), gradient}}});
  return module;
}

TEST_CASE("a gradient whose squares overflow is clipped by its true norm") {
  auto const module = clipped(at::tensor({3e25F, -4e25F}));
  CHECK(at::allclose(module->parameters()[1], at::tensor({-0.6F, 0.8F}), 1e-5));
  CHECK(at::equal(module->parameters()[0], at::tensor({-0.5F, 0.0F})));
}

/// Finite losses: a parameter of zeros times a gradient that a hook replaces.
struct Hooked {
  double value;
  at::Tensor operator()(std::shared_ptr<Parts>& module, Table const& table) const {
    at::Tensor const weight = module->parameters()[0] * 1;
    bool const last = table.gradients[0][0].item<float>() == 2;
    weight.register_hook([last, value = value](at::Tensor const& gradient) {
      return last ? at::full_like(gradient, value) : gradient;
    });
    return (weight * table.gradients[0]).sum();
  }
};

TEST_CASE("a norm that is not finite ends the run before the update, and names the step") {
  double const infinity = std::numeric_limits<double>::infinity();
  for (double const value : {infinity, -infinity, std::nan("")}) {
    auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
    std::string const text = error_of<frugal::NonFiniteGradientError>([&] {
      frugal::Trainer{module, Hooked{value}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                      ClipNorm<5.0>{}}
          .fit(std::vector<Table>{{{at::ones({1})}}, {{at::full({1}, 2.0)}}});
    });
    CHECK(contains(text, std::isnan(value) ? "gradients is NaN" : "gradients is infinite"));
    CHECK(contains(text, "epoch 0, step 1"));
    CHECK(contains(text, "SkipNonFinite"));
    CHECK(at::equal(module->parameters()[0], at::tensor({-1.0F})));
  }
}

TEST_CASE("a policy that skips such windows keeps the run going") {
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})});
  frugal::Report const report =
      frugal::Trainer{
          module,          Hooked{std::nan("")},   frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
          ClipNorm<5.0>{}, frugal::SkipNonFinite{}}
          .fit(std::vector<Table>{{{at::ones({1})}}, {{at::full({1}, 2.0)}}, {{at::ones({1})}}});
  CHECK(report.steps == 2);
  CHECK(report.non_finite_windows == 1);
  CHECK(at::equal(module->parameters()[0], at::tensor({-2.0F})));
}

TEST_CASE("ClipNorm refuses a run-time limit that is not positive") {
  for (double const limit : {0.0, -1.0, std::nan("")}) {
    std::string const text = error_of<frugal::SettingsError>([&] {
      frugal::Trainer{std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})}), Linear{},
                      frugal::Settings{}, Optimize<SGD>{}, ClipNorm<>{.max_norm = limit}}
          .fit(std::vector<Table>{{{at::ones({1})}}});
    });
    CHECK(contains(text, "ClipNorm::max_norm"));
  }
}

}  // namespace frugal_test::policy_clip_norm

namespace frugal_test::policy_clip_value {

using namespace frugal_test::policy_clip;
using frugal::ClipValue;
using frugal::Optimize;
using frugal::SGD;

TEST_CASE("ClipValue clips what PyTorch's clip_grad_value_ clips, in a run") {
  Json const file = reference("clip.json");
  int cases = 0;
  for (Json const& which : file.at("values")) {
    ++cases;
    CAPTURE(which.dump().substr(0, 60));
    auto const module = parts_of(file);
    frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                    ClipValue<>{.max_value = which.at("clip_value")}}
        .fit(std::vector<Table>{gradients_of(file, which.at("gradients"))});
    Json const& clipped = which.at("clipped");
    for (std::size_t i = 0; i < clipped.size(); ++i) {
      at::Tensor const found = module->parameters()[i];
      at::Tensor const expected = clipped[i].is_null()
                                      ? at::zeros_like(found)
                                      : tensor_in(clipped[i], found.sizes().vec()).neg();
      CHECK(at::equal(found, expected));
    }
  }
  CHECK(cases == 6);
}

TEST_CASE("the limit in the type is that of the settings") {
  auto const module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({3})});
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0}, ClipValue<0.25>{}}
      .fit(std::vector<Table>{{{at::tensor({0.5F, -4.0F, 0.125F})}}});
  CHECK(at::equal(module->parameters()[0], at::tensor({-0.25F, 0.25F, -0.125F})));
}

TEST_CASE("a NaN among the gradients stays NaN") {
  using Context = frugal::Context<std::shared_ptr<Parts>, ClipValue<>>;
  auto module = std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({2})});
  frugal::Settings const settings;
  frugal::Run<Context> run(module, settings, {});
  run.parameters.tensors[0].mutable_grad() = at::tensor({std::nanf(""), 3.0F});
  run.window.gradients().collect(run.parameters);
  ClipValue<>::State state(ClipValue<>{});
  frugal::Gradients phase(run);
  state.on_gradients(phase);
  CHECK(run.window.gradients().tensors()[0][0].isnan().item<bool>());
  CHECK(run.window.gradients().tensors()[0][1].item<float>() == 1.0F);
}

TEST_CASE("ClipValue refuses a run-time limit that is not positive") {
  for (double const limit : {0.0, -1.0, std::nan("")}) {
    std::string const text = error_of<frugal::SettingsError>([&] {
      frugal::Trainer{std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})}), Linear{},
                      frugal::Settings{}, Optimize<SGD>{}, ClipValue<>{.max_value = limit}}
          .fit(std::vector<Table>{{{at::ones({1})}}});
    });
    CHECK(contains(text, "ClipValue::max_value"));
  }
}

}  // namespace frugal_test::policy_clip_value

namespace frugal_test::policy_clip_adaptive {

using namespace frugal_test::policy_clip;
using frugal::ClipAdaptive;
using frugal::Optimize;
using frugal::SGD;

std::shared_ptr<Parts> weights_of(Json const& file) {
  std::vector<at::Tensor> start;
  Json const& weights = file.at("adaptive_weights");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    start.push_back(tensor_in(weights[i], shape_in(file.at("shapes")[i])));
  }
  return std::make_shared<Parts>(start);
}

TEST_CASE("gradients are clipped by unit, by the paper's formula") {
  Json const file = reference("clip.json");
  int cases = 0;
  for (Json const& which : file.at("adaptive")) {
    ++cases;
    CAPTURE(which.dump().substr(0, 60));
    auto const module = weights_of(file);
    auto const before = weights_of(file);
    frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                    ClipAdaptive<>{.share = which.at("share"), .least = which.at("least")}}
        .fit(std::vector<Table>{gradients_of(file, which.at("gradients"))});
    Json const& clipped = which.at("clipped");
    for (std::size_t i = 0; i < clipped.size(); ++i) {
      at::Tensor const found = before->parameters()[i] - module->parameters()[i];
      at::Tensor const expected = clipped[i].is_null()
                                      ? at::zeros_like(found)
                                      : tensor_in(clipped[i], found.sizes().vec(), at::kDouble);
      // The weights are about 1, so their difference has that rounding error.
      CHECK(distance(found, expected) <= 3e-7 * (1 + expected.abs().max().item<double>()));
    }
  }
  CHECK(cases == 8);
}

TEST_CASE("gradients below their limits keep their bits") {
  Json const file = reference("clip.json");
  auto const module = weights_of(file);
  auto const plain = weights_of(file);
  Table const table = gradients_of(file, "usual");
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{},
                  ClipAdaptive<>{.share = 1e4}}
      .fit(std::vector<Table>{table});
  frugal::Trainer{plain, Linear{}, frugal::Settings{}, Optimize<SGD>{}}.fit(
      std::vector<Table>{table});
  CHECK(same_bits(tensors_of(*module), tensors_of(*plain)));
}

TEST_CASE("skipped parameters are not clipped") {
  auto const module =
      std::make_shared<Parts>(std::vector<at::Tensor>{at::ones({1}), at::ones({1})});
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                  ClipAdaptive<0.5>{.skips = [](std::string_view name,
                                                at::Tensor const&) { return name == "p1"; }}}
      .fit(std::vector<Table>{{{at::full({1}, 4.0), at::full({1}, 4.0)}}});
  CHECK(module->parameters()[0].item<double>() == doctest::Approx(0.5));
  CHECK(module->parameters()[1].item<double>() == doctest::Approx(-3.0));
}

template <class Policy>
std::string refused(Policy const& policy) {
  return error_of<frugal::SettingsError>([&] {
    frugal::Trainer{std::make_shared<Parts>(std::vector<at::Tensor>{at::zeros({1})}), Linear{},
                    frugal::Settings{}, Optimize<SGD>{}, policy}
        .fit(std::vector<Table>{{{at::ones({1})}}});
  });
}

TEST_CASE("run-time settings that clip everything, or nothing, are refused") {
  for (double const value : {0.0, -1.0, std::nan("")}) {
    CHECK(contains(refused(ClipAdaptive<>{.share = value}), "ClipAdaptive::share"));
    CHECK(contains(refused(ClipAdaptive<>{.least = value}), "ClipAdaptive::least"));
  }
  CHECK(contains(refused(ClipAdaptive<>{.skips = [](auto, auto const&) { return true; }}),
                 "ClipAdaptive::skips"));
}

}  // namespace frugal_test::policy_clip_adaptive
