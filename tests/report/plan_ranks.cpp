// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <frugal/frugal.hpp>
#include <frugal/report/plan_ranks.hpp>

#include <optional>
#include <vector>

namespace frugal_test::report_plan_ranks {

namespace fr = frugal;
namespace plan = frugal::plan;
using doctest::Approx;

/// Counts passes, and has a buffer that each changes.
struct Counting : torch::nn::Module {
  Counting() {
    register_module("linear", linear);
    passes = register_buffer("passes", torch::zeros({}));
  }
  at::Tensor forward(at::Tensor const& x) {
    torch::NoGradGuard const no_gradients;
    passes.add_(1);
    ++calls;
    was_training = was_training && is_training();
    torch::AutoGradMode const with_gradients(true);
    return linear(x);
  }
  torch::nn::Linear linear{8, 4};
  at::Tensor passes;
  int calls = 0;
  bool was_training = true;
};

TEST_CASE("a micro-batch is measured and nothing of the module changes; the plan counts the rest") {
  auto const net = std::make_shared<Counting>();
  net->eval();
  fr::Trainer trainer{net, fr::CrossEntropy{},
                      fr::Settings{.steps = 40, .device = c10::Device(c10::kCPU)},
                      fr::Optimize<fr::AdamW>{.lr = 1e-3}, fr::Accumulate<4>{}};
  fr::Batch const batch{torch::randn({16, 8}), torch::randint(0, 4, {16})};
  net->linear->weight.mutable_grad() = torch::ones({4, 8});
  at::Tensor const weight = net->linear->weight.detach().clone();

  double const seconds = fr::measure_micro_batch(trainer, batch, 3);
  CHECK(seconds > 0);
  CHECK(seconds < 10);
  CHECK(net->calls == 4);  // one that is not counted
  CHECK(net->was_training);
  CHECK_FALSE(net->is_training());
  CHECK(net->passes.item<float>() == 0);
  CHECK(net->linear->weight.equal(weight));
  CHECK(net->linear->weight.grad().equal(torch::ones({4, 8})));
  CHECK_FALSE(net->linear->bias.grad().defined());

  // 36 parameters of four bytes; 1 MB/s: 2 x 1/2 x 144 us with two ranks.
  fr::LinkSpeed const link{.bytes_per_second = 1e6};
  plan::RankPlan const known = fr::plan_ranks(
      trainer, batch, link,
      {.micro_batch = plan::Seconds(0.1), .sum = plan::GradientSum::ring_after_backward});
  CHECK(net->calls == 4);
  REQUIRE(known.rows.size() == 3);
  CHECK(known.rows[0].hours == Approx(40 * 0.4 / 3600));
  CHECK(known.rows[1].at.exposed.value() == Approx(144e-6));
  CHECK(known.rows[2].at.compute.value() == Approx(0.1));
  // What is given counts, and a micro-batch is measured.
  plan::RankPlan const other =
      fr::plan_ranks(trainer, batch, link,
                     {.micro_batches = 8, .gradients = plan::Gigabytes(1), .steps = 3, .most = 2});
  CHECK(net->calls == 10);
  REQUIRE(other.rows.size() == 2);
  CHECK(other.rows[0].at.compute.value() == Approx(other.rows[0].hours * 3600 / 3));
  CHECK(other.rows[0].at.compute == 2 * other.rows[1].at.compute);
  CHECK(other.rows[1].at.communication.value() == Approx(1000));

  CHECK_THROWS_AS(fr::measure_micro_batch(trainer, batch, 0), fr::SettingsError);
  CHECK_THROWS_AS(fr::plan_ranks(trainer, batch, {}), fr::SettingsError);
  net->register_parameter("elsewhere", torch::empty({2}, at::kMeta));
  CHECK_THROWS_WITH_AS(fr::measure_micro_batch(trainer, batch),
                       doctest::Contains("the module is on meta"), fr::DeviceError);
}

TEST_CASE("a matrix counts with its factors, and what does not get smaller as it is") {
  auto const bytes = [](at::Tensor const& of) { return fr::detail::LowRank::bytes(of, 4, 2); };
  CHECK(bytes(torch::zeros({100, 50})) == (100 + 50) * 4 * 4);
  CHECK(bytes(torch::zeros({64, 8, 3, 3})) == (64 + 72) * 4 * 4);
  CHECK(bytes(torch::zeros({10, 10})) == 400);  // 320 is no half of it
  CHECK(bytes(torch::zeros({1000})) == 4000);
  CHECK(bytes(torch::zeros({100, 50}, at::kBFloat16)) == 10000);
}

}  // namespace frugal_test::report_plan_ranks
