// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/optimize.hpp>

#include "support/training.hpp"

namespace frugal_test::policy_accumulate {

using namespace frugal_test::support;
using frugal::Accumulate;

TEST_CASE("Accumulate<1> has the same bits as no Accumulate") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "plain");
  auto const with = train_as(file, which, RowWeighted{true}, Accumulate<1>{});
  auto const without = train_as(file, which, RowWeighted{true});
  CHECK(same_bits(tensors_of(*with.net), tensors_of(*without.net)));
}

/// The weights after one epoch of plain gradient descent in float64, where rounding does not hide
/// differences: micro-batches of these sizes, N per window.
template <int N>
std::map<std::string, at::Tensor> descend(std::vector<std::int64_t> const& sizes, bool weighted) {
  TrainingFile const file;
  auto net = file.network();
  net->to(at::kDouble);
  std::vector<Weighted> batches = file.batches(sizes);
  for (Weighted& batch : batches) {
    batch.rows.data = batch.rows.data.to(at::kDouble);
    batch.weight_B = batch.weight_B.to(at::kDouble);
  }
  frugal::Trainer trainer{net, RowWeighted{weighted}, frugal::Settings{},
                          frugal::Optimize<frugal::SGD>{.lr = 0.5}, Accumulate<N>{}};
  static_cast<void>(trainer.fit(batches));
  return tensors_of(*net);
}

/// The same with one big batch per window, in a hand-written loop without frugal.
std::map<std::string, at::Tensor> by_hand(std::vector<std::int64_t> const& windows, bool weighted) {
  TrainingFile const file;
  auto net = file.network();
  net->to(at::kDouble);
  for (Weighted const& batch : file.batches(windows)) {
    at::Tensor const each_B = at::cross_entropy_loss(net->forward(batch.rows.data.to(at::kDouble)),
                                                     batch.rows.target, {}, at::Reduction::None);
    at::Tensor const weight_B =
        weighted ? batch.weight_B.to(at::kDouble) : at::ones_like(batch.weight_B, at::kDouble);
    net->zero_grad();
    ((each_B * weight_B).sum() / weight_B.sum()).backward();
    at::NoGradGuard const no_gradients;
    for (at::Tensor& parameter : net->parameters()) parameter.sub_(parameter.grad(), 0.5);
  }
  return tensors_of(*net);
}

double apart(std::map<std::string, at::Tensor> const& a,
             std::map<std::string, at::Tensor> const& b) {
  double largest = 0;
  for (auto const& [name, tensor] : a) largest = std::fmax(largest, distance(tensor, b.at(name)));
  return largest;
}

// A few rounding errors of a double.
constexpr double rounding = 1e-14;

TEST_CASE("a window of equal micro-batches is one big batch") {
  CHECK(apart(descend<4>(std::vector<std::int64_t>(8, 5), false), by_hand({20, 20}, false)) <
        rounding);
}

TEST_CASE("a last window with fewer micro-batches is one big batch of these") {
  CHECK(apart(descend<3>(std::vector<std::int64_t>(8, 5), false), by_hand({15, 15, 10}, false)) <
        rounding);
  CHECK(apart(descend<16>(std::vector<std::int64_t>(8, 5), false), by_hand({40}, false)) <
        rounding);
}

TEST_CASE("micro-batches of unequal size count by their samples") {
  CHECK(apart(descend<3>({1, 9, 10, 3, 12, 5}, false), by_hand({20, 20}, false)) < rounding);
}

TEST_CASE("micro-batches of unequal weight count by their weights") {
  CHECK(apart(descend<3>({1, 9, 10, 3, 12, 5}, true), by_hand({20, 20}, true)) < rounding);
  CHECK(apart(descend<4>({1, 9, 10, 3, 12, 5}, true), by_hand({23, 17}, true)) < rounding);
}

TEST_CASE("a window counts as one step, its micro-batches one by one") {
  TrainingFile const file;
  std::vector<frugal::Counters> seen;
  Spy spy{.each_step = [&](frugal::Counters const& at) { seen.push_back(at); }};
  frugal::Trainer trainer{file.network(),     RowWeighted{false},
                          frugal::Settings{}, frugal::Optimize<frugal::SGD>{},
                          Accumulate<2>{},    spy};
  static_cast<void>(trainer.fit(file.batches({10, 8, 22})));
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].micro_batch == 2);
  CHECK(seen[0].window_samples == 18);
  CHECK(seen[1].micro_batch == 3);
  CHECK(seen[1].window_micro_batches == 1);
  CHECK(seen[1].sample == 40);
}

TEST_CASE("a full window of equal weights costs no operator besides those of its micro-batches") {
  TrainingFile const file;
  auto const count = [&](auto policy, std::vector<std::int64_t> const& sizes) {
    auto const net = file.network();
    auto const batches = file.batches(sizes);
    auto operators = operators_of([&] {
      frugal::Trainer{net, RowWeighted{false}, frugal::Settings{},
                      frugal::Optimize<frugal::Nothing>{}, policy}
          .fit(batches);
    });
    return operators;
  };
  CHECK(count(Accumulate<4>{}, std::vector<std::int64_t>(8, 5)).count("aten::_foreach_mul_") == 0);
  CHECK(count(Accumulate<3>{}, std::vector<std::int64_t>(8, 5)).at("aten::_foreach_mul_") == 1);
}

/// Means over the labels that are not -100: NaN, of weight 0, where there is none.
struct NaiveMean {
  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    at::Tensor const counts = batch.target.ne(-100).to(at::kFloat);
    at::Tensor const each =
        at::cross_entropy_loss(module->forward(batch.data), batch.target, {}, at::Reduction::None);
    return {.value = (each * counts).sum() / counts.sum(),
            .weight = counts.sum().item<double>(),
            .output = {},
            .scalars = {{"labels", each.sum() / counts.sum()}}};
  }
};

TEST_CASE("a micro-batch of weight 0 adds nothing, though its loss and its gradient are NaN") {
  auto const train = [](std::vector<bool> const& has_labels, auto policy) {
    auto const module = std::make_shared<Mlp>();
    std::vector<frugal::Batch> batches;
    for (std::size_t i = 0; i < has_labels.size(); ++i) {
      batches.push_back(samples(4, 91 + static_cast<std::uint32_t>(i)));
      if (!has_labels[i]) batches.back().target.fill_(-100);
    }
    frugal::Trainer trainer{module, NaiveMean{}, frugal::Settings{},
                            frugal::Optimize<frugal::SGD>{.lr = 0.5}, policy};
    auto const report = trainer.fit(batches);
    CHECK(report.steps == 1);
    CHECK(std::isfinite(report.train_loss));
    return tensors_of(*module);
  };
  for (bool const first : {true, false}) {
    auto const net = train({!first, first}, Accumulate<2>{});
    auto const alone = std::make_shared<Mlp>();
    NaiveMean{}(const_cast<std::shared_ptr<Mlp>&>(alone), samples(4, first ? 92 : 91))
        .value.backward();
    at::NoGradGuard const no_gradients;
    for (at::Tensor& parameter : alone->parameters()) parameter.sub_(parameter.grad(), 0.5);
    CHECK(apart(net, tensors_of(*alone)) < 1e-6);
  }
  // A window of nothing else has no mean, and is no NaN either.
  CHECK_THROWS_AS(train({false, false}, Accumulate<2>{}), frugal::ZeroWeightError);
  CHECK_THROWS_AS(train({false}, Accumulate<1>{}), frugal::ZeroWeightError);
}

TEST_CASE("a weight that is negative or not finite is refused") {
  auto const fit = [](double weight) {
    auto const objective = [weight](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
      return frugal::Loss{.value = module->forward(batch.data).sum(), .weight = weight};
    };
    frugal::Trainer trainer{std::make_shared<Mlp>(), objective, frugal::Settings{},
                            frugal::Optimize<frugal::SGD>{}, Accumulate<2>{}};
    static_cast<void>(trainer.fit(std::vector<frugal::Batch>{samples(4)}));
  };
  CHECK_THROWS_AS(fit(-1.0), frugal::SettingsError);
  CHECK_THROWS_AS(fit(std::nan("")), frugal::SettingsError);
  CHECK_THROWS_AS(fit(std::numeric_limits<double>::infinity()), frugal::SettingsError);
}

}  // namespace frugal_test::policy_accumulate
