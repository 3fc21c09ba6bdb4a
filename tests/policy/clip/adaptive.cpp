// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/clip/adaptive.hpp>

#include "policy/clip/fixture.hpp"

#include <cmath>
#include <string>

namespace frugal_test::policy_clip_adaptive {

using namespace frugal_test::policy_clip;
using frugal::ClipAdaptive;
using frugal::Optimize;
using frugal::SGD;
using namespace frugal::literals;

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
                  ClipAdaptive<0.5_r>{.skips = [](std::string_view name,
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
