// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/policy/checkpoint/snapshot.hpp>

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace frugal_test::checkpoint_divided_state {

namespace fr = frugal;
using fr::detail::PartReport;
using Place = fr::PlacedTensor::Place;

fr::TensorPlaces places(bool first) {
  fr::TensorPlaces all;
  all.tensors["0.weight"].place = first ? Place::here : Place::elsewhere;
  all.tensors["1.weight"].place = first ? Place::elsewhere : Place::here;
  return all;
}

/// The State of a process with the layer of this number.
fr::StateDict state(int layer) {
  fr::StateDict all;
  std::string const name = std::to_string(layer) + ".weight";
  all.values["policies/Optimize/" + name + "/step"] = 3.0 + layer;
  all.values["policies/Optimize/" + name + "/exp_avg"] = std::string("tensor");
  all.tensors["policies/Optimize/" + name + "/exp_avg"] = at::full({2}, layer);
  all.values["policies/EarlyStop/since"] = std::int64_t{4};
  all.values["policies/EarlyStop/best"] = std::numeric_limits<double>::quiet_NaN();
  all.values["policies/Meter/seconds"] = 0.5 * layer;
  all.values["run/epoch_loss"] = 1.0 * layer;
  all.values["generators/cpu"] = std::string("tensor");
  all.tensors["generators/cpu"] = at::arange(5 + layer);
  return all;
}

std::vector<std::string> const scopes{"EarlyStop", "Optimize"};

/// As it arrives: by way of its text.
std::vector<PartReport> reports_of(fr::StateDict other) {
  PartReport report;
  fr::detail::report_own_state(other, places(false), scopes, report);
  CHECK(other.tensors.size() == 1);  // those that its files have
  return {PartReport{}, PartReport::parse(report.text(), 1)};
}

TEST_CASE(
    "the first process gets the values of the others' layers, and keeps its own of the rest") {
  fr::StateDict run = state(0);
  auto const tensors = fr::detail::join_states(run, places(true), scopes, reports_of(state(1)));
  CHECK((tensors == std::vector<std::string>{"policies/Optimize/1.weight/exp_avg"}));
  CHECK(std::get<double>(run.values.at("policies/Optimize/0.weight/step")) == 3);
  CHECK(std::get<double>(run.values.at("policies/Optimize/1.weight/step")) == 4);
  CHECK(std::get<double>(run.values.at("policies/Meter/seconds")) == 0);
  CHECK(std::get<double>(run.values.at("run/epoch_loss")) == 0);
  CHECK(run.values.size() == state(0).values.size() + 2);
  CHECK(run.tensors.size() == 2);
}

TEST_CASE("what belongs to no layer and differs is refused, with its policy and rank") {
  auto const refused = [](fr::StateDict run, fr::StateDict other) {
    auto const reports = reports_of(std::move(other));
    CHECK_THROWS_WITH_AS(fr::detail::join_states(run, places(true), scopes, reports),
                         doctest::Contains("the State of EarlyStop differs between the processes "
                                           "(rank 1)"),
                         fr::StateError);
  };
  std::string const path = "policies/EarlyStop/since";
  fr::StateDict number = state(1), negative = state(1), tensor = state(1), more = state(1);
  number.values[path] = std::int64_t{5};
  refused(state(0), number);
  negative.values[path] = std::int64_t{-4};
  refused(state(0), negative);
  tensor.values["policies/EarlyStop/sums"] = std::string("tensor");
  tensor.tensors["policies/EarlyStop/sums"] = at::arange(5);
  fr::StateDict first = state(0);
  first.values["policies/EarlyStop/sums"] = std::string("tensor");
  first.tensors["policies/EarlyStop/sums"] = at::arange(5) + 1;
  refused(first, tensor);
  // One that the other one lacks, and the other way round.
  more.values["policies/EarlyStop/more"] = true;
  refused(state(0), more);
  fr::StateDict more_here = state(0);
  more_here.values["policies/EarlyStop/more"] = true;
  refused(more_here, state(1));
}

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

}  // namespace frugal_test::checkpoint_divided_state
