// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/clip/value.hpp>

#include "policy/clip/fixture.hpp"

#include <cmath>
#include <string>

namespace frugal_test::policy_clip_value {

using namespace frugal_test::policy_clip;
using frugal::ClipValue;
using frugal::Optimize;
using frugal::SGD;
using namespace frugal::literals;

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
  frugal::Trainer{module, Linear{}, frugal::Settings{}, Optimize<SGD>{.lr = 1.0},
                  ClipValue<0.25_r>{}}
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
