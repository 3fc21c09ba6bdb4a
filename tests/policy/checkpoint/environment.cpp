// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/nn/modules/linear.h>

#include <frugal/policy/checkpoint/environment.hpp>

#include <string>

namespace frugal_test::checkpoint_circumstances {

using frugal::detail::compare_environments;
using frugal::detail::Environment;
using frugal::detail::environment_of;

struct Fixture {
  torch::nn::Linear module{2, 1};
  frugal::Settings settings{};
  frugal::RunState run{.root = *module, .settings = settings};
};

TEST_CASE("the number of threads, and an epoch's length if known, are recorded") {
  Fixture the;
  Environment const unknown = environment_of(the.run);
  CHECK(unknown.at("threads") == static_cast<std::uint64_t>(at::get_num_threads()));
  CHECK(unknown.at("interop_threads") == static_cast<std::uint64_t>(at::get_num_interop_threads()));
  CHECK_FALSE(unknown.contains("steps_per_epoch"));
  the.run.progress = frugal::RunProgress(frugal::RunLimits{.steps_per_epoch = 11});
  CHECK(environment_of(the.run).at("steps_per_epoch") == 11);
}

TEST_CASE("equal or unknown values are not reported") {
  Fixture the;
  the.run.progress = frugal::RunProgress(frugal::RunLimits{.steps_per_epoch = 11});
  compare_environments(the.run, environment_of(the.run));
  compare_environments(the.run, {});
  the.run.progress = {};
  compare_environments(the.run, {{"steps_per_epoch", 9}});
  CHECK(the.run.observed.warnings().empty());
}

TEST_CASE("each difference is reported, with both numbers") {
  Fixture the;
  the.run.progress = frugal::RunProgress(frugal::RunLimits{.steps_per_epoch = 11});
  Environment saved = environment_of(the.run);
  for (auto& [name, value] : saved) ++value;
  compare_environments(the.run, saved);
  REQUIRE(the.run.observed.warnings().size() == 3);
  std::string const threads = std::to_string(at::get_num_threads());
  CHECK(the.run.observed.warnings()[0].find(" threads and continues with " + threads) !=
        std::string::npos);
  CHECK(the.run.observed.warnings()[1].find("threads between operators") != std::string::npos);
  CHECK(the.run.observed.warnings()[2].find("12 steps in an epoch and continues with 11") !=
        std::string::npos);
}

}  // namespace frugal_test::checkpoint_circumstances
