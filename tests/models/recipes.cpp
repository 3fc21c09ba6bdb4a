// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/model/freeze.hpp>
#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/models.hpp>
#include <frugal/policy/recompute.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "models.hpp"

namespace frugal_test::models_recipes {

using namespace frugal;          // NOLINT(google-build-using-namespace): the recipe below
using namespace frugal::models;  // NOLINT(google-build-using-namespace)

/// Texts that count up, and the token that follows each.
TensorDataset counting() {
  at::Tensor const ids_BT = (at::arange(24).unsqueeze(1) + at::arange(9)).remainder(20);
  return {ids_BT.narrow(1, 0, 8), ids_BT.narrow(1, 1, 8), {.batch = 8}};
}

constexpr LlamaOptions sizes{.vocabulary = 20,
                             .width = 16,
                             .layers = 2,
                             .heads = 4,
                             .key_value_heads = 2,
                             .intermediate = 24,
                             .positions = 16,
                             .tied = true};

Llama made() {
  torch::manual_seed(1);
  return Llama(sizes);
}

template <class... Policies>
Report train(Llama& net, std::uint64_t epochs, Policies const&... policies) {
  auto data = counting();
  Trainer trainer{net, NextToken{}, Settings{.epochs = epochs}, Optimize<AdamW>{.lr = 1e-2},
                  policies...};
  return trainer.fit(data);
}

std::map<std::string, at::Tensor> copied(torch::nn::Module const& module) {
  std::map<std::string, at::Tensor> all;
  for (auto const& [name, tensor] : frugal_test::models::state_of(module))
    all[name] = tensor.clone();
  return all;
}

TEST_CASE("a Llama learns to count, tied weights and all, and continues what it is given") {
  Llama net = made();
  train(net, 30);
  CHECK(net->head->weight.is_same(net->model->embeddings->weight));
  at::Tensor const text = generate(net, at::arange(3, 6), {.max_new_tokens = 6});
  CHECK(at::equal(text, at::arange(3, 12)));
}

TEST_CASE("NextToken is the cross entropy of each token's logits, without ignored labels") {
  Llama net = made();
  at::Tensor const ids_BT = at::arange(8).view({2, 4}), next_BT = ids_BT + 1;
  next_BT[1].narrow(0, 1, 3).fill_(-100);
  Loss const loss = NextToken{}(net, Batch{ids_BT, next_BT});
  at::Tensor const expected = at::cross_entropy_loss(net(ids_BT).flatten(0, 1), next_BT.flatten());
  CHECK(loss.value.item<double>() == doctest::Approx(expected.item<double>()).epsilon(1e-6));
  CHECK(loss.weight == 5);
  CHECK((loss.output.sizes() == at::IntArrayRef{2, 20, 4}));
  torch::nn::Linear classifier(4, 3);
  CHECK_THROWS_AS(NextToken{}(classifier, Batch{at::ones({2, 4}), at::zeros({2}, at::kLong)}),
                  ShapeError);
}

TEST_CASE("Recompute over a model's layers leaves the bits of its training") {
  Llama plain = made(), halves = made(), single = made();
  train(plain, 2);
  train(halves, 2, Recompute<Segments<2>>{});
  train(single, 2, Recompute<Modules<OfType<LlamaLayer>>>{});
  for (auto const& [name, tensor] : copied(*plain)) {
    CAPTURE(name);
    CHECK(at::equal(copied(*halves)[name], tensor));
    CHECK(at::equal(copied(*single)[name], tensor));
  }
}

TEST_CASE("Lora trains adapters on the queries alone, and generate computes with them") {
  Llama net = made();
  auto const before = copied(*net);
  at::Tensor const prompt = at::arange(3, 6);
  train(net, 20, Lora<Rank<4>, Alpha<16>, On<"q_proj", "v_proj", "down_proj">>{});
  std::size_t adapters = 0;
  for (auto const& [name, tensor] : copied(*net)) {
    CAPTURE(name);
    if (before.contains(name)) {
      CHECK(at::equal(tensor, before.at(name)));
    } else {
      ++adapters;
    }
  }
  CHECK(adapters == 12);
  at::Tensor const ids_BT = prompt.unsqueeze(0);
  net->eval();
  at::Tensor const adapted = net(ids_BT).detach();
  Llama base = made();
  base->eval();
  CHECK((adapted - base(ids_BT)).abs().max().item<double>() > 1e-2);
  KeyValueCache cache;
  CHECK((net->decode(ids_BT, cache) - adapted).abs().max().item<double>() < 1e-5);
  merge(net);
  CHECK((net(ids_BT) - adapted).abs().max().item<double>() < 1e-5);
}

TEST_CASE("Freeze leaves all of a BERT but its head") {
  torch::manual_seed(2);
  BertForSequenceClassification bert(
      BertOptions{.vocabulary = 20, .width = 8, .layers = 1, .heads = 2, .intermediate = 8}, 3);
  auto const before = copied(*bert);
  TensorDataset texts(torch::randint(0, 20, {16, 5}), torch::randint(0, 3, {16}), {.batch = 8});
  Trainer trainer{bert, CrossEntropy{}, Settings{.epochs = 1}, Optimize<AdamW>{},
                  Freeze<Where<"bert.*">>{}};
  trainer.fit(texts);
  for (auto const& [name, tensor] : copied(*bert)) {
    CAPTURE(name);
    CHECK(at::equal(tensor, before.at(name)) == name.starts_with("bert."));
  }
}

}  // namespace frugal_test::models_recipes
