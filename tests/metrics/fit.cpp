// SPDX-License-Identifier: Apache-2.0
// Metrics of metrics.hpp in fits and evaluations.
// Shapes: B samples, C classes, T positions.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/metrics.hpp>

#include "cases.hpp"

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::metrics_fit {

using namespace frugal_test::metrics;

TEST_CASE("IoU, Dice and CalibrationError of a fit are those of the whole set") {
  at::manual_seed(1);
  at::Tensor const images = at::randn({23, 2, 4, 3});
  at::Tensor const labels = images.argmax(1);
  labels[3].fill_(255);
  TensorDataset train(images, labels.masked_fill(labels.eq(255), -100), {.batch = 6});
  TensorDataset valid(images, labels, {.batch = 5});
  torch::nn::Conv2d module(2, 3, 1);
  // Without batches whose labels are 255 in the loss: that is the metrics' ignored label.
  auto const objective = [](torch::nn::Conv2d& conv, Batch const& batch) {
    at::Tensor const logits = conv->forward(batch.data);
    at::Tensor const target = batch.target.masked_fill(batch.target.eq(255), -100);
    return Loss{.value = at::cross_entropy_loss(logits, target), .output = logits};
  };
  Trainer trainer{module, objective, Settings{.epochs = 3}, Optimize<SGD>{.lr = 0.5},
                  Validate<Every<1, Epoch>, IgnoreIndex<255, IoU>, IgnoreIndex<255, Dice>,
                           IgnoreIndex<255, CalibrationError<>>>{}};
  Report const report = trainer.fit(train, valid);
  Metrics const found = trainer.evaluate(valid);
  torch::NoGradGuard const no_gradients;
  Set const all{module->forward(images), labels};
  Metrics const iou = over<IgnoreIndex<255, IoU>>(all).result();
  CHECK(found["iou"] == doctest::Approx(iou["iou"]).epsilon(1e-12));
  CHECK(found.table("iou").sub(iou.table("iou")).abs().nansum().item<double>() < 1e-12);
  CHECK(found["dice"] ==
        doctest::Approx(over<IgnoreIndex<255, Dice>>(all).result()["dice"]).epsilon(1e-12));
  CHECK(found["ece"] ==
        doctest::Approx(over<IgnoreIndex<255, CalibrationError<>>>(all).result()["ece"])
            .epsilon(1e-6));
  CHECK(report.last()["iou"] == doctest::Approx(found["iou"]).epsilon(1e-12));
  CHECK(report.last()["mce"] == doctest::Approx(found["mce"]).epsilon(1e-6));
  CHECK(found["iou"] > 0.3);
}

template <class Metric, class... Policies>
auto top_of_five(frugal::detail::fresh_metric<Metric> const& metric, Policies const&... policies) {
  at::manual_seed(4);
  return Trainer{torch::nn::Linear(4, 5),
                 CrossEntropy{},
                 Settings{.epochs = 2},
                 Optimize<SGD>{.lr = 0.1},
                 Validate<Accuracy, Metric>{.metrics = {{}, metric}},
                 TrainMetrics<Every<3>, Metric>{.metrics = {metric}},
                 policies...};
}

TEST_CASE("TopK<>{.k = 3} is TopK<3> to the bit and by name, and may change between fits") {
  at::manual_seed(4);
  TensorDataset data(at::randn({23, 4}), at::randint(5, {23}, at::kLong), {.batch = 5});
  auto constant = top_of_five<TopK<3>>({});
  auto member = top_of_five<TopK<>>({.k = 3});
  Report const expected = constant.fit(data, data), found = member.fit(data, data);
  CHECK(expected.last().has("top3"));
  CHECK((found.last() == expected.last()));
  CHECK(expected.train_metrics.has("train_top3"));
  CHECK((found.train_metrics == expected.train_metrics));
  CHECK((member.evaluate(data) == constant.evaluate(data)));
  std::get<1>(member.validate().metrics).k = 1;
  Metrics const first = member.evaluate(data);
  CHECK(first["top1"] == first["accuracy"]);
  CHECK_FALSE(first.has("top3"));
}

TEST_CASE("a k that no class has, and a name that nothing has, are errors before the first step") {
  TensorDataset data(at::randn({10, 4}), at::randint(5, {10}, at::kLong), {.batch = 5});
  using Stop = EarlyStop<Watch<"top3", Better::higher>>;
  auto trainer = top_of_five<TopK<>>({.k = 3}, Stop{});
  CHECK(trainer.fit(data, data).last().has("top3"));
  std::get<1>(trainer.validate().metrics).k = 2;
  CHECK_THROWS_WITH_AS(trainer.fit(data, data), doctest::Contains("top3"), MetricError);
  for (int const wrong : {-1, 0, 6}) {
    auto unwatched = top_of_five<TopK<>>({.k = wrong});
    CHECK_THROWS_WITH_AS(unwatched.fit(data, data),
                         doctest::Contains(("TopK::k is " + std::to_string(wrong)).c_str()),
                         MetricError);
  }
  Trainer twice{torch::nn::Linear(4, 5), CrossEntropy{}, Settings{.epochs = 1}, Optimize<SGD>{},
                Validate<TopK<3>, TopK<>>{.metrics = {{}, {.k = 3}}}};
  CHECK_THROWS_WITH_AS(twice.fit(data, data), doctest::Contains("'top3'"), MetricError);
}

/// Has a tensor from the beginning, and changes it in place.
struct Batches {
  static constexpr std::string_view name = "batches";
  at::Tensor seen = at::zeros({}, at::kDouble);
  template <class B>
  void add(Loss const&, B const&) {
    seen += 1;
  }
  double result() const { return seen.item<double>(); }
};

TEST_CASE("a metric without members to set is made for each measurement, and shares no tensor") {
  TensorDataset data(at::randn({20, 4}), at::randint(5, {20}, at::kLong), {.batch = 5});
  Trainer trainer{torch::nn::Linear(4, 5), CrossEntropy{}, Settings{.epochs = 2}, Optimize<SGD>{},
                  Validate<TopK<>, Batches>{.metrics = {{.k = 2}, {}}}};
  CHECK(trainer.fit(data, data).last()["batches"] == 4);
  CHECK(trainer.evaluate(data)["batches"] == 4);
}

/// Tags each word: ids [B, T] to logits [B, 3, T].
struct Tagger : torch::nn::Module {
  at::Tensor forward(at::Tensor const& ids) { return layer(embed(ids)).transpose(1, 2); }
  torch::nn::Embedding embed{register_module("embed", torch::nn::Embedding(8, 8))};
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(8, 3))};
};

TEST_CASE("SpanF1 of padded sentences finds the entities that a tagger learns") {
  at::manual_seed(2);
  // Word 1 begins an entity, word 2 goes on with it, all others are outside.
  std::vector<std::pair<at::Tensor, at::Tensor>> sentences;
  for (std::int64_t i = 0; i < 40; ++i) {
    at::Tensor const words = at::randint(8, {3 + i % 5}, at::kLong);
    sentences.emplace_back(words, at::where(words.le(2), words, 0));
  }
  auto train = from_samples(sentences, {.batch = 8}, Pad{});
  auto valid = from_samples(sentences, {.batch = 7, .shuffle = false}, Pad{});
  using Names = SpanF1<"O", "B-PER", "I-PER">;
  Trainer trainer{Tagger{},
                  CrossEntropy{},
                  Settings{.epochs = 30},
                  Optimize<AdamW>{.lr = 0.1},
                  Validate<Every<1, Epoch>, Names, Accuracy>{},
                  TrainMetrics<Names>{}};
  Report const report = trainer.fit(train, valid);
  CHECK(report.last()["accuracy"] == 1);
  CHECK(report.last()["span_f1"] == 1);
  CHECK(report.last()["span_recall"] == 1);
}

/// One box per image, and its score: [B, 8] to [B, 5].
struct Detector : torch::nn::Module {
  at::Tensor forward(at::Tensor const& data) { return layer(data); }
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(8, 5))};
};

/// Predictions for metrics are [B, 1, 6], all of class 0.
struct BoxError {
  template <class Module>
  Loss operator()(Module& module, Batch const& batch) const {
    at::Tensor const found = forward(module, batch.data);
    at::Tensor const boxes = batch.target.slice(2, 0, 4).squeeze(1);
    at::Tensor const value = at::mse_loss(found.narrow(1, 0, 4), boxes);
    at::Tensor const label = at::zeros({found.size(0), 1}, found.options());
    return {.value = value, .output = at::cat({found, label}, 1).unsqueeze(1)};
  }
};

TEST_CASE("MeanAveragePrecision of a fit rises to 1 as boxes are learnt") {
  at::manual_seed(3);
  at::Tensor const corners = at::rand({20, 2});
  at::Tensor const boxes = at::cat({corners, corners + 1}, 1);
  at::Tensor const data = at::cat({boxes, at::rand({20, 4})}, 1);
  at::Tensor const target = at::cat({boxes, at::zeros({20, 1})}, 1).unsqueeze(1);
  TensorDataset train(data, target, {.batch = 8}), valid(data, target, {.batch = 6});
  Trainer trainer{Detector{}, BoxError{}, Settings{.epochs = 400}, Optimize<AdamW>{.lr = 0.02},
                  Validate<Every<100, Epoch>, MeanAveragePrecision>{}};
  Report const report = trainer.fit(train, valid);
  CHECK(report.validations.front().metrics["map"] <= report.last()["map"]);
  CHECK(report.last()["map"] > 0.9);
  CHECK(report.last()["map_50"] == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("output that is no detection is refused before the first step") {
  TensorDataset data(at::randn({12, 8}), at::randint(5, {12}, at::kLong), {.batch = 4});
  Trainer trainer{torch::nn::Linear(8, 5), CrossEntropy{}, Settings{.epochs = 1}, Optimize<SGD>{},
                  Validate<Every<1, Epoch>, MeanAveragePrecision>{}};
  CHECK_THROWS_WITH_AS(trainer.fit(data, data), doctest::Contains("output is [4, 5] Float"),
                       MetricError);
}

/// The mean BLEU of what a module copies: a metric of Validate that has one of texts as a member.
struct CopiedBleu {
  static constexpr std::string_view name = "bleu";

  template <class B>
  void add(Loss const& loss, B const& batch) {
    at::Tensor const texts = loss.output.round().to(at::kCPU, at::kLong).contiguous();
    at::Tensor const targets = batch.target.to(at::kCPU, at::kLong).contiguous();
    for (std::int64_t i = 0; i < texts.size(0); ++i) bleu_.add(row(texts, i), row(targets, i));
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    bleu_.reduce(sum);
  }
  double result() const { return bleu_.result(); }

 private:
  static std::vector<std::int64_t> row(at::Tensor const& rows, std::int64_t i) {
    auto const* const first = rows.const_data_ptr<std::int64_t>() + i * rows.size(1);
    return {first, first + rows.size(1)};
  }
  Bleu bleu_;
};

TEST_CASE("Bleu is a member of a metric of Validate") {
  at::Tensor const texts = at::randint(9, {12, 6}, at::kLong).to(at::kFloat);
  TensorDataset data(texts, texts, {.batch = 5});
  torch::nn::Linear module(torch::nn::LinearOptions(6, 6).bias(false));
  {
    torch::NoGradGuard const no_gradients;
    module->weight.copy_(at::eye(6));
  }
  Trainer trainer{module, MeanSquaredError{}, Settings{.epochs = 1}, Optimize<SGD>{},
                  Validate<Every<1, Epoch>, CopiedBleu>{}};
  CHECK(trainer.evaluate(data)["bleu"] == doctest::Approx(100));
}

}  // namespace frugal_test::metrics_fit
