// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/forward_batch.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/error.hpp>
#include <frugal/model/model_config.hpp>
#include <frugal/models/bert.hpp>

#include <map>
#include <string>

#include "models.hpp"

namespace frugal_test::models_bert {

using namespace frugal_test::models;
using namespace frugal_test::support;
using frugal::ModelConfig;
using frugal::models::Bert;
using frugal::models::BertForSequenceClassification;
using frugal::models::BertOptions;
using frugal::models::sentence_embedding;

constexpr BertOptions tiny{
    .vocabulary = 41, .width = 24, .layers = 2, .heads = 3, .intermediate = 40, .positions = 16};

TEST_CASE("BERT has the outputs and gradients of transformers' BertModel, with padding") {
  Json const file = reference("models.json");
  Json const& of = file.at("bert");
  Bert bert(tiny);
  fill(*bert, of.at("state"), 61);
  bert->eval();
  at::Tensor const ids_BT = integers_in(of.at("ids"));
  at::Tensor const mask_BT = integers_in(of.at("mask"));
  at::Tensor const hidden_BTW = bert(ids_BT, mask_BT, integers_in(of.at("types")));
  CHECK(farthest(hidden_BTW * mask_BT.unsqueeze(2), of.at("hidden")) < 1e-5);
  at::Tensor const pooled_BW = bert->pooled(hidden_BTW);
  CHECK(farthest(pooled_BW, of.at("pooled")) < 1e-5);
  CHECK(farthest(sentence_embedding(hidden_BTW, mask_BT), of.at("embedding")) < 1e-5);
  CHECK(farthest_gradient(*bert, of.at("state"), pooled_BW, of.at("gradients")) < 1e-5);
}

TEST_CASE("padding and other texts of a batch have no effect on a text") {
  Json const file = reference("models.json");
  Json const& of = file.at("bert");
  Bert bert(tiny);
  fill(*bert, of.at("state"), 61);
  bert->eval();
  at::NoGradGuard const no_gradients;
  at::Tensor const ids_BT = integers_in(of.at("ids"));
  at::Tensor const mask_BT = integers_in(of.at("mask"));
  auto const embedding = [&](at::Tensor const& ids, at::Tensor const& mask) {
    return sentence_embedding(bert(ids, mask), mask);
  };
  at::Tensor const found_BW = embedding(ids_BT, mask_BT);
  CHECK(distance(embedding(ids_BT + (1 - mask_BT) * 3, mask_BT), found_BW) < 1e-6);
  CHECK(distance(embedding(ids_BT.roll({1}, {0}), mask_BT), found_BW) > 1e-2);
  at::Tensor const one_BT = ids_BT.narrow(0, 1, 1).narrow(1, 0, 4);
  CHECK(distance(embedding(one_BT, at::ones({1, 4}, at::kBool)), found_BW.narrow(0, 1, 1)) < 1e-6);
  CHECK(distance(bert(one_BT), bert(one_BT, at::ones_like(one_BT))) < 1e-6);
}

TEST_CASE("a batch brings its mask and segments") {
  Json const file = reference("models.json");
  Json const& of = file.at("bert");
  BertForSequenceClassification net(tiny, 3);
  net->eval();
  at::NoGradGuard const no_gradients;
  at::Tensor const ids_BT = integers_in(of.at("ids")), mask_BT = integers_in(of.at("mask")),
                   types_BT = integers_in(of.at("types"));
  frugal::PaddedBatch padded{.data = ids_BT, .mask = mask_BT.to(at::kBool)};
  CHECK(at::equal(frugal::forward_batch(net, padded), net(ids_BT, mask_BT)));
  padded.fields.emplace("token_type_ids", types_BT);
  CHECK(at::equal(frugal::forward_batch(net, padded), net(ids_BT, mask_BT, types_BT)));
  std::map<std::string, at::Tensor> const map{{"input_ids", ids_BT}, {"attention_mask", mask_BT}};
  CHECK(at::equal(frugal::forward_batch(net->bert, map), net->bert(ids_BT, mask_BT)));
  frugal::Batch const plain{ids_BT, {}};
  CHECK(at::equal(frugal::forward_batch(net, plain), net(ids_BT)));
  CHECK(distance(net(ids_BT), net(ids_BT, mask_BT)) > 1e-5);
}

TEST_CASE(
    "the classifier has the logits of BertForSequenceClassification, and BERT its real names") {
  Json const file = reference("models.json");
  Json const& of = file.at("bert");
  BertForSequenceClassification net(tiny, 3);
  fill(*net, of.at("classifier").at("state"), 63);
  net->eval();
  at::Tensor const logits_BC = net(integers_in(of.at("ids")), integers_in(of.at("mask")));
  CHECK(farthest(logits_BC, of.at("classifier").at("logits")) < 1e-5);

  torch::manual_seed(1);
  Bert const real;
  check_real(*real, "bert");
  at::Tensor const& words = real->embeddings->words->weight;
  CHECK(words.std().item<double>() == doctest::Approx(0.02).epsilon(0.01));
  CHECK(words[0].abs().max().item<double>() == 0);
}

TEST_CASE("BERT drops out in training alone, and refuses what it would compute wrongly") {
  Bert bert(tiny);
  at::Tensor const ids_BT = at::arange(1, 7).view({1, 6});
  CHECK_FALSE(at::equal(bert(ids_BT), bert(ids_BT)));
  bert->eval();
  CHECK(at::equal(bert(ids_BT), bert(ids_BT)));
  CHECK_THROWS_AS(bert(at::ones({1, 17}, at::kLong)), frugal::ShapeError);
  CHECK_THROWS_AS(bert(at::ones({1, 0}, at::kLong)), frugal::ShapeError);
  CHECK_THROWS_AS(bert(at::ones({6}, at::kLong)), frugal::ShapeError);
  CHECK_THROWS_AS(bert(ids_BT, at::ones({1, 5}, at::kLong)), frugal::ShapeError);
  CHECK_THROWS_AS(bert(at::ones({1, 6})), frugal::DtypeError);
  CHECK_THROWS_AS(bert(ids_BT, at::zeros({1, 6})), frugal::DtypeError);
  CHECK_THROWS_WITH_AS(bert(ids_BT + 35), doctest::Contains("41 has no row in a table of 41"),
                       frugal::DataError);
  CHECK_THROWS_AS(bert(ids_BT - 3), frugal::DataError);
  CHECK_THROWS_AS(bert(ids_BT, at::Tensor(), ids_BT), frugal::DataError);
  CHECK_THROWS_AS(Bert(BertOptions{.heads = 7}), frugal::SettingsError);
  CHECK_THROWS_AS(BertForSequenceClassification(tiny, 0), frugal::SettingsError);
  BertOptions options = tiny;
  options.pooler = false;
  Bert bare(options);
  CHECK_THROWS_AS(bare->pooled(bare(ids_BT)), frugal::ModuleError);
}

TEST_CASE("a config.json gives BERT's options, or says what is not computed") {
  std::string const sizes =
      R"("vocab_size": 5, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2,
         "intermediate_size": 9, "classifier_dropout": null)";
  BertOptions const options =
      BertOptions::from(ModelConfig::parse("{" + sizes + R"(, "layer_norm_eps": 1e-5})"));
  CHECK(options.layers == 3);
  CHECK(options.eps == 1e-5);
  CHECK(options.positions == 512);
  CHECK_FALSE(options.classifier_dropout);
  CHECK(options.padding == 0);
  // As in transformers, all rows are trained then.
  BertOptions const all =
      BertOptions::from(ModelConfig::parse("{" + sizes + R"(, "pad_token_id": null})"));
  CHECK_FALSE(all.padding);
  Bert bert(all);
  CHECK(bert->embeddings->words->weight[0].abs().max().item<double>() > 0);
  bert(at::zeros({1, 2}, at::kLong)).square().sum().backward();
  CHECK(bert->embeddings->words->weight.grad()[0].abs().max().item<double>() > 0);
  CHECK_THROWS_AS(
      Bert(BertOptions::from(ModelConfig::parse("{" + sizes + R"(, "pad_token_id": 5})"))),
      frugal::SettingsError);
  for (char const* const other :
       {R"("model_type": "roberta")", R"("hidden_act": "relu")",
        R"("position_embedding_type": "relative_key")", R"("is_decoder": true)"}) {
    CHECK_THROWS_AS(BertOptions::from(ModelConfig::parse("{" + sizes + ", " + other + "}")),
                    frugal::SettingsError);
  }
}

}  // namespace frugal_test::models_bert
