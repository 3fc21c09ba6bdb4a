// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/loop/measure.hpp>

#include "stand_ins.hpp"

#include <vector>

namespace frugal_test::loop_measure {

using namespace frugal_test::loop;

/// What a measurement asks of a run.
struct SmallRun {
  Net module{};
  Settings settings{.seed = 5};
  c10::Device device = c10::kCPU;
  Counters counters{.epoch = 3};
};

TEST_CASE("a source is read in its order of epoch 0, in evaluation mode and without gradients") {
  SmallRun run;
  Stream source{.batches = batches_of_sizes({3, 2})};
  bool always = true;
  auto const forward = [&](Batch const& batch) {
    always = always && !at::GradMode::is_enabled() && !run.module.is_training();
    auto const samples = static_cast<double>(batch.data.size(0));
    return Loss{.value = at::full({}, samples), .weight = samples};
  };
  CHECK(frugal::detail::measure<list<>>(source, run, forward)["loss"] == (9.0 + 4.0) / 5);
  CHECK(always);
  CHECK(run.module.is_training());
  CHECK((source.sought == std::vector<Cursor>{{5, 0, 0}}));
}

TEST_CASE("a source without a batch is an error that says which, and in which epoch") {
  SmallRun run;
  Stream empty;
  auto const forward = [](Batch const&) { return Loss{}; };
  auto const error = thrown_by<EmptySourceError>(
      [&] { frugal::detail::measure<list<>>(empty, run, forward, "validation 'shifted'"); });
  REQUIRE(error);
  CHECK(says(error->what(), "the validation 'shifted' source has no batch (epoch 3)"));
}

}  // namespace frugal_test::loop_measure
