// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/model_config.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/models/generate.hpp>
#include <frugal/models/gpt2.hpp>
#include <frugal/models/llama.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models.hpp"
#include "support/files.hpp"

namespace frugal_test::models_causal_model {

using namespace frugal_test::models;
using namespace frugal_test::support;
using frugal::ModelConfig;
using frugal::models::CausalModel;
using frugal::models::GenerateOptions;
using frugal::models::Gpt2;
using frugal::models::Gpt2Options;
using frugal::models::KeyValueCache;
using frugal::models::Llama;
using frugal::models::LlamaOptions;
using frugal::models::RopeScaling;

constexpr Gpt2Options tiny_gpt2{
    .vocabulary = 41, .positions = 32, .width = 24, .layers = 2, .heads = 3};

LlamaOptions llama_options(Json const& of) {
  LlamaOptions options{.vocabulary = 41,
                       .width = 24,
                       .layers = 2,
                       .heads = of.at("heads"),
                       .key_value_heads = of.at("key_value_heads").get<std::int64_t>(),
                       .intermediate = 40,
                       .positions = 256,
                       .head = of.at("head").get<std::int64_t>(),
                       .theta = 500,
                       .tied = of.at("tied")};
  options.attention_bias = options.mlp_bias = of.value("bias", false);
  if (of.contains("scaling")) {
    Json const& scaling = of.at("scaling");
    options.scaling = RopeScaling{.factor = scaling.at("factor"),
                                  .low = scaling.at("low"),
                                  .high = scaling.at("high"),
                                  .positions = scaling.at("positions")};
  }
  return options;
}

/// A cache gives what one pass over all tokens gives, however the tokens are cut.
void check_cache(CausalModel& model, at::Tensor const& ids_BT) {
  at::NoGradGuard const no_gradients;
  at::Tensor const whole_BTV = model.forward(ids_BT);
  for (std::int64_t const step : {1, 3, 7}) {
    KeyValueCache cache;
    for (int round = 0; round < 2; ++round) {
      std::vector<at::Tensor> parts;
      for (at::Tensor const& each : ids_BT.split(step, 1)) {
        parts.push_back(model.decode(each, cache));
      }
      CHECK(distance(at::cat(parts, 1), whole_BTV) < 1e-5);
      CHECK(cache.tokens() == ids_BT.size(1));
      cache.clear();
    }
  }
  // More tokens than the cache begins with room for.
  if (model.positions() >= 150) {
    at::Tensor const long_BT = ids_BT.repeat({1, 22}).narrow(1, 0, 150);
    KeyValueCache cache;
    model.decode(long_BT.narrow(1, 0, 100), cache);
    CHECK(distance(model.next(long_BT.narrow(1, 100, 50), cache),
                   model.forward(long_BT).select(1, 149)) < 1e-5);
  }
  // A token has no effect on those before it, and one on those after it.
  at::Tensor other_BT = ids_BT.clone();
  other_BT.select(1, 5).fill_(7);
  at::Tensor const change_T =
      (model.forward(other_BT) - whole_BTV).abs().amax(at::IntArrayRef{0, 2});
  CHECK(change_T.narrow(0, 0, 5).max().item<double>() < 1e-6);
  CHECK(change_T[6].item<double>() > 1e-3);
}

/// Greedy, token for token.
void check_continued(CausalModel& model, at::Tensor const& ids_BT, Json const& of) {
  at::Tensor const prompt_BT = ids_BT.narrow(1, 0, 5);
  at::Tensor const all = integers_in(of.at("tokens"));
  CHECK(at::equal(generate(model, prompt_BT, {.max_new_tokens = 14}), all));
  CHECK(at::equal(generate(model, prompt_BT[1], {.max_new_tokens = 14}), all[1]));
  CHECK(at::equal(generate(model, prompt_BT,
                           {.max_new_tokens = 14, .stop_token = of.at("stop").get<std::int64_t>()}),
                  integers_in(of.at("stopped"))));
}

TEST_CASE("GPT-2 has the logits, gradients and texts of transformers' GPT2LMHeadModel") {
  Json const file = reference("models.json");
  Json const& of = file.at("gpt2");
  at::Tensor const ids_BT = integers_in(file.at("tokens"));
  Gpt2 net(tiny_gpt2);
  fill(*net, of.at("state"), 100);
  net->eval();
  at::Tensor const logits_BTV = net(ids_BT);
  CHECK(farthest(logits_BTV, of.at("logits")) < 1e-5);
  CHECK(farthest_gradient(*net, of.at("state"), logits_BTV, of.at("gradients")) < 1e-5);
  check_cache(*net, ids_BT);
  check_continued(*net, ids_BT, of.at("continued"));
}

TEST_CASE("Llama has the logits, gradients and texts of transformers' LlamaForCausalLM") {
  Json const file = reference("models.json");
  at::Tensor const ids_BT = integers_in(file.at("tokens"));
  for (Json const& which : file.at("llamas")) {
    std::string const name = which.at("name");
    CAPTURE(name);
    Llama net(llama_options(which));
    fill(*net, which.at("state"), 62);
    at::Tensor const logits_BTV = net(ids_BT);
    CHECK(farthest(logits_BTV, which.at("logits")) < 1e-5);
    CHECK(farthest_gradient(*net, which.at("state"), logits_BTV, which.at("gradients")) < 1e-5);
    check_cache(*net, ids_BT);
    check_continued(*net, ids_BT, which.at("continued"));
  }
}

TEST_CASE("published language models have transformers' names and first weights") {
  torch::manual_seed(1);
  {
    Gpt2 const net;
    check_real(*net, "gpt2");
    auto const* const layer = net->transformer->h->ptr<frugal::models::Gpt2LayerImpl>(3).get();
    CHECK(layer->mlp->c_proj->weight.std().item<double>() ==
          doctest::Approx(0.02 / std::sqrt(24.0)).epsilon(0.01));
    CHECK(layer->attn->c_attn->weight.std().item<double>() == doctest::Approx(0.02).epsilon(0.01));
  }
  Llama const net(LlamaOptions{.vocabulary = 49152,
                               .width = 576,
                               .layers = 30,
                               .heads = 9,
                               .key_value_heads = 3,
                               .intermediate = 1536,
                               .tied = true});
  check_real(*net, "SmolLM2-135M");
}

TEST_CASE("tied weights are one tensor, loaded from a file with either name or both") {
  TemporaryFolder const folder;
  torch::manual_seed(3);
  Gpt2 net(tiny_gpt2);
  CHECK(net->lm_head->weight.is_same(net->transformer->wte->weight));
  at::Tensor const ids_BT = at::arange(1, 9).view({2, 4});
  net->eval();
  at::Tensor const expected = net(ids_BT);
  auto const check_loaded = [&](char const* part) {
    frugal::save_weights(net, folder / part, {.parts = {part}});
    Gpt2 other(tiny_gpt2);
    other->eval();
    frugal::load_weights(other, folder / part);
    CHECK(distance(other(ids_BT), expected) == 0);
    CHECK(other->lm_head->weight.is_same(other->transformer->wte->weight));
  };
  check_loaded("*");
  check_loaded("transformer.*");
  // The files of the hub have no prefix, and masks.
  frugal::save_weights(*net->transformer, folder / "hub");
  Gpt2 other(tiny_gpt2);
  other->eval();
  frugal::load_weights(*other->transformer, folder / "hub");
  CHECK(distance(other(ids_BT), expected) == 0);
  other->to(at::kDouble);
  CHECK(other->lm_head->weight.is_same(other->transformer->wte->weight));
  CHECK(distance(other(ids_BT), expected) < 1e-5);
}

TEST_CASE("language models compute in BF16, and refuse what they would compute wrongly") {
  at::Tensor const ids_BT = at::arange(1, 13).view({2, 6});
  LlamaOptions const options{.vocabulary = 41,
                             .width = 24,
                             .layers = 2,
                             .heads = 4,
                             .key_value_heads = 2,
                             .intermediate = 40,
                             .positions = 8,
                             .attention_dropout = 0.5};
  Llama llama(options);
  Gpt2Options short_gpt2 = tiny_gpt2;
  short_gpt2.positions = 8;
  Gpt2 gpt2(short_gpt2);
  CHECK_FALSE(at::equal(llama(ids_BT), llama(ids_BT)));
  CHECK_FALSE(at::equal(gpt2(ids_BT), gpt2(ids_BT)));
  auto const check = [&](CausalModel& net) {
    net.eval();
    CHECK(at::equal(net.forward(ids_BT), net.forward(ids_BT)));
    CHECK_THROWS_AS(net.forward(at::ones({1, 9}, at::kLong)), frugal::ShapeError);
    CHECK_THROWS_AS(net.forward(at::ones({1, 0}, at::kLong)), frugal::ShapeError);
    CHECK_THROWS_AS(net.forward(at::ones({1, 3})), frugal::DtypeError);
    CHECK_THROWS_AS(net.forward(ids_BT + 30), frugal::DataError);
    CHECK(net.forward(ids_BT.to(at::kInt)).sizes() == at::IntArrayRef({2, 6, 41}));
    KeyValueCache cache;
    net.decode(ids_BT, cache);
    CHECK_THROWS_AS(net.decode(ids_BT, cache), frugal::ShapeError);  // 12 of 8 positions
    CHECK_THROWS_AS(net.decode(ids_BT.narrow(0, 0, 1).narrow(1, 0, 1), cache), frugal::ShapeError);
    CHECK_THROWS_AS(net.decode(ids_BT.narrow(1, 0, 1) + 40, cache), frugal::DataError);
    CHECK(cache.tokens() == 6);
    CHECK_FALSE(net.decode(ids_BT.narrow(1, 0, 1), cache).requires_grad());
    at::Tensor const single = net.forward(ids_BT);
    net.to(at::kBFloat16);
    CHECK((net.forward(ids_BT).scalar_type() == at::kBFloat16));
    CHECK(distance(net.forward(ids_BT), single) < 0.05);
    KeyValueCache half;
    net.decode(ids_BT.narrow(1, 0, 4), half);
    CHECK(distance(net.next(ids_BT.narrow(1, 4, 2), half), single.select(1, 5)) < 0.05);
  };
  check(*llama);
  check(*gpt2);
  KeyValueCache cache;
  llama->decode(ids_BT, cache);
  CHECK_THROWS_AS(gpt2->decode(ids_BT.narrow(1, 0, 1), cache), frugal::SettingsError);
  CHECK_THROWS_AS(Llama(LlamaOptions{.heads = 6, .key_value_heads = 4}), frugal::SettingsError);
  CHECK_THROWS_AS(Llama(LlamaOptions{.width = 18, .heads = 6}), frugal::SettingsError);
  CHECK_THROWS_AS(Gpt2(Gpt2Options{.heads = 7}), frugal::SettingsError);
}

TEST_CASE("a config.json gives the options of language models, or says what is not computed") {
  std::string const llama =
      R"({"vocab_size": 5, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2,
          "intermediate_size": 9, "head_dim": null)";
  auto const read = [&](std::string const& more) {
    return LlamaOptions::from(ModelConfig::parse(llama + more + "}"));
  };
  CHECK(read("").key_heads() == 2);
  CHECK(read("").head_width() == 4);
  CHECK(read(R"(, "rope_theta": 5e5)").theta == 5e5);
  CHECK(read(R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 7})").theta == 7);
  auto const stretched = read(
      R"(, "rope_theta": 5e5, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
         "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"})");
  REQUIRE(stretched.scaling);
  CHECK(stretched.scaling->factor == 32);
  CHECK(stretched.scaling->positions == 8192);
  CHECK_THROWS_AS(read(R"(, "rope_scaling": {"type": "linear", "factor": 2})"),
                  frugal::SettingsError);
  CHECK_THROWS_AS(read(R"(, "model_type": "mistral")"), frugal::SettingsError);
  CHECK_THROWS_AS(read(R"(, "hidden_act": "gelu")"), frugal::SettingsError);

  std::string const gpt2 =
      R"({"vocab_size": 5, "n_positions": 9, "n_embd": 8, "n_layer": 3, "n_head": 2, "n_inner": null)";
  auto const options = Gpt2Options::from(ModelConfig::parse(gpt2 + "}"));
  CHECK(options.positions == 9);
  CHECK_FALSE(options.intermediate);
  CHECK(options.tied);
  for (char const* const other :
       {R"("activation_function": "relu")", R"("scale_attn_weights": false)",
        R"("scale_attn_by_inverse_layer_idx": true)"}) {
    CHECK_THROWS_AS(Gpt2Options::from(ModelConfig::parse(gpt2 + ", " + other + "}")),
                    frugal::SettingsError);
  }
}

}  // namespace frugal_test::models_causal_model
