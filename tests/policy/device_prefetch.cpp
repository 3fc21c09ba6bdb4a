// SPDX-License-Identifier: Apache-2.0
// Device with only the CPU available; tests/device has another device.
#include <doctest/doctest.h>

#include <frugal/policy/device_prefetch.hpp>
#include <frugal/policy/optimize/fused.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

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
