// SPDX-License-Identifier: Apache-2.0
#include <frugal/policy/curriculum.hpp>

#include <doctest/doctest.h>

#include <frugal/data/loading/prefetch.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_curriculum {

using namespace frugal;

/// Sample i is a row of i, and its target is 2 i.
struct Rows {
  std::uint64_t rows = 24;
  std::uint64_t size() const { return rows; }
  std::pair<at::Tensor, at::Tensor> get(std::uint64_t i) const {
    auto const x = at::full({1}, static_cast<double>(i), at::kFloat);
    return {x, 2 * x};
  }
};

/// Large numbers first.
struct Small {
  double operator()(std::pair<at::Tensor, at::Tensor> const& row) const {
    return -row.first.item<double>();
  }
};

/// Writes down the samples that it is given, by epochs.
struct Watching {
  std::vector<std::vector<std::int64_t>>* seen;
  template <class B>
  at::Tensor operator()(torch::nn::Linear& module, B const& batch) const {
    auto const& rows = batch_data(batch);
    if (seen->empty() || seen->back().size() == 24) seen->emplace_back();
    for (std::int64_t i = 0; i < rows.size(0); ++i) {
      seen->back().push_back(rows[i][0].template item<std::int64_t>());
    }
    return at::mse_loss(module->forward(rows) * 0, batch_target(batch) * 0) +
           module->weight.sum() * 0;
  }
};

/// The policy's own advice; the loader has some, too, about a set as small as this.
std::string told(Report const& report) {
  for (std::string const& advice : report.warnings) {
    if (advice.starts_with("Curriculum")) return advice;
  }
  return "";
}

using EasyFirst = Curriculum<By<Small>, LinearPace<2, 0.25>>;

TEST_CASE("the first epochs train on the easiest samples, and later ones on all") {
  std::vector<std::vector<std::int64_t>> seen;
  EasyFirst const policy;
  auto train = policy.source(Rows{}, {.batch = 5}, {}, {.workers = 2});
  Trainer trainer{torch::nn::Linear(1, 1), Watching{&seen}, Settings{.epochs = 3, .seed = 4},
                  Optimize<SGD>{.lr = 0.1}, policy};
  auto const report = trainer.fit(train);
  REQUIRE(seen.size() == 3);
  std::int64_t const easiest[] = {24 - 6, 24 - 15, 0};
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    CAPTURE(epoch);
    CHECK(seen[epoch].size() == 24);
    CHECK(*std::min_element(seen[epoch].begin(), seen[epoch].end()) == easiest[epoch]);
  }
  CHECK(told(report).empty());
}

TEST_CASE("a run that ends before its pace is told so") {
  std::vector<std::vector<std::int64_t>> seen;
  EasyFirst const policy;
  auto train = policy.source(Rows{}, {.batch = 8}, {}, {.workers = 0});
  Trainer trainer{torch::nn::Linear(1, 1), Watching{&seen}, Settings{.epochs = 2},
                  Optimize<SGD>{.lr = 0.1}, policy};
  auto const report = trainer.fit(train);
  CHECK(told(report) ==
        "Curriculum: the run ends with its epoch 2, and its pace gives all samples only after "
        "epoch 2");
}

TEST_CASE("scores are those of the samples, in the set's order") {
  auto const scores = EasyFirst{}.scores(Rows{.rows = 4});
  CHECK(scores == std::vector<double>{0, -1, -2, -3});
}

TEST_CASE("an order of known scores serves a source of one's own") {
  auto order = EasyFirst{}.order({3, 1, 2, 0}, {.batch = 2, .shuffle = false});
  order.seek({});
  std::vector<std::int64_t> first(2);
  order.indices(order.advance(), std::span(first));
  CHECK(first == std::vector<std::int64_t>{3, 3});
}

TEST_CASE("a grace period of EarlyStop covers the pace, or the fit is refused") {
  EasyFirst const policy;
  for (int const grace : {0, 1, 2, 7}) {
    std::vector<std::vector<std::int64_t>> seen;
    auto train = policy.source(Rows{}, {.batch = 8});
    auto valid = policy.source(Rows{}, {.batch = 8, .shuffle = false});
    Trainer trainer{torch::nn::Linear(1, 1),
                    Watching{&seen},
                    Settings{.epochs = 1},
                    Optimize<SGD>{.lr = 0.1},
                    EarlyStop<Patience<3>>{.grace_epochs = grace},
                    policy};
    auto const fit = [&] { static_cast<void>(trainer.fit(train, valid)); };
    CAPTURE(grace);
    if (grace < 2) {
      CHECK_THROWS_WITH_AS(fit(),
                           doctest::Contains("the first 2 epochs draw from the easy samples alone"),
                           SettingsError);
    } else {
      CHECK_NOTHROW(fit());
    }
  }
}

// The order is known through what stands around the loader.
using Source = decltype(EasyFirst{}.source(Rows{}, LoaderOptions{}));
static_assert(std::same_as<order_type_of<Source>, CurriculumPass<LinearPace<2, 0.25>>>);
static_assert(std::same_as<order_type_of<Prefetch<Source>>, order_type_of<Source>>);
// And through one process's part of it.
using OfARank = Loader<Rows, Stack, Shared<CurriculumPass<LinearPace<2, 0.25>>>>;
static_assert(std::same_as<order_type_of<OfARank>, order_type_of<Source>>);

TEST_CASE("each rank trains on its part of the curriculum") {
  EasyFirst const policy;
  std::vector<std::vector<std::int64_t>> seen;
  auto train = loader(
      Rows{}, Shared(policy.order(policy.scores(Rows{}), {.batch = 8}), {.rank = 1, .world = 2}));
  Trainer trainer{torch::nn::Linear(1, 1), Watching{&seen}, Settings{.epochs = 1},
                  Optimize<SGD>{.lr = 0.1}, policy};
  static_cast<void>(trainer.fit(train));
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].size() == 12);
  CHECK(*std::min_element(seen[0].begin(), seen[0].end()) >= 24 - 6);
}

}  // namespace frugal_test::policy_curriculum
