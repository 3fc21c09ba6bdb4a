// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/norm_accumulator.hpp>

#include "core/loop/stand_ins.hpp"

namespace frugal_test::run_norm_ledger {

using namespace frugal_test::loop;
using frugal::NormAccumulator;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

at::Tensor number(double value) { return at::scalar_tensor(value, at::kFloat); }

TEST_CASE("the first norm that is not finite is found, with its window, in any chunk") {
  for (std::uint64_t const bad :
       {std::uint64_t{0}, NormAccumulator::a_chunk, NormAccumulator::a_chunk + 7}) {
    NormAccumulator norms;
    for (std::uint64_t i = 0; i < NormAccumulator::a_chunk + 9; ++i) {
      norms.add(number(i == bad ? infinity : 1), {.epoch = 2, .position = 4 * i, .step = i}, i + 1);
    }
    norms.add(number(nan), {}, 0);
    auto const found = norms.read_pending();
    REQUIRE(found.bad());
    CHECK(found.window.step == bad);
    CHECK(found.window.position == 4 * bad);
    CHECK(found.value == infinity);
    CHECK_FALSE(norms.read_pending().bad());
  }
}

TEST_CASE("finite norms are no news, and a reset forgets those that are not") {
  NormAccumulator norms;
  norms.add(number(3), {}, 1);
  CHECK_FALSE(norms.read_pending().bad());
  norms.add(number(nan), {}, 1);
  norms.reset();
  CHECK_FALSE(norms.read_pending().bad());
}

Counters after(std::uint64_t micro_batch, std::uint64_t step) {
  Counters at;
  at.micro_batch = micro_batch;
  at.step = step;
  return at;
}

TEST_CASE("of a bad loss and a bad norm the earlier is the error") {
  auto const ledger_of = [](double first_loss, double norm, double second_loss) {
    LossAccumulator ledger(LossAccumulator::Reading::when_asked);
    ledger.add(number(first_loss), 1, after(0, 0));
    ledger.add_norm(number(norm), {.epoch = 0, .position = 0, .step = 0}, after(1, 0));
    ledger.add(number(second_loss), 1, after(1, 1));
    return ledger;
  };
  CHECK_THROWS_WITH_AS(ledger_of(1, nan, nan).read_pending(),
                       doctest::Contains("the norm of the gradients is NaN (epoch 0, step 0)"),
                       NonFiniteGradientError);
  CHECK_THROWS_AS(ledger_of(1, infinity, 1).read_pending(), NonFiniteGradientError);
  CHECK_THROWS_AS(ledger_of(nan, nan, nan).read_pending(), NonFiniteLossError);
  CHECK_THROWS_AS(ledger_of(1, 1, nan).read_pending(), NonFiniteLossError);
  CHECK_NOTHROW(ledger_of(1, 1, 1).read_pending());
}

TEST_CASE("a bad norm without a loss after it is an error too") {
  LossAccumulator ledger;
  ledger.add_norm(number(nan), {}, after(1, 0));
  CHECK_THROWS_AS(ledger.require_good(), NonFiniteGradientError);
}

TEST_CASE("a ledger whose bad losses a policy skips has them in no mean") {
  LossAccumulator ledger;
  ledger.leave_bad_losses();
  ledger.add(number(2), 1, {});
  ledger.add(number(nan), 1, {});
  ledger.add(number(infinity), 5, {});
  ledger.add(number(4), 1, {});
  CHECK(ledger.mean() == 3);
  ledger.reset();
  CHECK_NOTHROW(ledger.add(number(nan), 1, {}));
}

}  // namespace frugal_test::run_norm_ledger

namespace frugal_test::run_packed_scalars {

using frugal::detail::PackedScalars;

at::Tensor number(std::size_t value) {
  return at::scalar_tensor(static_cast<double>(value), at::kFloat);
}

TEST_CASE("scalars are taken out oldest first, as doubles, over chunks") {
  PackedScalars scalars;
  constexpr std::size_t count = 2 * PackedScalars::a_chunk + 3;
  for (std::size_t i = 0; i < count; ++i) scalars.push(number(i));
  at::Tensor const all = scalars.take();
  CHECK((all.scalar_type() == at::kDouble));
  CHECK(at::equal(all, at::arange(static_cast<std::int64_t>(count), at::kDouble)));
  scalars.push(number(7));
  CHECK(scalars.take().item<double>() == 7);
}

TEST_CASE("the newest are removed, also those that are packed") {
  PackedScalars scalars;
  for (std::size_t i = 0; i < PackedScalars::a_chunk + 2; ++i) scalars.push(number(i));
  for (int i = 0; i < 5; ++i) scalars.pop();
  at::Tensor const left = scalars.take();
  CHECK(left.size(0) == static_cast<std::int64_t>(PackedScalars::a_chunk) - 3);
  CHECK(left[-1].item<double>() == static_cast<double>(PackedScalars::a_chunk) - 4);
}

TEST_CASE("cleared scalars do not come back") {
  PackedScalars scalars;
  for (std::size_t i = 0; i < PackedScalars::a_chunk + 2; ++i) scalars.push(number(i));
  scalars.clear();
  scalars.push(number(1));
  CHECK(scalars.take().numel() == 1);
}

}  // namespace frugal_test::run_packed_scalars
