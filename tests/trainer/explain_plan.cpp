// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <frugal/explain_plan.hpp>
#include <frugal/frugal.hpp>

#include <limits>
#include <sstream>
#include <string>

namespace frugal_test::trainer_explain_plan {

namespace fr = frugal;

template <class Trainer, class Data>
std::string explained(Trainer& trainer, Data&& data, fr::PlanInputs const& given = {}) {
  std::ostringstream plain, out;
  fr::explain(trainer, plain);
  fr::explain(trainer, data, given, out);
  // It begins with what explain(trainer) prints.
  REQUIRE(out.str().substr(0, plain.str().size()) == plain.str());
  return out.str().substr(plain.str().size());
}

auto make(fr::Settings const& settings = {.epochs = 2}) {
  return fr::Trainer{torch::nn::Linear(8, 3), fr::CrossEntropy{}, settings,
                     fr::Optimize<fr::AdamW>{}};
}
fr::Batch batch() { return {at::zeros({4, 8}), at::zeros({4}, at::kLong)}; }

TEST_CASE("a batch gives the memory: weights, gradients and moments as counted by hand") {
  auto trainer = make();
  std::string const text = explained(trainer, batch());
  CAPTURE(text);
  CHECK(text.find("memory: ") == 0);
  CHECK(text.find("108 B weights and buffers, 108 B gradients, 216 B optimizer") !=
        std::string::npos);
  CHECK(text.find("160 B batch") != std::string::npos);
  CHECK(text.find("cost") == std::string::npos);
}

TEST_CASE("a source, a price and the time of a step give time and cost") {
  auto trainer = make();
  fr::Resident train(at::zeros({400, 8}), at::zeros({400}, at::kLong), {.batch = 4});
  // 100 steps an epoch, 2 epochs, 36 s each: 2 h, for $3.50 on each of 4 devices.
  std::string const text = explained(
      trainer, train, {.price = fr::plan::PricePerDevice(3.5), .devices = 4, .step_seconds = 36});
  CAPTURE(text);
  CHECK(text.find("time: 2h00m (200 steps of 36 s)\n") != std::string::npos);
  CHECK(text.find("cost: $14.00 an hour for 4 devices, $28.00 for the run\n") != std::string::npos);
}

TEST_CASE("without a price of its own it takes that of CostMeter, of a node or of devices") {
  fr::Resident train(at::zeros({400, 8}), at::zeros({400}, at::kLong), {.batch = 4});
  auto const text_of = [&](fr::CostMeter const& meter, fr::PlanInputs const& given) {
    fr::Trainer trainer{torch::nn::Linear(8, 3), fr::CrossEntropy{}, fr::Settings{.epochs = 2},
                        fr::Optimize<fr::AdamW>{}, meter};
    return explained(trainer, train, given);
  };
  fr::CostMeter meter{.price = fr::plan::PricePerNode(14), .devices = 4};
  std::string text = text_of(meter, {.step_seconds = 36});
  CAPTURE(text);
  CHECK(text.find("cost: $14.00 an hour for 4 devices, $28.00 for the run\n") != std::string::npos);
  meter.price = fr::plan::PricePerDevice(3);
  CHECK(text_of(meter, {}).find("cost: $12.00 an hour for 4 devices\n") != std::string::npos);
  CHECK(text_of(meter, {.price = fr::plan::PricePerDevice(1)}).find("cost: $1.00 an hour\n") !=
        std::string::npos);
  meter.currency = "EUR";
  CHECK(text_of(meter, {}).find("cost") == std::string::npos);
}

TEST_CASE("the interval between checkpoints is Daly's") {
  auto trainer = make();
  // Young: sqrt(2 x 60 s x 6 h) = 1610 s; Daly's is shorter by nearly the save: 1570 s.
  std::string const text =
      explained(trainer, batch(), {.save_seconds = 60, .lifetime_seconds = 21600});
  CAPTURE(text);
  CHECK(text.find("checkpoint interval: 26m10s (a save of 1m00s, a machine that lives 6h00m)") !=
        std::string::npos);
}

TEST_CASE("the expected cost on spot is that of the plan") {
  auto trainer = make({.steps = 7200});
  fr::PlanInputs given{.price = fr::plan::PricePerDevice(4),
                       .devices = 8,
                       .step_seconds = 36,
                       .save_seconds = 30,
                       .lifetime_seconds = 36000,
                       .spot = fr::plan::PricePerDevice(1.6)};
  fr::plan::SpotEstimate const plan = fr::plan::estimate({.hours = 72,
                                                          .devices = 8,
                                                          .on_demand = fr::plan::PricePerDevice(4),
                                                          .spot = fr::plan::PricePerDevice(1.6),
                                                          .preemptions_per_hour = 0.1,
                                                          .save = fr::plan::Seconds(30),
                                                          .restart = fr::plan::Seconds(300)});
  std::string text = explained(trainer, batch(), given);
  CAPTURE(text);
  CHECK(text.find("spot: " + fr::detail::dollars_text(plan.cost.value()) +
                  " expected for the run, in 3d") != std::string::npos);
  CHECK(text.find("% less than on demand\n") != std::string::npos);
  given.spot = fr::plan::PricePerDevice(4);
  text = explained(trainer, batch(), given);
  CHECK(text.find("% more than on demand\n") != std::string::npos);
  given.lifetime_seconds = 0.01;
  text = explained(trainer, batch(), given);
  CHECK(text.find("spot: machines live too short for this run to end\n") != std::string::npos);
}

TEST_CASE("without a time the cost is that of an hour") {
  auto trainer = make({.steps = 10});
  CHECK(explained(trainer, batch(), {.price = fr::plan::PricePerDevice(2)})
            .find("cost: $2.00 an hour\n") != std::string::npos);
}

TEST_CASE("a circumstance that is not above 0 is refused") {
  auto trainer = make();
  std::ostringstream out;
  auto const refused = [&](fr::PlanInputs const& given) {
    CHECK_THROWS_AS(fr::explain(trainer, batch(), given, out), fr::SettingsError);
  };
  refused({.price = fr::plan::PricePerDevice(-1)});
  refused({.devices = 0});
  refused({.step_seconds = 0});
  refused({.save_seconds = -1});
  refused({.lifetime_seconds = 0});
  refused({.spot = fr::plan::PricePerDevice(-1)});
  refused({.restart_seconds = 0});
  refused({.price = fr::plan::PricePerDevice(std::numeric_limits<double>::infinity())});
  CHECK(out.str().empty());
}

TEST_CASE("an empty source is refused") {
  auto trainer = make();
  std::vector<fr::Batch> const none;
  std::ostringstream out;
  CHECK_THROWS_AS(fr::explain(trainer, none, {}, out), fr::DataError);
}

}  // namespace frugal_test::trainer_explain_plan
