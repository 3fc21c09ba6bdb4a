// SPDX-License-Identifier: Apache-2.0
// The job of tests/reference/training.json.
// Shapes: B rows of a micro-batch, F = 6 features, C = 3 classes.
#pragma once

#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

namespace frugal_test::support {

/// A batch with a weight for each row.
struct Weighted {
  frugal::Batch rows;
  at::Tensor weight_B;
};

}  // namespace frugal_test::support

template <>
struct frugal::batch_traits<frugal_test::support::Weighted> {
  using Batch = frugal_test::support::Weighted;
  static std::int64_t samples(Batch const& batch) { return batch.weight_B.size(0); }
  static std::int64_t tokens(Batch const& batch) { return batch.weight_B.size(0); }
  static void to(Batch&, at::Device) {}
};

namespace frugal_test::support {

/// Cross entropy as in the file: weighted by row, or the plain mean.
struct RowWeighted {
  bool weighted = true;
  template <class Module>
  frugal::Loss operator()(Module& module, Weighted const& batch) const {
    at::Tensor const logits_BC = frugal::forward(module, batch.rows.data);
    if (!weighted) {
      return {.value = at::cross_entropy_loss(logits_BC, batch.rows.target), .output = logits_BC};
    }
    at::Tensor const each_B =
        at::cross_entropy_loss(logits_BC, batch.rows.target, {}, at::Reduction::None);
    at::Tensor const sum = batch.weight_B.sum();
    return {.value = (each_B * batch.weight_B).sum() / sum,
            .weight = sum.item<double>(),
            .output = logits_BC};
  }
};

struct TrainingFile {
  Json file = reference("training.json");

  torch::nn::Sequential network() const {
    torch::nn::Sequential net(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3));
    at::NoGradGuard const no_gradients;
    for (auto& item : net->named_parameters()) {
      Json const& start = file.at("start").at(item.key());
      item.value().copy_(tensor_in(start.at("values"), shape_in(start.at("shape"))));
    }
    return net;
  }

  /// The 40 rows, split into micro-batches of these sizes.
  std::vector<Weighted> batches(std::vector<std::int64_t> const& sizes) const {
    at::Tensor const data = tensor_in(file.at("data").at("values"), {40, 6});
    at::Tensor const target = at::tensor(file.at("target").get<std::vector<std::int64_t>>());
    at::Tensor const weight = tensor_in(file.at("weight"), {40});
    std::vector<Weighted> all;
    std::int64_t begin = 0;
    for (std::int64_t const size : sizes) {
      all.push_back({{data.narrow(0, begin, size), target.narrow(0, begin, size)},
                     weight.narrow(0, begin, size)});
      begin += size;
    }
    REQUIRE(begin == 40);
    return all;
  }
  std::vector<Weighted> batches_of(Json const& which) const {
    if (!which.contains("micro_batches")) return batches({8, 8, 8, 8, 8});
    return batches(which.at("micro_batches").get<std::vector<std::int64_t>>());
  }
};

struct Trained {
  std::vector<double> losses;  ///< weighted mean of each window
  std::vector<double> rates;
  torch::nn::Sequential net{nullptr};
};

/// 30 steps with the file's AdamW and these policies.
template <class Objective, class... Ps>
Trained train_as(TrainingFile const& file, Json const& which, Objective const& objective,
                 Ps const&... policies) {
  Trained trained;
  trained.net = file.network();
  Seen seen;
  Spy spy{.seen = &seen, .each_step = [&](frugal::Counters const& at) {
            double sum = 0;
            double weight = 0;
            for (std::size_t i = seen.losses.size() - at.window_micro_batches;
                 i < seen.losses.size(); ++i) {
              sum += seen.losses[i] * seen.weights[i];
              weight += seen.weights[i];
            }
            trained.losses.push_back(sum / weight);
          }};
  frugal::Optimize<frugal::AdamW> const optimizer{
      .lr = file.file.at("optimizer").at("lr"),
      .weight_decay = file.file.at("optimizer").at("weight_decay")};
  frugal::Trainer trainer{trained.net, objective, frugal::Settings{.epochs = 30, .steps = 30},
                          optimizer,   spy,       policies...};
  auto batches = file.batches_of(which);
  CHECK(trainer.fit(batches).steps == 30);
  trained.rates = seen.rates;
  return trained;
}

/// The distance between two sides of a case, in losses and in final weights.
struct Apart {
  double losses = 0;
  double weights = 0;
};

inline Apart apart(Trained const& trained, Json const& side) {
  Apart found;
  auto const losses = side.at("losses").get<std::vector<double>>();
  REQUIRE(trained.losses.size() == losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    found.losses = std::fmax(found.losses, std::abs(trained.losses[i] - losses[i]));
  }
  for (auto const& item : trained.net->named_parameters()) {
    at::Tensor const expected =
        tensor_in(side.at("final").at(item.key()), item.value().sizes().vec(), at::kDouble);
    found.weights = std::fmax(found.weights, distance(item.value(), expected));
  }
  return found;
}

/// The file's float32 and float64 runs differ by rounding alone, so their distance is the
/// tolerance; frugal's kernels round in another order, and 30 steps of AdamW propagate each
/// difference.
inline void check_follows(Trained const& trained, Json const& which) {
  Trained rounded;
  rounded.losses = which.at("float32").at("losses").get<std::vector<double>>();
  rounded.net =
      torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3));
  {
    at::NoGradGuard const no_gradients;
    for (auto& item : rounded.net->named_parameters()) {
      item.value().copy_(
          tensor_in(which.at("float32").at("final").at(item.key()), item.value().sizes().vec()));
    }
  }
  Apart const allowed = apart(rounded, which.at("float64"));
  Apart const found = apart(trained, which.at("float64"));
  CHECK(found.losses <= 4 * allowed.losses);
  CHECK(found.weights <= 4 * allowed.weights);
}

}  // namespace frugal_test::support
