// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/agreement/window_message.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace frugal_test::cluster_window_message {

using frugal::detail::MicroBatchNumbers;
using frugal::detail::WindowMessage;
using frugal::detail::WindowStamp;

TEST_CASE("a message comes back as it was, to the bit") {
  for (std::size_t parameters : {0U, 1U, 62U, 63U, 64U, 200U}) {
    CAPTURE(parameters);
    std::vector<bool> has;
    for (std::size_t i = 0; i < parameters; ++i) has.push_back(i % 3 == 0 || i % 63 == 62);
    WindowMessage const message(3, parameters);
    std::vector<MicroBatchNumbers> const own{
        {.loss = 0.1, .weight = 3, .samples = 4, .tokens = 1ULL << 40U},
        {.loss = std::numeric_limits<double>::quiet_NaN(), .weight = 0, .samples = 0, .tokens = 0}};
    at::Tensor const sent = message.pack(own, has, true, false);
    CHECK(sent.numel() == message.pack({}, has, false, true).numel());  // of a fixed size
    WindowMessage::Part const got = message.unpack(sent);
    REQUIRE(got.micro_batches.size() == 2);
    CHECK(got.micro_batches[0].loss == 0.1);
    CHECK(got.micro_batches[0].weight == 3);
    CHECK(got.micro_batches[0].samples == 4);
    CHECK(got.micro_batches[0].tokens == 1ULL << 40U);
    CHECK(std::isnan(got.micro_batches[1].loss));
    CHECK(got.has_gradient == has);
    CHECK(got.counts() == (parameters > 0));
    CHECK(got.preempts);
    CHECK_FALSE(message.unpack(message.pack({}, has, false, true)).preempts);
  }
}

TEST_CASE("a part without a gradient counts for nothing, whatever its weight") {
  WindowMessage const message(2, 1);
  CHECK_FALSE(message.unpack(message.pack({}, {false}, false, false)).counts());
  CHECK_FALSE(message.unpack(message.pack({{.weight = 3}}, {false}, false, false)).counts());
  CHECK(message.unpack(message.pack({{.weight = 0}}, {true}, false, false)).counts());
}

TEST_CASE(
    "a message says which window it is of, and whether a checkpoint was saved, at no length") {
  WindowMessage const message(2, 70);
  std::vector<bool> const has(70, true);
  frugal::PlaceInRun const here{.epoch = 3, .position = 1ULL << 40U, .step = 7};
  WindowStamp const stamp = WindowStamp::of((1ULL << 32U) + 5, here, 9);
  CHECK(stamp.number == 5);
  at::Tensor const sent =
      message.pack({{.loss = 1}, {.loss = 2}}, has, true, true, true, true, stamp);
  CHECK(sent.numel() == 2 + 4 * 2 + 2);
  WindowMessage::Part const got = message.unpack(sent);
  CHECK(got.stamp == stamp);
  CHECK(got.micro_batches.size() == 2);
  CHECK((got.preempts && got.fails && got.has_scalars && got.has_saved));
  WindowMessage::Part const other = message.unpack(
      message.pack({}, has, false, false, false, false, WindowStamp::of(5, here, 10)));
  CHECK_FALSE(other.stamp == stamp);  // this process has read one sample more
  CHECK_FALSE(other.has_saved);
}

TEST_CASE("numbers that are no message of a window have no more micro-batches than a process") {
  WindowMessage const message(2, 1);
  CHECK(message.unpack(at::full({static_cast<std::int64_t>(message.size())}, -1, at::kLong))
            .micro_batches.size() == 2);
}

TEST_CASE("a bad loss and a preemption are told apart") {
  WindowMessage const message(2, 1);
  WindowMessage::Part const fails = message.unpack(message.pack({}, {false}, false, true));
  CHECK(fails.fails);
  CHECK_FALSE(fails.preempts);
}

}  // namespace frugal_test::cluster_window_message
