// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/rank_step.hpp>

#include <cmath>
#include <limits>

namespace frugal_test::plan_rank_step {

using namespace frugal::plan;
using doctest::Approx;

/// Eight micro-batches of 0.3 s, 40 MB of gradients, 10 MB/s, 1 ms. Buckets of 10 MB, the last of 4 MB.
RankInputs const job{.micro_batch = Seconds(0.3),
                     .micro_batches = 8,
                     .gradients = Gigabytes(0.040),
                     .link = {.latency = 0.001, .bytes_per_second = 10e6},
                     .bucket = Gigabytes(0.010),
                     .last_bucket = Gigabytes(0.004)};

RankInputs with(GradientSum sum, bool bf16 = false, bool shards = false) {
  RankInputs in = job;
  in.sum = sum;
  in.bf16 = bf16;
  in.shards_states = shards;
  return in;
}

TEST_CASE("four ranks without overlap, by hand: 6 s for 40 MB, and six latencies for each bucket") {
  RankStep const got = estimate(with(GradientSum::ring_after_backward), 4);
  CHECK(got.compute.value() == Approx(0.6));  // two micro-batches
  // 2 x 3/4 x 40 MB at 10 MB/s. 1 MiB and four buckets of 10 MB for the rest: five.
  CHECK(got.communication.value() == Approx(6 + 5 * 6 * 0.001));
  CHECK(got.exposed == got.communication);
  CHECK(got.step().value() == Approx(6.63));
  CHECK(got.efficiency == Approx(2.4 / (4 * 6.63)));
}

TEST_CASE("the backward pass of one micro-batch hides two thirds of it") {
  RankStep const got = estimate(with(GradientSum::ring), 4);
  CHECK(got.communication.value() == Approx(6.03));
  CHECK(got.exposed.value() == Approx(6.03 - 0.2));
}

TEST_CASE("the last bucket is never hidden: its sum begins when the backward pass has ended") {
  RankInputs in = with(GradientSum::ring);
  in.micro_batch = Seconds(30);
  CHECK(estimate(in, 4).exposed.value() == Approx(0.6 + 0.006));  // 2 x 3/4 x 4 MB
  in.last_bucket.reset();
  CHECK(estimate(in, 4).exposed.value() == Approx(1.5 + 0.006));  // at most a bucket
  in.gradients = Gigabytes(0.002);
  CHECK(estimate(in, 4).exposed.value() == Approx(0.3 + 0.006));  // or all there is
}

TEST_CASE("Exact exchanges as many bytes as a ring, after the backward pass") {
  RankStep const got = estimate(with(GradientSum::exact), 4);
  CHECK(got.communication.value() == Approx(6 + 3 * 3 * 0.001));
  CHECK(got.exposed == got.communication);
}

TEST_CASE("Wire halves the bytes; Shard gathers the weights in addition, but divides the update") {
  RankStep const narrow = estimate(with(GradientSum::ring_after_backward, true), 4);
  CHECK(narrow.communication.value() == Approx(3.03));
  RankInputs in = with(GradientSum::ring_after_backward, true, true);
  in.update = Seconds(0.08);
  RankStep const sharded = estimate(in, 4);
  CHECK(sharded.communication.value() == Approx(3.03 + 3 + 0.003));  // 3/4 x 40 MB, in FP32
  CHECK(sharded.compute.value() == Approx(0.6 + 0.02));
  in.shards_states = false;
  CHECK(estimate(in, 4).compute.value() == Approx(0.6 + 0.08));
  CHECK(estimate(in, 4).efficiency == Approx(2.48 / (4 * (0.68 + 3.03))));
  // With Exact the same two halves travel.
  CHECK(estimate(with(GradientSum::exact, false, true), 4).communication.value() == Approx(6.009));
}

TEST_CASE(
    "PowerSGD: two sums of the factors after the backward pass; with Shard a gather of weights") {
  RankInputs in = with(GradientSum::ring);
  in.power_sgd = true;
  in.low_rank = Gigabytes(0.002);
  RankStep const got = estimate(in, 4);
  CHECK(got.communication.value() == Approx(0.3 + 2 * 6 * 0.001));  // 2 x 3/4 x 2 MB
  CHECK(got.exposed == got.communication);
  in.shards_states = true;
  CHECK(estimate(in, 4).communication.value() == Approx(0.312 + 3 + 0.003));
}

TEST_CASE("local steps: the weights once in H steps, and a message in each") {
  RankInputs in = with(GradientSum::local_steps);
  in.local_steps = 10;
  RankStep const got = estimate(in, 4);
  CHECK(got.communication.value() == Approx((6 + 6 * 0.001) / 10 + 0.003));
  CHECK(got.exposed == got.communication);
  CHECK(got.efficiency == Approx(2.4 / (4 * (0.6 + 0.6036))));
  in.local_steps = 1;
  CHECK(estimate(in, 4).communication.value() == Approx(6.006 + 0.003));
}

TEST_CASE("one rank exchanges nothing") {
  for (GradientSum const sum :
       {GradientSum::exact, GradientSum::ring, GradientSum::ring_after_backward}) {
    RankStep const got = estimate(with(sum), 1);
    CHECK(got.communication == Seconds(0));
    CHECK(got.exposed == Seconds(0));
    CHECK(got.step().value() == Approx(2.4));
    CHECK(got.efficiency == Approx(1));
  }
}

TEST_CASE(
    "more ranks, more bytes, a slower link and a longer latency never shorten communication") {
  double last = 0;
  for (double ranks = 1; ranks <= 8; ranks *= 2) {
    RankStep const got = estimate(job, ranks);
    CHECK(got.communication.value() >= last);
    last = got.communication.value();
    CHECK(got.exposed <= got.communication);
    CHECK(got.efficiency <= 1);
    for (double const factor : {1.5, 4.0, 100.0}) {
      RankInputs other = job;
      other.link.latency *= factor;
      CHECK(estimate(other, ranks).exposed >= got.exposed);
      other = job;
      other.link.bytes_per_second /= factor;
      CHECK(estimate(other, ranks).exposed >= got.exposed);
      other = job;
      other.gradients = job.gradients * factor;
      CHECK(estimate(other, ranks).exposed >= got.exposed);
      other = job;
      other.micro_batch = job.micro_batch * factor;
      CHECK(estimate(other, ranks).exposed <= got.exposed);
    }
  }
}

TEST_CASE("Exact divides a step into 1, 2, 4 or 8 micro-batches of a rank, Ring into any number") {
  RankInputs in = with(GradientSum::exact);
  in.micro_batches = 12;
  CHECK(can_share(in, 1));
  CHECK(can_share(in, 3));
  CHECK(can_share(in, 12));
  CHECK_FALSE(can_share(in, 2));
  CHECK_FALSE(can_share(in, 8));
  CHECK_FALSE(can_share(in, 24));
  in.sum = GradientSum::ring;
  CHECK(can_share(in, 2));
  CHECK_FALSE(can_share(in, 8));
  CHECK_THROWS_WITH_AS(estimate(in, 8), doctest::Contains("a divisor of the micro-batches"),
                       frugal::SettingsError);
}

TEST_CASE("an input out of range is an error") {
  double const nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  auto const refused = [](auto change, double value) {
    RankInputs in = job;
    change(in, value);
    CHECK_THROWS_AS(estimate(in, 2), frugal::SettingsError);
  };
  for (double const value : {-1.0, nan, infinite}) {
    refused([](RankInputs& in, double x) { in.micro_batch = Seconds(x); }, value);
    refused([](RankInputs& in, double x) { in.micro_batches = x; }, value);
    refused([](RankInputs& in, double x) { in.update = Seconds(x); }, value);
    refused([](RankInputs& in, double x) { in.gradients = Gigabytes(x); }, value);
    refused([](RankInputs& in, double x) { in.link.latency = x; }, value);
    refused([](RankInputs& in, double x) { in.link.bytes_per_second = x; }, value);
    refused([](RankInputs& in, double x) { in.bucket = Gigabytes(x); }, value);
    refused([](RankInputs& in, double x) { in.last_bucket = Gigabytes(x); }, value);
    refused([](RankInputs& in, double x) { in.steps = x; }, value);
    refused([](RankInputs& in, double x) { in.price = Price(PricePerDevice(x), 1); }, value);
    refused([](RankInputs& in, double x) { in.runs = x; }, value);
    refused([](RankInputs& in, double x) { in.most = x; }, value);
  }
  refused([](RankInputs& in, double x) { in.micro_batch = Seconds(x); }, 0);
  refused([](RankInputs& in, double x) { in.micro_batches = x; }, 2.5);
  refused([](RankInputs& in, double x) { in.link.bytes_per_second = x; }, 0);
  refused([](RankInputs& in, double x) { in.bucket = Gigabytes(x); }, 0);
  refused([](RankInputs& in, double x) { in.last_bucket = Gigabytes(x); }, 0.041);
  refused([](RankInputs& in, double x) { in.steps = x; }, 0);
  refused([](RankInputs& in, double x) { in.runs = x; }, 0);
  refused([](RankInputs& in, double x) { in.most = x; }, 1e6);
  CHECK_THROWS_WITH_AS(estimate(with(GradientSum::exact, true), 2),
                       doctest::Contains("only Replicate<Ring> takes a Wire"),
                       frugal::SettingsError);
  CHECK_THROWS_AS(estimate(with(GradientSum::local_steps, true), 2), frugal::SettingsError);
  CHECK_THROWS_WITH_AS(estimate(with(GradientSum::local_steps, false, true), 2),
                       doctest::Contains("takes no Shard"), frugal::SettingsError);
  refused([](RankInputs& in, double x) { in.local_steps = x; }, 0);
  refused([](RankInputs& in, double x) { in.low_rank = Gigabytes(x); }, -1);
  RankInputs both = with(GradientSum::ring, true);
  both.power_sgd = true;
  both.low_rank = Gigabytes(0.001);
  CHECK_THROWS_WITH_AS(estimate(both, 2), doctest::Contains("there is one Wire"),
                       frugal::SettingsError);
  both.bf16 = false;
  both.low_rank = Gigabytes(0);
  CHECK_THROWS_AS(estimate(both, 2), frugal::SettingsError);
  CHECK_THROWS_AS(estimate(job, 0), frugal::SettingsError);
}

}  // namespace frugal_test::plan_rank_step
