// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/libtorch/parameters.hpp>

#include "../../../examples/finetune/encoder.hpp"
#include "../../../examples/finetune/llama.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "support/reference.hpp"

namespace frugal_test::examples_finetune_models {

using namespace frugal_test::support;

at::Tensor integers_in(Json const& rows) {
  std::vector<at::Tensor> all;
  for (Json const& row : rows) all.push_back(at::tensor(row.get<std::vector<std::int64_t>>()));
  return at::stack(all);
}

/// Fills a module as tests/reference/transformers.json says: its names and shapes are the file's.
void fill(torch::nn::Module& module, Json const& parameters, std::uint32_t stream) {
  at::NoGradGuard const no_gradients;
  auto named = module.named_parameters();
  REQUIRE(named.size() == parameters.size());
  std::uint32_t number = 0;
  for (Json const& each : parameters) {
    std::string const name = each.at("name");
    CAPTURE(name);
    at::Tensor* const found = named.find(name);
    REQUIRE(found != nullptr);
    std::vector<std::int64_t> const shape = shape_in(each.at("shape"));
    REQUIRE(found->sizes() == at::IntArrayRef(shape));
    bool const norm = shape.size() == 1 && name.ends_with("weight");
    at::Tensor const value = table(shape, stream, number++);
    found->copy_(norm ? value * 0.25 + 1 : value * 0.5);
  }
}

double farthest(at::Tensor const& found, Json const& expected) {
  return distance(found, tensor_in(expected, found.sizes().vec(), at::kDouble));
}

TEST_CASE("the encoder's embeddings are those of transformers' BertModel, pooled and normalized") {
  Json const file = reference("transformers.json");
  Json const& of = file.at("encoder");
  Json const& sizes = of.at("sizes");
  finetune::Encoder encoder(finetune::EncoderSizes{.vocabulary = sizes.at("vocabulary"),
                                                   .width = sizes.at("width"),
                                                   .layers = sizes.at("layers"),
                                                   .heads = sizes.at("heads"),
                                                   .intermediate = sizes.at("intermediate"),
                                                   .positions = sizes.at("positions"),
                                                   .types = sizes.at("types")});
  fill(*encoder, of.at("parameters"), 61);
  encoder->eval();
  at::NoGradGuard const no_gradients;
  at::Tensor const ids_BT = integers_in(of.at("ids"));
  at::Tensor const mask_BT = integers_in(of.at("mask"));
  at::Tensor const found_BW = encoder->forward(ids_BT, mask_BT);
  CHECK(farthest(found_BW, of.at("embedding")) < 1e-5);
  // What stands in the padding has no effect, and other words have one.
  at::Tensor const padded_BT = ids_BT + (1 - mask_BT) * 3;
  CHECK(distance(encoder->forward(padded_BT, mask_BT), found_BW) < 1e-6);
  CHECK(distance(encoder->forward(ids_BT.roll({1}, {0}), mask_BT), found_BW) > 1e-2);
  // Texts of other lengths in the batch have none.
  CHECK(distance(encoder->forward(ids_BT.narrow(0, 1, 1).narrow(1, 0, 4), at::ones({1, 4})),
                 found_BW.narrow(0, 1, 1)) < 1e-6);
}

TEST_CASE("the encoder drops out in training alone") {
  finetune::Encoder encoder(finetune::EncoderSizes{
      .vocabulary = 11, .width = 8, .layers = 1, .heads = 2, .intermediate = 8, .positions = 8});
  at::Tensor const ids_BT = at::arange(1, 7).view({1, 6});
  at::Tensor const mask_BT = at::ones({1, 6});
  CHECK_FALSE(at::equal(encoder->forward(ids_BT, mask_BT), encoder->forward(ids_BT, mask_BT)));
  encoder->eval();
  CHECK(at::equal(encoder->forward(ids_BT, mask_BT), encoder->forward(ids_BT, mask_BT)));
}

TEST_CASE("the logits of the GPT are those of transformers' LlamaForCausalLM") {
  Json const file = reference("transformers.json");
  Json const& sizes = file.at("sizes");
  at::Tensor const ids_BT = integers_in(file.at("ids"));
  for (Json const& which : file.at("llamas")) {
    std::string const name = which.at("name");
    CAPTURE(name);
    finetune::Llama llama(finetune::LlamaSizes{.vocabulary = sizes.at("vocabulary"),
                                               .width = sizes.at("width"),
                                               .layers = sizes.at("layers"),
                                               .heads = which.at("heads"),
                                               .key_value_heads = which.at("key_value_heads"),
                                               .intermediate = sizes.at("intermediate"),
                                               .head = which.at("head").get<std::int64_t>(),
                                               .eps = sizes.at("eps"),
                                               .theta = sizes.at("theta"),
                                               .tied = which.at("tied")});
    fill(*llama, which.at("parameters"), 62);
    at::NoGradGuard const no_gradients;
    at::Tensor const logits_BTV = llama->forward(ids_BT);
    CHECK(farthest(logits_BTV, which.at("logits")) < 1e-5);
    // A token has no effect on those before it, and one on those after it.
    at::Tensor other_BT = ids_BT.clone();
    other_BT.select(1, 5).fill_(1);
    at::Tensor const change_T =
        (llama->forward(other_BT) - logits_BTV).abs().amax(at::IntArrayRef{0, 2});
    CHECK(change_T.narrow(0, 0, 5).max().item<double>() < 1e-6);
    CHECK(change_T[6].item<double>() > 1e-3);
  }
}

}  // namespace frugal_test::examples_finetune_models
