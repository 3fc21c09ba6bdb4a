// SPDX-License-Identifier: Apache-2.0
// Only the CPU is available here; tests/device has another device, and copies to it.
#include "data/sources.hpp"
#include "support/running.hpp"

#include <doctest/doctest.h>

#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/device_prefetch.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

namespace frugal_test::policy_device_placed {

using namespace frugal_test::data_sources;

TEST_CASE("on the CPU the batches are the source's own, read one at a time") {
  frugal::TensorDataset source(numbered(20), {.batch = 4, .shuffle = true});
  frugal::TensorDataset same_source(numbered(20), {.batch = 4, .shuffle = true});
  frugal::CopiedAhead placed(source, 2);
  c10::Device const device(c10::kCPU);
  placed.follow(device);
  CHECK(placed.samples() == 20);
  CHECK(placed.batches() == 5);
  for (std::uint64_t const position : {0U, 8U, 16U}) {
    frugal::Cursor const cursor{.seed = 3, .epoch = 1, .position = position};
    CHECK(same(epoch_of(placed, cursor), epoch_of(same_source, cursor)));
  }
  placed.seek({});
  auto const first = placed.next();
  CHECK(source.next()->target.size(0) == 4);
  CHECK(rest(placed).size() == 3);  // one batch was read past it
}

TEST_CASE("on the CPU CopiedAhead adds no operator to a batch") {
  frugal::TensorDataset source(numbered(20), {.batch = 4, .shuffle = true});
  frugal::CopiedAhead placed(source, 2);
  c10::Device const device(c10::kCPU);
  placed.follow(device);
  placed.seek({});
  source.seek({});
  auto const bare = support::operators_of([&] { source.next(); });
  CHECK(support::operators_of([&] { placed.next(); }) == bare);
}

}  // namespace frugal_test::policy_device_placed

namespace frugal_test::policy_device {

using namespace frugal_test::support;
using frugal::DevicePrefetch;

frugal::Report fit(frugal::DeviceSpec device, auto const&... policies) {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{},
                          frugal::Settings{.device = device}, frugal::Optimize<frugal::AdamW>{},
                          policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  return trainer.fit(train);
}

/// The Fault of the error that a fit throws.
frugal::Fault fault_of(auto&& body) {
  try {
    body();
  } catch (frugal::DeviceError const& error) {
    return error.fault();
  }
  FAIL("no DeviceError");
  return {};
}

TEST_CASE("an unavailable device is an error that lists the available ones") {
  for (bool const ahead : {false, true}) {
    auto const fault = fault_of([&] {
      if (ahead) {
        fit("cuda:100", DevicePrefetch<>{});
      } else {
        fit("cuda:100");
      }
    });
    CHECK(fault.what == "there is no device cuda:100");
    CHECK(fault.where == "Settings::device");
    CHECK(fault.why.find("this process has cpu") == 0);
  }
}

TEST_CASE("a module keeps its device and its values when the fit's device is not available") {
  auto const module = std::make_shared<Mlp>();
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.device = c10::Device(c10::kXPU, 7)},
                          frugal::Optimize<frugal::AdamW>{}};
  frugal::TensorDataset train(samples(8), {.batch = 4});
  CHECK_THROWS_AS(trainer.fit(train), frugal::DeviceError);
  CHECK(same_bits(tensors_of(*module), before));
}

TEST_CASE("on the CPU Device does nothing, and reports that") {
  auto const report = fit("cpu", DevicePrefetch<>{});
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("nothing to copy") != std::string::npos);
  CHECK(report.train_loss == fit(c10::kCPU).train_loss);
}

}  // namespace frugal_test::policy_device
