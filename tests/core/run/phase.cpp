// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/nn/modules/linear.h>

#include <frugal/core/run/gauges.hpp>
#include <frugal/core/run/phase.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/error.hpp>

#include <limits>
#include <string>

namespace frugal_test::run_phase {

namespace fr = frugal;

struct Subject {
  torch::nn::Linear layer{2, 2};
  fr::Settings settings{};
  fr::RunState run{.root = *layer, .settings = settings};
  fr::CheckpointPhase phase{run};
};

TEST_CASE("a gauge with a name that a line of the log has already is refused, and sets nothing") {
  Subject subject;
  for (std::string const name : {"step", "epoch", "loss", "seconds", "lr/head", ""}) {
    CAPTURE(name);
    try {
      subject.phase.set_gauge(name, 99);
      FAIL("no error came");
    } catch (fr::SettingsError const& error) {
      CHECK(std::string(error.what()).find("a gauge is called '" + name + "'") !=
            std::string::npos);
    }
  }
  CHECK(subject.phase.gauges().items().empty());
  subject.phase.set_gauge("step_dollars", 1);
  CHECK(subject.phase.gauges().find("step_dollars") == 1);
}

TEST_CASE(
    "a scale of the learning rate is finite and 0 or more, and a refused one changes nothing") {
  Subject subject;
  subject.phase.set_learning_rate_scale(0.5);
  for (double const scale :
       {-1.0, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(scale);
    CHECK_THROWS_AS(subject.phase.set_learning_rate_scale(scale), fr::SettingsError);
    CHECK(subject.phase.learning_rate_scale() == 0.5);
  }
  subject.phase.set_learning_rate_scale(0);
  CHECK(subject.phase.learning_rate_scale() == 0);
}

TEST_CASE("module_as gives the module as its own class, and names both classes otherwise") {
  Subject subject;
  CHECK(&subject.phase.module_as<torch::nn::LinearImpl>() == subject.layer.get());
  try {
    static_cast<void>(subject.phase.module_as<torch::nn::BilinearImpl>());
    FAIL("no error came");
  } catch (fr::ModuleError const& error) {
    std::string const text = error.what();
    CHECK(text.find("BilinearImpl") != std::string::npos);
    CHECK(text.find("it is torch::nn::LinearImpl") != std::string::npos);
  }
}

}  // namespace frugal_test::run_phase
