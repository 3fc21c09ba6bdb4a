// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/policy/precision/hardware.hpp>

#include <string>

namespace frugal_test::policy_precision_hardware {

using frugal::detail::Capability;

TEST_CASE("a GPU without BF16 is refused, and the error names FP16") {
  CHECK_NOTHROW(frugal::detail::require_bf16(std::nullopt));
  CHECK_NOTHROW(frugal::detail::require_bf16(Capability{8, 0}));
  CHECK_NOTHROW(frugal::detail::require_bf16(Capability{9, 0}));
  try {
    frugal::detail::require_bf16(Capability{7, 5});
    FAIL("it was taken");
  } catch (frugal::SettingsError const& error) {
    std::string const text = error.what();
    CHECK(text.find("7.5") != std::string::npos);
    CHECK(text.find("Precision<FP16>") != std::string::npos);
  }
}

TEST_CASE("a GPU that multiplies FP16 no faster gets a recommendation") {
  CHECK(frugal::detail::fp16_caution(std::nullopt).empty());
  CHECK(frugal::detail::fp16_caution(Capability{7, 0}).empty());
  CHECK_FALSE(frugal::detail::fp16_caution(Capability{6, 1}).empty());
}

TEST_CASE("a feature of the CPU is found as a whole word") {
  CHECK_FALSE(frugal::detail::cpu_has_any({"frugal_no_such_feature"}));
  CHECK(frugal::detail::cpu_has_any({"frugal_no_such_feature", "fpu", "fp"}));
  CHECK_FALSE(frugal::detail::cpu_has_any({"fp_"}));
}

TEST_CASE("a device that is not a GPU has no capability") {
  CHECK_FALSE(frugal::detail::capability_of(c10::Device(c10::kCPU)).has_value());
}

}  // namespace frugal_test::policy_precision_hardware
