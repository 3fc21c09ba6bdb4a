// SPDX-License-Identifier: Apache-2.0
// Batches with fields, through a whole run.
#include <doctest/doctest.h>

#include <frugal/data/dataset.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/device_prefetch.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::loop_fields {

using namespace frugal_test::support;
using frugal::FieldsBatch;
using frugal::FieldsDataset;

FieldsBatch data() {
  frugal::Batch const plain = samples(24);
  return {
      .data = plain.data, .target = plain.target, .fields = {{"teacher", table({24, 3}, 93, 0)}}};
}

/// Cross entropy, and the distance to what the teacher says.
struct Distill {
  template <class Module>
  at::Tensor operator()(Module& module, FieldsBatch const& batch) const {
    at::Tensor const logits = frugal::forward_batch(module, batch);
    return at::cross_entropy_loss(logits, batch.target) +
           at::mse_loss(logits, batch.field("teacher"));
  }
};

template <class Policy, class Source>
std::map<std::string, at::Tensor> trained(Policy const& policy, Source source) {
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer{module, Distill{}, frugal::Settings{.epochs = 2},
                  frugal::Optimize<frugal::SGD>{.lr = 0.1}, policy}
      .fit(source);
  return tensors_of(*module);
}

TEST_CASE("fields are split with their batch, and prefetched with it") {
  frugal::LoaderOptions const loading{.batch = 12};
  auto const whole = trained(frugal::Accumulate<1>{}, FieldsDataset(data(), loading));
  auto const split =
      trained(frugal::Accumulate<frugal::Auto>{.samples = 4}, FieldsDataset(data(), loading));
  for (auto const& [name, tensor] : whole) CHECK(distance(tensor, split.at(name)) <= 1e-6);
  auto const ahead = trained(frugal::DevicePrefetch<>{}, FieldsDataset(data(), loading));
  CHECK(same_bits(whole, ahead));
}

TEST_CASE("cross entropy, metrics, evaluate and predict read a batch with fields as any other") {
  frugal::LoaderOptions const loading{.batch = 8};
  auto const train = [&](auto source) {
    auto const module = std::make_shared<Mlp>();
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                            frugal::Optimize<frugal::SGD>{.lr = 0.5},
                            frugal::Validate<frugal::Accuracy>{}};
    auto const report = trainer.fit(source, source);
    std::vector<at::Tensor> outputs;
    trainer.predict(
        source, [&](at::Tensor const& output, auto const&) { outputs.push_back(output.clone()); });
    return std::tuple{report.last()["accuracy"], trainer.evaluate(source)["loss"],
                      at::cat(outputs)};
  };
  auto const [accuracy, loss, outputs] = train(FieldsDataset(data(), loading));
  auto const [plain_accuracy, plain_loss, plain_outputs] =
      train(frugal::TensorDataset(data().data, data().target, loading));
  CHECK(accuracy == plain_accuracy);
  CHECK(loss == plain_loss);
  CHECK(outputs.equal(plain_outputs));
}

TEST_CASE("a field that the batches lack is refused, with those that they have") {
  FieldsBatch without = data();
  without.fields = {{"mask", at::ones({24})}};
  try {
    trained(frugal::Accumulate<1>{}, FieldsDataset(without, {.batch = 8}));
    FAIL("not refused");
  } catch (frugal::Error const& error) {
    CHECK(std::string(error.what()).find("no field 'teacher'") != std::string::npos);
    CHECK(std::string(error.what()).find("'mask'") != std::string::npos);
  }
}

/// Tags a text: adds up the embeddings under the attention mask.
struct Reader : torch::nn::Module {
  torch::nn::Embedding words{register_module("words", torch::nn::Embedding(20, 3))};
  at::Tensor forward_batch(frugal::PaddedBatch const& batch) {
    at::Tensor const mask = batch.field("attention_mask").unsqueeze(-1);
    return words(batch.data).mul(mask).sum(1) / mask.sum(1);
  }
};

TEST_CASE(
    "padded texts with attention masks train under CrossEntropy without a type of their own") {
  std::vector<std::map<std::string, at::Tensor>> texts;
  for (std::int64_t i = 0; i < 12; ++i) {
    texts.push_back({{"input_ids", at::arange(1 + i % 5) + i % 3},
                     {"labels", at::scalar_tensor(i % 3, at::kLong)},
                     {"attention_mask", at::ones({1 + i % 5})}});
  }
  auto const losses = [&](std::int64_t multiple) {
    torch::manual_seed(1);
    frugal::Trainer trainer{std::make_shared<Reader>(), frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 2, .seed = 4},
                            frugal::Optimize<frugal::SGD>{.lr = 0.5},
                            frugal::Validate<frugal::Accuracy>{}};
    auto source = frugal::from_samples(
        texts, {.batch = 4}, frugal::Pad{.multiple = multiple, .fields = {{"attention_mask", 0}}});
    auto const report = trainer.fit(source, source);
    return std::pair{report.train_loss, report.last()["loss"]};
  };
  // Padding is under the mask, so more of it changes nothing.
  auto const [loss, valid] = losses(1);
  auto const [padded_loss, padded_valid] = losses(16);
  CHECK(loss == doctest::Approx(padded_loss).epsilon(1e-6));
  CHECK(valid == doctest::Approx(padded_valid).epsilon(1e-6));
  CHECK(valid < loss);
}

TEST_CASE("a report has the peak of the process's memory") {
  auto const module = std::make_shared<Mlp>();
  auto const report = frugal::Trainer{module, frugal::CrossEntropy{}, frugal::Settings{},
                                      frugal::Optimize<frugal::SGD>{}}
                          .fit(FieldsDataset(data(), {.batch = 8}));
  REQUIRE(report.memory.process);
  CHECK(*report.memory.process > 1 << 20);
  CHECK_FALSE(report.memory.device);
}

}  // namespace frugal_test::loop_fields
