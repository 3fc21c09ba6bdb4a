// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/nn/modules/linear.h>

#include <frugal/policy/checkpoint/circumstances.hpp>

#include <string>

namespace frugal_test::checkpoint_circumstances {

using frugal::detail::Circumstances;
using frugal::detail::circumstances_of;
using frugal::detail::compare_circumstances;

struct Fixture {
  torch::nn::Linear module{2, 1};
  frugal::Settings settings{};
  frugal::AnyRun run{.root = *module, .settings = settings};
};

TEST_CASE("the number of threads, and an epoch's length if known, are recorded") {
  Fixture the;
  Circumstances const unknown = circumstances_of(the.run);
  CHECK(unknown.at("threads") == static_cast<std::uint64_t>(at::get_num_threads()));
  CHECK(unknown.at("interop_threads") == static_cast<std::uint64_t>(at::get_num_interop_threads()));
  CHECK_FALSE(unknown.contains("steps_per_epoch"));
  the.run.horizon.steps_per_epoch = 11;
  CHECK(circumstances_of(the.run).at("steps_per_epoch") == 11);
}

TEST_CASE("equal or unknown values are not reported") {
  Fixture the;
  the.run.horizon.steps_per_epoch = 11;
  compare_circumstances(the.run, circumstances_of(the.run));
  compare_circumstances(the.run, {});
  the.run.horizon.steps_per_epoch.reset();
  compare_circumstances(the.run, {{"steps_per_epoch", 9}});
  CHECK(the.run.advice.empty());
}

TEST_CASE("each difference is reported, with both numbers") {
  Fixture the;
  the.run.horizon.steps_per_epoch = 11;
  Circumstances saved = circumstances_of(the.run);
  for (auto& [name, value] : saved) ++value;
  compare_circumstances(the.run, saved);
  REQUIRE(the.run.advice.size() == 3);
  std::string const threads = std::to_string(at::get_num_threads());
  CHECK(the.run.advice[0].find(" threads and continues with " + threads) != std::string::npos);
  CHECK(the.run.advice[1].find("threads between operators") != std::string::npos);
  CHECK(the.run.advice[2].find("12 steps in an epoch and continues with 11") != std::string::npos);
}

}  // namespace frugal_test::checkpoint_circumstances
