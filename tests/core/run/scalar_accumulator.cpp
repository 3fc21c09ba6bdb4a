// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace frugal_test::run_scalar_ledger {

using frugal::LossAccumulator;
using frugal::ScalarAccumulator;
using frugal::Scalars;
using frugal::ScalarSpan;
using Means = std::vector<ScalarSpan::Mean>;

TEST_CASE("scalars are averaged by the weights of their losses, in the order of their names") {
  ScalarAccumulator ledger;
  ScalarSpan span;
  ledger.follow(span);
  ledger.add({{"kl", at::tensor(1.0F)}, {"beta", 0.5}}, 3);
  ledger.add({{"beta", 1.5}, {"kl", at::tensor(5.0F)}}, 1);
  ledger.read_pending();
  CHECK((span.take() == Means{{"kl", 2.0}, {"beta", 0.75}}));
  CHECK(span.take().empty());
}

TEST_CASE("a scalar of weight 0 is never read: NaN, it leaves the mean of the others") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  ScalarAccumulator ledger;
  ScalarSpan span;
  ledger.follow(span);
  ledger.add({{"kl", at::tensor(nan)}, {"beta", nan}}, 0);
  ledger.add({{"kl", at::tensor(2.0F)}}, 3);
  ledger.read_pending();
  Means const means = span.take();
  REQUIRE(means.size() == 2);
  CHECK((means[0] == ScalarSpan::Mean{"kl", 2.0}));
  CHECK(std::isnan(means[1].second));  // it had no other value
}

TEST_CASE("each span has its own beginning, and a NaN ends with the span that has it") {
  ScalarAccumulator ledger;
  ScalarSpan often, seldom;
  ledger.follow(often);
  ledger.follow(seldom);
  ledger.follow(often);  // once
  ledger.add({{"kl", std::numeric_limits<double>::quiet_NaN()}}, 1);
  ledger.read_pending();
  CHECK(std::isnan(often.take().at(0).second));
  ledger.add({{"kl", 2.0}}, 1);
  ledger.read_pending();
  CHECK((often.take() == Means{{"kl", 2.0}}));
  CHECK(std::isnan(seldom.take().at(0).second));
}

TEST_CASE("losses that are read settle their scalars, and a window that is undone takes its own") {
  LossAccumulator ledger;
  ScalarSpan span;
  ledger.follow(span);
  ledger.add(Scalars{{"kl", 1.0}}, 1);
  LossAccumulator::Mark const mark = ledger.mark();
  ledger.add(Scalars{{"kl", 100.0}}, 1);
  ledger.go_back(mark);
  ledger.add(Scalars{{"kl", 3.0}}, 1);
  ledger.read_pending();
  CHECK((span.take() == Means{{"kl", 2.0}}));
  ledger.add(Scalars{{"kl", 9.0}}, 1);
  ledger.reset();
  ledger.read_pending();
  CHECK(span.take().empty());
}

TEST_CASE("however many are pending, their mean is the same") {
  auto const mean_of = [](bool marks, at::Device device) {
    ScalarAccumulator ledger;
    ScalarSpan span;
    ledger.follow(span);
    auto const count = static_cast<int>(ScalarAccumulator::a_chunk * 2 + 7);
    for (int i = 0; i < count; ++i) {
      if (marks && i % 4 == 0) ledger.mark();
      ledger.add({{"even", at::full({}, i % 2, at::TensorOptions().device(device))}}, 1 + i % 2);
    }
    ledger.read_pending();
    return span.take().at(0).second;
  };
  double const right = static_cast<double>(2 * (ScalarAccumulator::a_chunk + 3)) /
                       static_cast<double>(3 * (ScalarAccumulator::a_chunk + 3) + 1);
  CHECK(mean_of(false, at::kCPU) == doctest::Approx(right).epsilon(1e-12));
  CHECK(mean_of(true, at::kCPU) == doctest::Approx(right).epsilon(1e-12));
}

TEST_CASE("a scalar that is not a single number is refused with its name and shape") {
  ScalarAccumulator ledger;
  CHECK_THROWS_WITH_AS(ledger.add({{"kl", at::ones({4, 2})}}, 1),
                       doctest::Contains("the scalar 'kl' is not a single number but [4, 2] Float"),
                       frugal::ShapeError);
  CHECK_THROWS_WITH_AS(ledger.add({{"kl", at::Tensor()}}, 1), doctest::Contains("undefined"),
                       frugal::ShapeError);
  CHECK_NOTHROW(ledger.add({{"kl", at::ones({1})}}, 1));
}

TEST_CASE("a name that a log's line has already is refused") {
  ScalarAccumulator ledger;
  CHECK_THROWS_WITH_AS(ledger.add({{"loss", 1.0}}, 1),
                       doctest::Contains("a scalar is called 'loss'"), frugal::SettingsError);
  CHECK_THROWS_AS(ledger.add({{"", 1.0}}, 1), frugal::SettingsError);
}

TEST_CASE("a saved span resumes where it was, and processes combine their spans") {
  ScalarSpan span;
  span.add("kl", 6, 3);
  span.add("beta", 1, 1);
  frugal::StateDict saved;
  frugal::StateWriter writer(saved);
  span.persist(writer);
  ScalarSpan loaded;
  loaded.add("stale", 1, 1);
  frugal::StateReader reader(saved);
  loaded.persist(reader);
  loaded.add("kl", 2, 1);
  // The other process has the same.
  loaded.reduce([](double here) { return 2 * here; });
  CHECK((loaded.take() == Means{{"beta", 1.0}, {"kl", 2.0}}));
}

}  // namespace frugal_test::run_scalar_ledger
