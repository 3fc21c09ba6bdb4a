// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/precision.hpp>
#include <frugal/report/doctor/levers.hpp>

#include <string>

namespace frugal_test::doctor_levers {

TEST_CASE("the policies' cautions are those of a GPU if LibTorch can use one") {
  using frugal::FP8, frugal::INT8, frugal::Precision;
  auto const on_gpu = frugal::doctor::cautions<Precision<INT8>, Precision<FP8>>(/*on_gpu=*/true);
  REQUIRE(on_gpu.size() == 2);
  CHECK(on_gpu[0].policy == "Precision<INT8>");
  CHECK(on_gpu[0].text == Precision<INT8>::caution(true));
  CHECK(on_gpu[1].text.find("1.4 times as long as FP32") != std::string::npos);
  auto const on_cpu = frugal::doctor::cautions<Precision<FP8>>(/*on_gpu=*/false);
  REQUIRE(on_cpu.size() == 1);
  CHECK(on_cpu[0].text == Precision<FP8>::caution(false));
  CHECK(on_cpu[0].page == "policy/precision.md");
}

}  // namespace frugal_test::doctor_levers
