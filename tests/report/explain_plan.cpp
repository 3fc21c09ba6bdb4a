// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/explain_plan.hpp>
#include <frugal/report/plan/tables.hpp>

#include "support/files.hpp"

#include <filesystem>
#include <fstream>
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
  fr::TensorDataset train(at::zeros({400, 8}), at::zeros({400}, at::kLong), {.batch = 4});
  // 100 steps an epoch, 2 epochs, 36 s each: 2 h, for $3.50 on each of 4 devices.
  std::string const text = explained(
      trainer, train, {.price = fr::plan::PricePerDevice(3.5), .devices = 4, .step_seconds = 36});
  CAPTURE(text);
  CHECK(text.find("time: 2h00m (200 steps of 36 s)\n") != std::string::npos);
  CHECK(text.find("cost: $14.00 an hour for 4 devices, $28.00 for the run\n") != std::string::npos);
}

TEST_CASE("without a price of its own it takes that of CostMeter, of a node or of devices") {
  fr::TensorDataset train(at::zeros({400, 8}), at::zeros({400}, at::kLong), {.batch = 4});
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
  CHECK(text_of(meter, {.price = fr::plan::PricePerDevice(1)})
            .find("cost: $4.00 an hour for 4 devices\n") != std::string::npos);
  meter.currency = "EUR";
  CHECK(text_of(meter, {}).find("cost") == std::string::npos);
}

TEST_CASE("a node costs the same whatever part of it trains, and a part of a node costs the node") {
  auto const text_of = [](fr::CostMeter const& meter, fr::PlanInputs const& given) {
    fr::Trainer trainer{torch::nn::Linear(8, 3), fr::CrossEntropy{}, fr::Settings{.steps = 200},
                        fr::Optimize<fr::AdamW>{}, meter};
    return explained(trainer, batch(), given);
  };
  std::string const node =
      text_of({.price = fr::plan::PricePerNode(32)}, {.devices = 8, .step_seconds = 36});
  CAPTURE(node);
  CHECK(node.find("cost: $32.00 an hour for 8 devices, $64.00 for the run\n") != std::string::npos);
  for (std::string const& part : {text_of({.devices = 4, .offer = "p4d.24xlarge"}, {}),
                                  text_of({.offer = "p4d.24xlarge"}, {.devices = 4})}) {
    CAPTURE(part);
    CHECK(part.find("cost: $32.77 an hour for 4 devices of the 8 that are billed\n") !=
          std::string::npos);
  }
}

/// What plan::plan_of prints for the same numbers.
template <class In>
std::string printed(In const& in) {
  std::ostringstream out;
  out << fr::plan::plan_of(in);
  return out.str();
}
bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("intervals between checkpoints are Young's and Daly's, with what interruptions cost") {
  auto trainer = make({.steps = 200});
  // Young: sqrt(2 x 60 s x 6 h) = 1610 s; Daly's is shorter by nearly the save: 1570 s.
  std::string const text = explained(
      trainer, batch(), {.step_seconds = 36, .save_seconds = 60, .lifetime_seconds = 21600});
  CAPTURE(text);
  CHECK(has(text, "save time       60.0 s"));
  CHECK(has(text, "young interval  1610 s"));
  CHECK(has(text, "daly interval   1570 s"));
  CHECK(has(text, "overhead"));
  CHECK(has(text, "lost hours"));
}

TEST_CASE("without the time of a save it is the checkpoint's bytes by the disk") {
  auto trainer = make();
  std::string const text = explained(  // 324 B: 108 B of weights, 216 B of moments
      trainer, batch(), {.lifetime_seconds = 21600, .disk = fr::plan::GigabytesPerSecond(1e-8)});
  CAPTURE(text);
  CHECK(has(text, "save time       32.4 s  324 B to the disk"));
}

TEST_CASE("the expected cost on spot is that of the plan, with its break-even") {
  auto trainer = make({.steps = 7200});
  fr::PlanInputs given{.price = fr::plan::PricePerDevice(4),
                       .devices = 8,
                       .step_seconds = 36,
                       .save_seconds = 30,
                       .lifetime_seconds = 36000,
                       .spot = fr::plan::PricePerDevice(1.6)};
  fr::plan::SpotInputs same{.hours = 72,
                            .devices = 8,
                            .on_demand = fr::plan::PricePerDevice(4),
                            .spot = fr::plan::PricePerDevice(1.6),
                            .preemptions_per_hour = 0.1,
                            .save = fr::plan::Seconds(30),
                            .restart = fr::plan::Seconds(300)};
  std::string text = explained(trainer, batch(), given);
  CAPTURE(text);
  CHECK(has(text, "time: 3d00h (7200 steps of 36 s)\n"));
  CHECK(has(text, printed(same)));
  CHECK(has(text, "break even rate"));
  given.spot = fr::plan::PricePerDevice(4);
  text = explained(trainer, batch(), given);
  CHECK(has(text, "On demand is cheaper at this rate."));
  given.lifetime_seconds = 0.01;
  text = explained(trainer, batch(), given);
  CHECK(has(text, "the run never ends"));
}

TEST_CASE("other costs are shared out, and shown in the hour") {
  auto trainer = make({.steps = 7200});
  std::string const text = explained(trainer, batch(),
                                     {.price = fr::plan::PricePerDevice(4),
                                      .devices = 8,
                                      .step_seconds = 36,
                                      .other_per_hour = 2});
  CAPTURE(text);
  CHECK(has(text, "cost: $34.00 an hour for 8 devices, $2,448.00 for the run\n"));
}

TEST_CASE("a bandwidth adds the all-reduce of the gradients, and its time to each step") {
  auto trainer = make({.steps = 7200});
  // 27 gradients of 4 bytes: 2 x 3/4 x 108 B at 1e-9 GB/s are 162 s.
  fr::PlanInputs given{
      .devices = 4, .step_seconds = 36, .link = fr::plan::GigabytesPerSecond(1e-9)};
  std::string text = explained(trainer, batch(), given);
  CAPTURE(text);
  CHECK(has(text, "Ring all-reduce\n"));
  CHECK(has(text, "communication time"));
  CHECK(has(text, "time: 16d12h (7200 steps of 36 s, and 162 s of communication)\n"));
  given.gradients = fr::plan::GradientFormat::BF16;
  text = explained(trainer, batch(), given);
  CHECK(has(text, "and 81 s of communication"));
  given.devices = 1;
  CHECK_FALSE(has(explained(trainer, batch(), given), "all-reduce"));
}

TEST_CASE("tokens compare the model with the compute-optimal one") {
  auto trainer = make({.steps = 100});
  // 4 samples of 10 tokens for 100 steps are 4000 tokens for 27 parameters.
  std::string const text = explained(trainer, batch(), {.tokens_per_sample = 10});
  CAPTURE(text);
  CHECK(has(text, "Model and tokens\n"));
  CHECK(has(text, "148.1"));  // tokens per parameter
  CHECK(has(text, "A larger model on fewer tokens"));
}

TEST_CASE("CostMeter on spot gives both prices, and the bill is that of spot") {
  frugal_test::support::TemporaryFolder const folder;
  std::filesystem::path const prices = folder / "prices.json";
  std::ofstream(prices) << R"({"format": "frugal prices", "version": 1, "prices": [
    {"name": "rack", "device": "H100", "devices": 8, "per": "node", "on_demand": 32, "spot": 9.6}]})";
  fr::CostMeter const meter{.devices = 8, .prices = prices, .offer = "rack", .spot = true};
  fr::Trainer trainer{torch::nn::Linear(8, 3), fr::CrossEntropy{}, fr::Settings{.steps = 7200},
                      fr::Optimize<fr::AdamW>{}, meter};
  std::string const text =
      explained(trainer, batch(), {.step_seconds = 36, .lifetime_seconds = 36000});
  CAPTURE(text);
  CHECK(has(text, "cost: $9.60 an hour for 8 devices on spot, $691.20 for the run"));
  CHECK(has(text, "$32.00 an hour on demand"));
  CHECK(has(text, "Spot against on demand\n"));
}

TEST_CASE("without a time the cost is that of an hour") {
  auto trainer = make({.steps = 10});
  CHECK(explained(trainer, batch(), {.price = fr::plan::PricePerDevice(2)})
            .find("cost: $2.00 an hour\n") != std::string::npos);
}

TEST_CASE("a circumstance that is out of range is refused") {
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
  refused({.restart_seconds = -1});
  refused({.disk = fr::plan::GigabytesPerSecond(0)});
  refused({.link = fr::plan::GigabytesPerSecond(-1)});
  refused({.overlap = 1.5});
  refused({.tokens_per_sample = -1});
  refused({.other_per_hour = -1});
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
