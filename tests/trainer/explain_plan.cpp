// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <frugal/explain_plan.hpp>
#include <frugal/frugal.hpp>

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

TEST_CASE("the interval between checkpoints is Daly's") {
  auto trainer = make();
  // Young: sqrt(2 x 60 s x 6 h) = 1610 s; Daly's is shorter by nearly the save: 1570 s.
  std::string const text =
      explained(trainer, batch(), {.save_seconds = 60, .lifetime_seconds = 21600});
  CAPTURE(text);
  CHECK(text.find("checkpoint interval: 26m10s (a save of 1m00s, a machine that lives 6h00m)") !=
        std::string::npos);
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
  CHECK(out.str().empty());
}

TEST_CASE("an empty source is refused") {
  auto trainer = make();
  std::vector<fr::Batch> const none;
  std::ostringstream out;
  CHECK_THROWS_AS(fr::explain(trainer, none, {}, out), fr::DataError);
}

}  // namespace frugal_test::trainer_explain_plan
