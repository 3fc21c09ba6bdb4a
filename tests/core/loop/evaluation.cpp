// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace frugal_test::loop_evaluation {

using namespace support;
namespace fr = frugal;

fr::TensorDataset data(std::int64_t count, std::int64_t batch) {
  return fr::TensorDataset(samples(count), {.batch = batch, .shuffle = false});
}

template <class... Ps>
auto trainer_of(std::shared_ptr<Mlp> const& module, Ps const&... policies) {
  return fr::Trainer{module,
                     fr::CrossEntropy{},
                     fr::Settings{.epochs = 1},
                     fr::Optimize<fr::AdamW>{},
                     fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                     policies...};
}

TEST_CASE("an evaluation gives the values of a validation, over ragged batches too") {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.4, .norm = true});
  auto trainer = trainer_of(module);
  fr::TensorDataset train = data(44, 4);
  fr::TensorDataset valid = data(31, 8);
  fr::Report const report = trainer.fit(train, valid);
  CHECK((trainer.evaluate(valid) == report.last()));
  // Reference by hand, in one batch.
  module->eval();
  fr::Batch const all = samples(31);
  at::Tensor const logits = module->forward(all.data);
  fr::Metrics const found = trainer.evaluate(valid);
  CHECK(found["loss"] ==
        doctest::Approx(at::cross_entropy_loss(logits, all.target).item<double>()));
  CHECK(found["accuracy"] == logits.argmax(1).eq(all.target).to(at::kDouble).mean().item<double>());
}

TEST_CASE("an evaluation between two fits does not affect the second") {
  auto const trained = [](bool evaluates) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.4, .norm = true});
    auto trainer = trainer_of(module);
    fr::TensorDataset train = data(44, 4);
    static_cast<void>(trainer.fit(train));
    module->norm->eval();  // frozen by hand
    if (evaluates) {
      at::Tensor const before = at::rand({3});
      at::manual_seed(9);
      fr::Metrics const found = trainer.evaluate(train);
      trainer.predict(train, [](at::Tensor const&, fr::Batch const&) {});
      CHECK(found.has("accuracy"));
      at::Tensor const drawn = at::rand({3});
      at::manual_seed(9);
      CHECK(at::equal(drawn, at::rand({3})));
      CHECK(module->is_training());
      CHECK_FALSE(module->norm->is_training());
      CHECK_FALSE(module->parameters().front().grad().defined());
    }
    static_cast<void>(trainer.fit(train));
    return tensors_of(*module);
  };
  CHECK(same_bits(trained(true), trained(false)));
}

TEST_CASE("predictions come in the source's order, without gradients, in evaluation mode") {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.4});
  auto trainer = trainer_of(module);
  std::vector<at::Tensor> outputs;
  std::int64_t rows = 0;
  trainer.predict(data(31, 8), [&](at::Tensor const& output, fr::Batch const& batch) {
    CHECK_FALSE(output.requires_grad());
    CHECK(output.size(0) == batch.data.size(0));
    rows += output.size(0);
    outputs.push_back(output);
  });
  CHECK(rows == 31);
  module->eval();
  CHECK(at::allclose(at::cat(outputs), module->forward(samples(31).data), 1e-5, 1e-6));
}

/// The first feature of each row that predict gives.
template <class Source>
std::vector<std::int64_t> rows_of(Source source) {
  auto trainer = trainer_of(std::make_shared<Mlp>(Mlp::Shape{.features = 1}));
  std::vector<std::int64_t> rows;
  trainer.predict(
      source,
      [&](at::Tensor const& output, fr::Batch const&) {
        for (std::int64_t i = 0; i < output.size(0); ++i) {
          rows.push_back(static_cast<std::int64_t>(output[i].item<float>()));
        }
      },
      [](std::shared_ptr<Mlp>&, fr::Batch const& batch) { return batch.data.flatten(); });
  return rows;
}

/// Sample i is the number i.
struct Numbers {
  std::uint64_t count = 31;
  std::uint64_t size() const { return count; }
  fr::Batch get(std::uint64_t i) const {
    return {at::full({1}, static_cast<double>(i), at::kFloat), at::zeros({}, at::kLong)};
  }
};

TEST_CASE("predictions come in the order of the data, whatever the order of the source is") {
  std::vector<std::int64_t> in_order(31);
  std::iota(in_order.begin(), in_order.end(), 0);
  fr::LoaderOptions const loading{.batch = 4, .shuffle = true};
  fr::TensorDataset const resident(at::arange(31, at::kFloat).unsqueeze(1),
                                   at::zeros({31}, at::kLong), loading);
  CHECK(rows_of(resident) == in_order);
  CHECK(rows_of(fr::Prefetch(resident)) == in_order);
  CHECK(rows_of(fr::Mapped(resident, [](fr::Batch batch) { return batch; })) == in_order);
  CHECK(rows_of(fr::loader(Numbers{}, loading, fr::Stack{}, {.workers = 2})) == in_order);
  auto const ordered = [](auto order) {
    return fr::Loader(Numbers{}, std::move(order), fr::Stack{}, {.workers = 0});
  };
  fr::Buckets buckets{.lengths = std::vector<std::int64_t>(31), .pool = 3};
  for (std::size_t i = 0; i < 31; ++i) {
    buckets.lengths[i] = static_cast<std::int64_t>(i * 7 % 5);
  }
  CHECK(rows_of(ordered(fr::BucketPass(31, loading, buckets, "set"))) == in_order);
  CHECK(rows_of(ordered(fr::ShardOrder({9, 12, 10}, loading, {.shards = 2}, "set"))) == in_order);
  CHECK(rows_of(ordered(fr::WeightedPass(std::vector<double>(31, 1.0), loading))) == in_order);
  CHECK(rows_of(ordered(fr::CurriculumPass<fr::LinearPace<3>>(
            std::vector<double>(buckets.lengths.begin(), buckets.lengths.end()), loading))) ==
        in_order);
}

TEST_CASE("a source that was read in order shuffles again afterwards") {
  fr::TensorDataset source(at::arange(31, at::kFloat).unsqueeze(1), at::zeros({31}, at::kLong),
                           {.batch = 31, .shuffle = true});
  source.seek({.seed = 4});
  at::Tensor const shuffled = source.next()->data;
  source.seek({.seed = 4, .in_order = true});
  CHECK_FALSE(at::equal(source.next()->data, shuffled));
  source.seek({.seed = 4});
  CHECK(at::equal(source.next()->data, shuffled));
}

TEST_CASE("draws that are not one for each sample have no order of the data to be predicted in") {
  fr::WeightedPass const order(std::vector<double>(31, 1.0), {.batch = 4}, /*draws=*/40);
  CHECK_THROWS_AS(rows_of(fr::Loader(Numbers{}, order, fr::Stack{}, {.workers = 0})),
                  fr::SettingsError);
}

TEST_CASE("both run under the recipe's precision") {
  auto const module = std::make_shared<Mlp>();
  auto trainer = trainer_of(module, fr::Precision<fr::BF16>{});
  trainer.predict(data(8, 8), [](at::Tensor const& output, fr::Batch const&) {
    CHECK((output.scalar_type() == at::kBFloat16));
  });
  auto plain = trainer_of(module);
  fr::TensorDataset source = data(31, 8);
  CHECK(trainer.evaluate(source)["loss"] != plain.evaluate(source)["loss"]);
}

TEST_CASE("batches that are tensors, and a user-defined forward") {
  auto const module = std::make_shared<Mlp>();
  auto trainer = trainer_of(module);
  std::vector<at::Tensor> const batches{samples(4).data, samples(3).data};
  std::int64_t rows = 0;
  trainer.predict(batches,
                  [&](at::Tensor const& output, at::Tensor const&) { rows += output.size(0); });
  CHECK(rows == 7);
  double largest = 0;
  trainer.predict(
      data(8, 4),
      [&](at::Tensor const& output, fr::Batch const&) {
        largest = std::max(largest, output.max().item<double>());
      },
      [](std::shared_ptr<Mlp>& net, fr::Batch const& batch) {
        return net->forward(batch.data).softmax(1);
      });
  CHECK(largest <= 1);
  CHECK(largest > 0);
}

TEST_CASE("an empty source and a batch of another shape are errors, and the module is unchanged") {
  auto const module = std::make_shared<Mlp>();
  auto trainer = trainer_of(module);
  std::vector<fr::Batch> nothing;
  CHECK_THROWS_AS(static_cast<void>(trainer.evaluate(nothing)), fr::EmptySourceError);
  fr::TensorDataset wrong(fr::Batch{at::ones({4, 5}), at::zeros({4}, at::kLong)}, {.batch = 2});
  CHECK_THROWS_AS(static_cast<void>(trainer.evaluate(wrong)), fr::ShapeError);
  CHECK_THROWS_AS(trainer.predict(wrong, [](at::Tensor const&, fr::Batch const&) {}),
                  fr::ShapeError);
  CHECK(module->is_training());
}

}  // namespace frugal_test::loop_evaluation
