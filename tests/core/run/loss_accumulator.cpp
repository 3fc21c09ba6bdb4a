// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

#include "core/loop/stand_ins.hpp"
#include "support/running.hpp"

#include <cmath>
#include <exception>
#include <limits>

namespace frugal_test::run_ledger {

using namespace frugal_test::loop;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Counters at_step(std::uint64_t epoch, std::uint64_t step, std::uint64_t micro_batch) {
  Counters at;
  at.epoch = epoch;
  at.step = step;
  at.micro_batch = micro_batch;
  return at;
}
at::Tensor scalar(double value, at::ScalarType type = at::kDouble) {
  return at::scalar_tensor(value, type);
}

TEST_CASE("the mean of an epoch's losses is weighted") {
  LossAccumulator ledger;
  ledger.add(scalar(1.0), 3, {});
  ledger.add(scalar(5.0), 1, {});
  CHECK(ledger.mean() == 2.0);
}

Counters at_position(std::uint64_t position) {
  Counters at;
  at.position = position;
  return at;
}

TEST_CASE("the last loss is the weighted mean of a window's micro-batches") {
  for (auto const reading :
       {LossAccumulator::Reading::at_once, LossAccumulator::Reading::when_asked}) {
    LossAccumulator ledger(reading);
    ledger.add(scalar(100.0), 1, at_position(0));
    ledger.add(scalar(1.0), 3, at_position(4));
    ledger.add(scalar(5.0), 1, at_position(4));
    CHECK(ledger.last() == 2.0);
    ledger.add(scalar(7.0), 1, at_position(8));
    CHECK(ledger.last() == 7.0);
    // A window that was undone, and done again with another loss.
    LossAccumulator::Mark const mark = ledger.mark();
    ledger.add(scalar(1e9), 1, at_position(12));
    ledger.go_back(mark);
    ledger.add(scalar(3.0), 1, at_position(12));
    CHECK(ledger.last() == 3.0);
    ledger.reset();
    ledger.add(scalar(4.0), 1, at_position(12));
    CHECK(ledger.last() == 4.0);
  }
}

TEST_CASE("equal losses have that loss as their mean, to the bit") {
  LossAccumulator ledger;
  for (double const weight : {3.0, 7.0, 0.1, 11.0}) ledger.add(scalar(0.1), weight, {});
  CHECK(ledger.last() == 0.1);
}

TEST_CASE("a loss of weight 0 is never read: NaN, it is no error and changes nothing") {
  for (auto const reading :
       {LossAccumulator::Reading::at_once, LossAccumulator::Reading::when_asked,
        LossAccumulator::Reading::when_agreed}) {
    LossAccumulator ledger(reading);
    ledger.add(scalar(nan), 0, {});
    CHECK(std::isnan(ledger.mean()));
    ledger.add(scalar(2.0), 3, {});
    ledger.add(scalar(nan), 0, {});
    ledger.add(scalar(infinity), 0, at_position(8));
    CHECK_NOTHROW(ledger.require_good());
    CHECK(ledger.mean() == 2.0);
    CHECK(ledger.last() == 2.0);
  }
}

TEST_CASE("before the first loss mean and last are NaN") {
  LossAccumulator ledger;
  CHECK(std::isnan(ledger.mean()));
  CHECK(std::isnan(ledger.last()));
}

TEST_CASE("a reset forgets the epoch's mean and keeps the last loss") {
  LossAccumulator ledger;
  ledger.add(scalar(1.0), 1, {});
  ledger.reset();
  CHECK(std::isnan(ledger.mean()));
  CHECK(ledger.last() == 1.0);
}

TEST_CASE("losses of every floating type are read") {
  for (at::ScalarType const type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    LossAccumulator ledger;
    ledger.add(scalar(0.75, type), 2, {});
    CHECK(ledger.mean() == 0.75);
  }
}

TEST_CASE("a loss that is an element of a larger tensor is that element") {
  LossAccumulator ledger;
  ledger.add(at::arange(5, at::kFloat)[3], 1, {});
  CHECK(ledger.last() == 3.0);
}

TEST_CASE("a loss that is NaN is refused at once, naming epoch, step and micro-batch") {
  LossAccumulator ledger;
  CHECK_THROWS_WITH_AS(
      ledger.add(scalar(nan), 1, at_step(2, 31, 250)),
      "frugal: the loss is NaN (epoch 2, step 31, micro-batch 250): training diverged, or a sample "
      "holds NaN. Lower the learning rate, add Schedule<Warmup<...>> or ClipNorm<>, or check the "
      "samples of that micro-batch.",
      NonFiniteLossError);
}

TEST_CASE("a loss that is infinite is refused and called so") {
  LossAccumulator ledger;
  auto const error =
      thrown_by<NonFiniteLossError>([&] { ledger.add(scalar(-infinity), 1, at_step(0, 1, 1)); });
  REQUIRE(error);
  CHECK(error->fault().what == "the loss is infinite");
}

TEST_CASE("a refused loss is not in the mean") {
  LossAccumulator ledger;
  ledger.add(scalar(4.0), 1, {});
  CHECK_THROWS_AS(ledger.add(scalar(nan), 1, {}), NonFiniteLossError);
  CHECK(ledger.mean() == 4.0);
}

TEST_CASE("pending losses are not checked before they are read") {
  LossAccumulator ledger(LossAccumulator::Reading::when_asked);
  at::Tensor const loss = scalar(nan);
  ledger.add(loss, 1, {});
  loss.fill_(2.0);  // it has not been read yet
  ledger.add(scalar(4.0), 3, {});
  CHECK(ledger.mean() == 3.5);
  CHECK(ledger.last() == 3.5);
}

TEST_CASE("a pending loss that is not finite names its step, however late") {
  for (int const asked : {0, 1, 2}) {
    LossAccumulator ledger(LossAccumulator::Reading::when_asked);
    ledger.add(scalar(1.0, at::kFloat), 1, at_step(0, 1, 10));
    ledger.add(scalar(infinity), 1, at_step(0, 2, 20));
    ledger.add(scalar(nan), 1, at_step(0, 3, 30));
    auto const error = thrown_by<NonFiniteLossError>([&] {
      if (asked == 0) ledger.mean();
      if (asked == 1) ledger.last();
      if (asked == 2) ledger.read_pending();
    });
    REQUIRE(error);
    CHECK(error->fault().where == "epoch 0, step 2, micro-batch 20");
    CHECK(error->fault().what == "the loss is infinite");
  }
}

TEST_CASE("pending losses of a graph do not keep it alive: they are detached") {
  LossAccumulator ledger(LossAccumulator::Reading::when_asked);
  at::Tensor const weight =
      at::ones({}, at::TensorOptions().dtype(at::kDouble).requires_grad(true));
  ledger.add(weight * 3, 1, {});
  CHECK(ledger.mean() == 3.0);
}

TEST_CASE("pending and immediate reading give the same mean") {
  LossAccumulator now;
  LossAccumulator later(LossAccumulator::Reading::when_asked);
  for (int i = 1; i <= 20; ++i) {
    now.add(scalar(1.0 / i), i, {});
    later.add(scalar(1.0 / i), i, {});
  }
  CHECK(now.mean() == later.mean());
}

TEST_CASE("a ledger survives a resume in the middle of an epoch") {
  LossAccumulator ledger(LossAccumulator::Reading::when_asked);
  ledger.add(scalar(1.0), 3, {});
  ledger.add(scalar(5.0), 1, {});
  StateDict memory;
  StateWriter writer(memory);
  ledger.persist(writer);
  LossAccumulator resumed;
  StateReader reader(memory);
  resumed.persist(reader);
  CHECK(resumed.mean() == 2.0);
  CHECK(resumed.last() == 2.0);
  resumed.add(scalar(6.0), 4, {});
  CHECK(resumed.mean() == 4.0);
  CHECK(resumed.last() == 6.0);  // a save lies between windows
}

TEST_CASE("a ledger returns to a mark, whenever it checks losses") {
  for (auto const reading :
       {LossAccumulator::Reading::at_once, LossAccumulator::Reading::when_asked}) {
    LossAccumulator ledger(reading);
    ledger.add(scalar(1.0), 3, {});
    LossAccumulator::Mark const mark = ledger.mark();
    ledger.add(scalar(100.0), 2, {});
    ledger.add(scalar(7.0), 2, {});
    ledger.go_back(mark);
    ledger.add(scalar(5.0), 1, {});
    CHECK(ledger.mean() == 2.0);
    CHECK(ledger.last() == 2.0);
  }
}

TEST_CASE("pending losses are read with one conversion, whatever their types") {
  LossAccumulator ledger(LossAccumulator::Reading::when_asked);
  for (int i = 0; i < 9; ++i) {
    ledger.add(scalar(0.25 * i, i % 2 == 0 ? at::kFloat : at::kBFloat16), 1, {});
  }
  auto const operators = support::operators_of([&] { ledger.read_pending(); });
  CHECK(operators.at("aten::stack") == 1);
  CHECK(operators.at("aten::_to_copy") <= 1 + 4);  // and those with another type than the stack's
  CHECK(ledger.mean() == 1.0);
}

TEST_CASE("unread losses are packed, and none of them is read") {
  constexpr std::size_t chunk = LossAccumulator::a_chunk;
  constexpr int many = 2 * chunk + 7;
  LossAccumulator now;
  LossAccumulator later(LossAccumulator::Reading::when_asked);
  at::Tensor const first = scalar(1.0);
  auto const operators = support::operators_of([&] {
    for (int i = 0; i < many; ++i) {
      at::Tensor const loss = i == 0 ? first : scalar(1.0 / (i + 1));
      now.add(loss, i + 1, {});
      later.add(loss, i + 1, {});
    }
  });
  CHECK(operators.at("aten::stack") == 2);
  CHECK(operators.count("aten::_to_copy") == 0);
  CHECK(first.storage().use_count() == 1);  // its 512 bytes are free
  CHECK(later.mean() == now.mean());
  CHECK(later.last() == now.last());
}

TEST_CASE("a ledger returns to a mark before losses that have been packed") {
  constexpr std::size_t chunk = LossAccumulator::a_chunk;
  // Marks before the first chunk, within one, at its end, and two chunks in.
  for (std::size_t const kept : {std::size_t{0}, chunk / 2, chunk, chunk + 3}) {
    LossAccumulator ledger(LossAccumulator::Reading::when_asked);
    double sum = 0;
    for (std::size_t i = 0; i < kept; ++i) {
      ledger.add(scalar(static_cast<double>(i)), 1, {});
      sum += static_cast<double>(i);
    }
    LossAccumulator::Mark const mark = ledger.mark();
    for (std::size_t i = 0; i < 2 * chunk; ++i) ledger.add(scalar(nan), 1, {});
    ledger.go_back(mark);
    ledger.add(scalar(0.5), 1, {});
    CHECK(ledger.mean() == (sum + 0.5) / static_cast<double>(kept + 1));
  }
}

TEST_CASE("an error names the step of a loss that has been packed") {
  LossAccumulator ledger(LossAccumulator::Reading::when_asked);
  for (std::uint64_t i = 0; i < LossAccumulator::a_chunk + 10; ++i) {
    ledger.add(scalar(i == 77 ? nan : 1.0), 1, at_step(2, i, 3 * i));
  }
  CHECK_THROWS_WITH_AS(ledger.read_pending(),
                       doctest::Contains("epoch 2, step 77, micro-batch 231"),
                       frugal::NonFiniteLossError);
}

TEST_CASE("if processes agree a bad loss is postponed, the first one kept, and nothing thrown") {
  LossAccumulator ledger(LossAccumulator::Reading::when_agreed);
  Counters at{};
  ledger.add(at::scalar_tensor(1.0), 1, at);
  CHECK_FALSE(ledger.bad());
  LossAccumulator::Mark const before = ledger.mark();
  at.step = 3;
  ledger.add(at::scalar_tensor(std::numeric_limits<double>::infinity()), 1, at);
  at.step = 4;
  ledger.add(at::scalar_tensor(std::numeric_limits<double>::quiet_NaN()), 1, at);
  REQUIRE(ledger.bad());
  try {
    std::rethrow_exception(ledger.bad());
  } catch (frugal::NonFiniteLossError const& error) {
    CHECK(error.window.step == 3);
    CHECK(std::isinf(error.loss));
  }
  ledger.go_back(before);
  CHECK_FALSE(ledger.bad());
  CHECK(ledger.mean() == 1.0);
  ledger.add(at::scalar_tensor(std::numeric_limits<double>::quiet_NaN()), 1, at);
  ledger.reset();
  CHECK_FALSE(ledger.bad());
}

}  // namespace frugal_test::run_ledger
