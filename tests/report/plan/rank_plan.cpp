// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/report/plan/rank_plan.hpp>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

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

namespace frugal_test::plan_rank_plan {

using namespace frugal::plan;
using doctest::Approx;

/// 16 micro-batches of 1 s; 2 (W - 1) / W x 10 MB at 10 MB/s, all of it after the backward pass. 900
/// steps at 2 USD an hour and process.
RankInputs const job{.micro_batch = Seconds(1),
                     .micro_batches = 16,
                     .gradients = Gigabytes(0.010),
                     .link = {.bytes_per_second = 10e6},
                     .sum = GradientSum::ring_after_backward,
                     .steps = 900,
                     .price = Price(PricePerDevice(2), 1)};

RankRow const& row(RankPlan const& plan, double ranks) {
  for (RankRow const& each : plan.rows) {
    if (each.ranks == ranks) return each;
  }
  FAIL("no such row");
  return plan.rows.front();
}

std::string text_of(RankPlan const& plan) {
  std::ostringstream out;
  out << plan;
  return out.str();
}

TEST_CASE("steps, efficiency, hours and dollars, by hand") {
  RankPlan const plan = plan_ranks(job);
  REQUIRE(plan.rows.size() == 5);          // 1, 2, 4, 8, 16
  CHECK(row(plan, 1).hours == Approx(4));  // 900 x 16 s
  CHECK(row(plan, 1).cost->value() == Approx(8));
  CHECK(row(plan, 4).at.step().value() == Approx(5.5));  // 4 s, and 1.5 s
  CHECK(row(plan, 4).at.efficiency == Approx(16 / 22.0));
  CHECK(row(plan, 4).hours == Approx(1.375));
  CHECK(row(plan, 4).cost->value() == Approx(11));  // four processes
  CHECK(row(plan, 16).at.efficiency == Approx(16 / (16 * 2.875)));
}

TEST_CASE("the sections of a plan have the numbers of each row, by its processes") {
  RankInputs two_runs = job;
  two_runs.runs = 2;
  Plan const plan = plan_of(plan_ranks(two_runs));
  CHECK(plan.sections.size() == 6);  // the advice, and 1, 2, 4, 8, 16
  CHECK(plan["ranks"] == 2);
  CHECK(plan["step_4"] == Approx(5.5));
  CHECK(plan["efficiency_4"] == Approx(16 / 22.0));
  CHECK(plan["cost_4"] == Approx(11));
  CHECK(plan["all_runs_2"] == Approx(4));  // side by side on one process each
  CHECK(plan["all_costs_2"] == Approx(16));
  CHECK(plan.sections[5].title == "16 ranks, simulated");
  CHECK(std::isnan(plan_of(plan_ranks(job))["all_runs_2"]));
}

TEST_CASE("80 % goes, 60 % takes a lever, less takes fewer ranks") {
  RankPlan const plan = plan_ranks(job);
  CHECK(row(plan, 2).scaling() == Scaling::good);  // 16 / 18
  CHECK(row(plan, 4).scaling() == Scaling::fair);  // 16 / 22
  CHECK(row(plan, 8).scaling() == Scaling::poor);  // 16 / 30
  CHECK(plan.best().ranks == 2);
  std::string const text = text_of(plan);
  CAPTURE(text);
  CHECK(text.find("88.9 %      2.25 h  $9.00   go\n") != std::string::npos);
  CHECK(text.find("72.7 %      1.38 h  $11.00  take ") != std::string::npos);
  CHECK(text.find("53.3 %      0.94 h  $15.00  fewer ranks, or ") != std::string::npos);
}

TEST_CASE("the first lever that comes to 80 % is taken, or else the one that helps most") {
  // Of 1.5 s: BF16 leaves 0.75 s. The backward pass hides 0.67 s, but not the sum of the one bucket
  // that the 10 MB are.
  RankPlan const plan = plan_ranks(job);
  CHECK(row(plan, 4).lever == "Wire<BF16>");
  CHECK(row(plan, 4).efficiency_with_lever == Approx(16 / 19.0));
  // Buckets of 1 MB: Ring leaves 0.83 s, which is enough, although BF16 leaves 0.75 s.
  RankInputs in = job;
  in.bucket = Gigabytes(0.001);
  CHECK(row(plan_ranks(in), 4).lever == "Replicate<Ring>");
  CHECK(row(plan_ranks(in), 4).efficiency_with_lever == Approx(16 / (4 * (4 + 1.5 - 2 / 3.0))));
  // Eight ranks: BF16 comes to 16 / 23, twice the micro-batches to 32 / 46, factors of 1 MB to 16 / 17.4.
  CHECK(row(plan, 8).lever == "Replicate<LocalSteps<64>>");
  CHECK(row(plan, 8).efficiency_with_lever == Approx(16 / (8 * (2 + 1.75 / 64))));
  in = job;
  in.low_rank = Gigabytes(0.001);
  CHECK(row(plan_ranks(in), 8).lever == "Replicate<LocalSteps<64>>");  // 900 steps are too few
  in.steps = 9000;
  CHECK(row(plan_ranks(in), 8).lever == "Wire<PowerSGD<4>>");
  CHECK(row(plan_ranks(in), 8).efficiency_with_lever == Approx(16 / (8 * 2.175)));
  // Shard takes no local steps; of what is left nothing comes to 80 %.
  in = job;
  in.shards_states = true;
  CHECK(row(plan_ranks(in), 8).lever == "twice the micro-batches");
  // From 80 % on no lever is needed.
  CHECK(row(plan, 2).lever.empty());
  // Latency alone: only fewer exchanges help.
  in = job;
  in.gradients = Gigabytes(0);
  in.link.latency = 0.1;
  CHECK(row(plan_ranks(in), 16).lever == "twice the micro-batches");
  // One rank waits for nothing.
  CHECK(row(plan, 1).lever.empty());
}

TEST_CASE("Exact takes Ring before Wire, and a recipe with all levers more micro-batches") {
  RankInputs in = job;
  in.sum = GradientSum::exact;
  in.bucket = Gigabytes(0.0001);
  in.micro_batch = Seconds(3);
  CHECK(row(plan_ranks(in), 16).lever == "Replicate<Ring>");
  in = job;
  in.sum = GradientSum::ring;
  in.bf16 = true;
  CHECK(row(plan_ranks(in), 8).lever == "twice the micro-batches");
  // 2 + 2 s of computing, half of 1.75 s of waiting
  CHECK(row(plan_ranks(in), 8).efficiency_with_lever == Approx(32 / (8 * 4.875)));
}

TEST_CASE("rows are the numbers of processes that can share a step") {
  RankInputs in = job;
  in.micro_batches = 12;
  auto const ranks = [&] {
    std::vector<double> out;
    for (RankRow const& each : plan_ranks(in).rows) out.push_back(each.ranks);
    return out;
  };
  CHECK(ranks() == std::vector<double>{1, 2, 3, 4, 6, 12});
  in.most = 4;
  CHECK(ranks() == std::vector<double>{1, 2, 3, 4});
  in.most = 64;
  in.sum = GradientSum::exact;
  CHECK(ranks() == std::vector<double>{1, 3, 6, 12});
}

TEST_CASE("more than eight ranks are simulated, and the table says it") {
  RankPlan const plan = plan_ranks(job);
  CHECK_FALSE(row(plan, 8).is_simulated);
  CHECK(row(plan, 16).is_simulated);
  CHECK(text_of(plan).find("\n16*  ") != std::string::npos);
  CHECK(text_of(plan).find("* simulated: the model was compared with measured sums of up to 8 "
                           "ranks.") != std::string::npos);
  RankInputs in = job;
  in.most = 8;
  CHECK(text_of(plan_ranks(in)).find('*') == std::string::npos);
}

TEST_CASE("several runs: parts of the processes side by side, against all for one after another") {
  RankInputs in = job;
  in.runs = 8;
  in.most = 8;
  RankPlan const plan = plan_ranks(in);
  RankRow const& eight = row(plan, 8);
  // One after another 8 x 900 x 3.75 s; at once, on one process each, 4 h.
  CHECK(eight.one_after_another.hours == Approx(7.5));
  CHECK(eight.one_after_another.cost->value() == Approx(120));
  CHECK(eight.side_by_side.at_once == 8);
  CHECK(eight.side_by_side.ranks == 1);
  CHECK(eight.side_by_side.hours == Approx(4));
  CHECK(eight.side_by_side.cost->value() == Approx(64));
  CHECK(row(plan, 1).side_by_side.at_once == 1);
  CHECK(plan.recommendation() ==
        "Take 2 ranks: 88.9 % efficiency, 2.25 h, $9.00. 4 ranks come to 72.7 %, and with "
        "Wire<BF16> to 84.2 %. 8 runs on 8 ranks: 8 at once on 1 rank each take 4.00 h, $64.00, "
        "and one after another 7.50 h, $120.00.");
}

TEST_CASE("processes without a run are paid for until the last run has ended") {
  RankInputs in = job;
  in.runs = 5;
  // Four processes: 4 + 1 runs on one each take 8 h, 2 + 2 + 1 on two each 6.75 h, and one after
  // another 5 x 1.375 h.
  RankRow const four = row(plan_ranks(in), 4);
  CHECK(four.side_by_side.at_once == 2);
  CHECK(four.side_by_side.hours == Approx(6.75));
  CHECK(four.side_by_side.cost->value() == Approx(54));
  // Three runs: 4 h on one process each, where the fourth waits.
  in.runs = 3;
  RankRow const three = row(plan_ranks(in), 4);
  CHECK(three.side_by_side.at_once == 3);
  CHECK(three.side_by_side.ranks == 1);
  CHECK(three.side_by_side.hours == Approx(4));
  CHECK(three.side_by_side.cost->value() == Approx(32));
  CHECK(three.one_after_another.hours == Approx(4.125));
}

TEST_CASE("a price of machines bills whole ones") {
  RankInputs in = job;
  in.price = Price(PricePerNode(8), 4);
  CHECK(row(plan_ranks(in), 1).cost->value() == Approx(32));
  CHECK(row(plan_ranks(in), 4).cost->value() == Approx(11));
  CHECK(row(plan_ranks(in), 8).cost->value() == Approx(15));
  in.price.reset();
  CHECK_FALSE(row(plan_ranks(in), 8).cost);
  CHECK(text_of(plan_ranks(in)).find('$') == std::string::npos);
}

TEST_CASE("a link that carries all within the backward pass takes as many ranks as there are") {
  RankInputs in = job;
  in.link.bytes_per_second = 1e12;
  RankPlan const plan = plan_ranks(in);
  CHECK(plan.best().ranks == 16);
  CHECK(plan.recommendation() == "Take 16 ranks: 100.0 % efficiency, 0.25 h, $8.00, simulated.");
}

TEST_CASE("an update that every process repeats limits the ranks without any link") {
  RankInputs in = job;
  in.link.bytes_per_second = 1e15;
  in.update = Seconds(1);
  CHECK(row(plan_ranks(in), 16).at.efficiency == Approx(17 / 32.0));
  CHECK(row(plan_ranks(in), 16).lever == "twice the micro-batches");
}

TEST_CASE("an input out of range is an error before any row") {
  RankInputs in = job;
  in.link.bytes_per_second = 0;
  CHECK_THROWS_AS(plan_ranks(in), frugal::SettingsError);
  in = job;
  in.micro_batch = Seconds(std::nan(""));
  CHECK_THROWS_AS(plan_ranks(in), frugal::SettingsError);
  in = job;
  in.runs = 1.5;
  CHECK_THROWS_AS(plan_ranks(in), frugal::SettingsError);
}

}  // namespace frugal_test::plan_rank_plan
