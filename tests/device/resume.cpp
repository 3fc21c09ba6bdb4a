// SPDX-License-Identifier: Apache-2.0
// A run resumed on its device, on another device of its kind, and on one of another kind.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/fake_device.hpp"
#include "support/files.hpp"

namespace frugal_test::device_resume {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;

/// A run that dies on one device and resumes on the other, compared with an uninterrupted run on
/// the first.
template <class... Ps>
void goes_on(c10::Device from, c10::Device to, double dropout, Ps const&... policies) {
  TemporaryFolder const folder;
  Mlp::Shape const shape{.dropout = dropout, .norm = true};
  Job job{.folder = folder / "whole", .shape = shape, .device = from};
  Outcome const whole = run(job, policies...);
  job.folder = folder / "stopped";
  job.dies_at = 9;
  CHECK(run(job, policies...).died);
  job.dies_at = 0;
  job.device = to;
  Outcome const rest = run(job, policies...);
  REQUIRE(rest.report.resumed);
  CHECK(rest.report.resumed->step != 0);
  CHECK(same_bits(rest.tensors, whole.tensors));
  CHECK(rest.report.train_loss == whole.report.train_loss);
  bool told = false;
  for (auto const& line : rest.report.warnings) {
    told = told ||
           line.find("the checkpoint was saved on " + frugal::detail::kind_of_device(from)) == 0;
  }
  CHECK(told == (from.type() != to.type()));
  CHECK(fake::complaints().empty());
}

template <class... Ps>
void goes_on_everywhere(Ps const&... policies) {
  c10::Device const first(fake::type);  // in either spelling
  goes_on(first, first, 0.3, policies...);
  goes_on(first, fake::device(0), 0.3, policies...);
  goes_on(fake::device(0), fake::device(1), 0.3, policies...);
}

TEST_CASE("AdamW, windows, clipping and an average resume on another device, and on the CPU") {
  auto const on = [](auto const&... where) {
    (where(frugal::Optimize<frugal::AdamW>{}, frugal::Accumulate<2>{}, frugal::ClipValue<0.1>{},
           frugal::Average<frugal::Ema<0.9>>{}, frugal::Checkpoint<Every<3>>{}),
     ...);
  };
  // The fake device computes the CPU's bits, and draws other random numbers.
  on([](auto const&... policies) { goes_on_everywhere(policies...); },
     [](auto const&... policies) { goes_on(c10::kCPU, fake::device(0), 0, policies...); },
     [](auto const&... policies) { goes_on(fake::device(1), c10::kCPU, 0, policies...); });
}

TEST_CASE("SGD in FP16 with Device and a writing thread resumes on another device") {
  goes_on_everywhere(frugal::Optimize<frugal::SGD>{.momentum = 0.9},
                     frugal::Precision<frugal::FP16>{}, frugal::DevicePrefetch<>{},
                     frugal::ClipNorm<0.5>{},
                     frugal::Average<frugal::Swa<frugal::From<4>, Every<3>>>{},
                     frugal::Checkpoint<Every<3>, frugal::Async>{});
}

TEST_CASE("a device without an index is the device of the tensors") {
  using frugal::detail::with_index;
  CHECK(with_index(c10::Device(fake::type)) == fake::device());
  CHECK(with_index(fake::device(1)) == fake::device(1));
  CHECK(with_index(c10::kCPU) == c10::Device(c10::kCPU));
  CHECK_FALSE(with_index(c10::Device(c10::kXPU)).has_index());  // which is not available
}

}  // namespace frugal_test::device_resume
