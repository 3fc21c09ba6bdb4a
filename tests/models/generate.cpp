// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/models/generate.hpp>
#include <frugal/models/gpt2.hpp>

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "models.hpp"

namespace frugal_test::models_generate {

using namespace frugal_test::models;
using namespace frugal_test::support;
using frugal::models::CausalModel;
using frugal::models::generate;
using frugal::models::GenerateOptions;
using frugal::models::Gpt2;
using frugal::models::Gpt2Options;
using frugal::models::KeyValueCache;

/// Whatever was said before, the next token is drawn by these logits. Position p of a text with a cache
/// is counted in `read`.
struct Fixed : CausalModel {
  explicit Fixed(at::Tensor logits) : next_V(std::move(logits)) {}
  at::Tensor hidden(at::Tensor const& ids_BT, KeyValueCache* cache) override {
    read += ids_BT.size(1);
    trained = trained || is_training();
    graded = graded || at::GradMode::is_enabled();
    CHECK(cache != nullptr);
    return ids_BT.unsqueeze(2).to(at::kFloat);
  }
  at::Tensor logits(at::Tensor const& hidden_BT1) override {
    return next_V.expand({hidden_BT1.size(0), hidden_BT1.size(1), next_V.size(0)});
  }
  std::int64_t positions() const override { return 1000; }

  at::Tensor next_V;
  std::int64_t read = 0;
  bool trained = false, graded = false;
};

TEST_CASE("temperature, top_k and top_p leave the shares of transformers' warpers") {
  Json const file = reference("models.json");
  at::Tensor const logits_BV = table({2, 12}, 65, 0) * 3;
  for (Json const& way : file.at("filtered")) {
    CAPTURE(way.dump());
    GenerateOptions const options{
        .temperature = way.at("temperature"), .top_k = way.at("top_k"), .top_p = way.at("top_p")};
    at::Tensor const shares_BV = frugal::detail::filtered_logits(logits_BV, options).softmax(1);
    CHECK(farthest(shares_BV, way.at("shares")) < 1e-6);
    // The draws have these shares, within five standard errors.
    Fixed model(logits_BV[1]);
    std::int64_t const count = 20000;
    GenerateOptions drawn = options;
    drawn.max_new_tokens = 1;
    at::Tensor const token_B =
        generate(model, at::zeros({count, 1}, at::kLong), drawn).select(1, 1);
    at::Tensor const found_V = token_B.bincount({}, 12) / static_cast<double>(count);
    at::Tensor const error_V = (shares_BV[1] * (1 - shares_BV[1]) / count).sqrt();
    CHECK(((found_V - shares_BV[1]).abs() <= 5 * error_V + 1e-12).all().item<bool>());
  }
}

TEST_CASE("equal seeds give equal texts, and LibTorch's generators are left alone") {
  torch::manual_seed(1);
  Gpt2 net(Gpt2Options{.vocabulary = 41, .positions = 32, .width = 24, .layers = 2, .heads = 3});
  at::Tensor const prompt_BT = at::arange(1, 7).view({2, 3});
  GenerateOptions options{.max_new_tokens = 12, .temperature = 1.5, .seed = 4};
  at::Tensor const before = at::detail::getDefaultCPUGenerator().get_state();
  at::Tensor const text = generate(net, prompt_BT, options);
  CHECK(at::equal(at::detail::getDefaultCPUGenerator().get_state(), before));
  CHECK((text.sizes() == at::IntArrayRef{2, 15}));
  CHECK(at::equal(text.narrow(1, 0, 3), prompt_BT));
  CHECK(at::equal(generate(net, prompt_BT, options), text));
  options.seed = 5;
  CHECK_FALSE(at::equal(generate(net, prompt_BT, options), text));
  CHECK(net->is_training());
  CHECK((generate(net, prompt_BT[0].to(at::kInt), options).scalar_type() == at::kInt));
}

TEST_CASE("the model is read once, without gradients and dropout, and its modes are put back") {
  Fixed model(at::arange(5, at::kFloat));
  at::Tensor const text = generate(model, at::zeros({1, 4}, at::kLong), {.max_new_tokens = 3});
  CHECK(at::equal(text, at::tensor({0, 0, 0, 0, 4, 4, 4}).view({1, 7})));
  CHECK(model.read == 6);
  CHECK_FALSE(model.trained);
  CHECK_FALSE(model.graded);
  CHECK(model.is_training());
  CHECK(at::GradMode::is_enabled());
  // A stop token ends it; nothing is read behind it.
  model.read = 0;
  CHECK((generate(model, at::zeros({4}, at::kLong), {.max_new_tokens = 9, .stop_token = 4})
             .size(0)) == 5);
  CHECK(model.read == 4);
  CHECK(generate(model, at::zeros({4}, at::kLong), {.max_new_tokens = 0}).size(0) == 4);
  // A temperature near 0 is the likeliest token, and tokens may be ruled out.
  model.next_V[4] = -std::numeric_limits<float>::infinity();
  CHECK(generate(model, at::zeros({4}, at::kLong), {.max_new_tokens = 1, .temperature = 1e-300})[4]
            .item<std::int64_t>() == 3);
  // At the way out of an error, too.
  model.next_V[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(generate(model, at::zeros({4}, at::kLong)), frugal::ModuleError);
  CHECK(model.is_training());
}

TEST_CASE("texts of different lengths go on as each does alone") {
  torch::manual_seed(3);
  Gpt2 net(Gpt2Options{
      .vocabulary = 41, .positions = 16, .width = 24, .layers = 2, .heads = 3, .deviation = 0.5});
  std::vector<at::Tensor> const prompts{at::arange(4), at::tensor({7, 9}).to(at::kInt),
                                        at::arange(9, 16), at::tensor({30, 2})};
  GenerateOptions options{.max_new_tokens = 10};
  at::Tensor const second = generate(net, prompts[1], options);
  for (std::optional<std::int64_t> const stop :
       {std::optional<std::int64_t>(), std::optional(second[5].item<std::int64_t>())}) {
    options.stop_token = stop;
    std::vector<at::Tensor> const texts = generate(net, prompts, options);
    REQUIRE(texts.size() == prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      CHECK(at::equal(texts[i], generate(net, prompts[i], options)));
    }
    CHECK((texts[1].scalar_type() == at::kInt));
    CHECK((texts[1].size(0) < 12) == stop.has_value());
  }
  CHECK(generate(net, std::vector<at::Tensor>(), options).empty());
  options.max_new_tokens = 0;
  CHECK(at::equal(generate(net, prompts, options)[2], prompts[2]));
  options.max_new_tokens = 11;
  CHECK_THROWS_AS(generate(net, prompts, options), frugal::ShapeError);
  CHECK_THROWS_AS(generate(net, std::vector{at::zeros({1, 3}, at::kLong)}), frugal::ShapeError);
  CHECK_THROWS_AS(generate(net, std::vector{prompts[0], at::zeros({0}, at::kLong)}),
                  frugal::ShapeError);
}

TEST_CASE("generate refuses options and prompts that make no sense") {
  Fixed model(at::arange(5, at::kFloat));
  at::Tensor const prompt = at::zeros({1, 4}, at::kLong);
  CHECK_THROWS_AS(generate(model, prompt, {.max_new_tokens = -1}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, prompt, {.temperature = -1}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, prompt, {.temperature = std::nan("")}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, prompt, {.top_k = -1}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, prompt, {.top_p = 0}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, prompt, {.top_p = 1.5}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, prompt, {.stop_token = -1}), frugal::SettingsError);
  CHECK_THROWS_AS(generate(model, at::zeros({0}, at::kLong)), frugal::ShapeError);
  CHECK_THROWS_AS(generate(model, at::Tensor()), frugal::ShapeError);
  CHECK_THROWS_AS(generate(model, at::zeros({1, 4})), frugal::DtypeError);
  CHECK_THROWS_AS(generate(model, prompt, {.max_new_tokens = 998}), frugal::ShapeError);
  CHECK(model.read == 0);
  CHECK_THROWS_AS(generate(model, prompt, {.stop_token = 5}), frugal::SettingsError);
  CHECK(generate(model, at::zeros({1, 998}, at::kLong), {.max_new_tokens = 3}).size(1) == 1001);
}

}  // namespace frugal_test::models_generate
