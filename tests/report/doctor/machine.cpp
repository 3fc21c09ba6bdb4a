// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/report/doctor/machine.hpp>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::doctor_gpus {

using frugal::doctor::CudaDriver;
using frugal::doctor::Gpu;
using frugal::doctor::Gpus;
using frugal::doctor::read_gpus;
using frugal_test::support::TemporaryFolder;

/// Two GPUs of different models.
CudaDriver two_gpus() {
  return {.init = [](unsigned) { return 0; },
          .driver_version = [](int* version) { return *version = 12040, 0; },
          .count = [](int* count) { return *count = 2, 0; },
          .device = [](int* device, int index) { return *device = index + 10, 0; },
          .name =
              [](char* name, int size, int device) {
                std::strncpy(name, device == 10 ? "NVIDIA H100 80GB HBM3" : "Tesla T4",
                             static_cast<std::size_t>(size));
                return 0;
              },
          .memory =
              [](std::size_t* bytes, int device) {
                *bytes = std::size_t{device == 10 ? 80U : 15U} << 30U;
                return 0;
              },
          .attribute =
              [](int* value, int which, int device) {
                if (device == 10) return *value = which == 75 ? 9 : 0, 0;
                return *value = which == 75 ? 7 : 5, 0;
              }};
}

struct Root : TemporaryFolder {
  explicit Root(int gpus) {
    for (int i = 0; i < gpus; ++i) {
      std::filesystem::create_directories(*this / ("proc/driver/nvidia/gpus/" + std::to_string(i)));
    }
    if (gpus == 0) return;
    std::ofstream(*this / "proc/driver/nvidia/version")
        << "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n"
           "GCC version:  gcc version 12.3.0\n";
  }
};

TEST_CASE("each GPU has its model, memory and formats") {
  Gpus const gpus = read_gpus(two_gpus(), Root(2).path());
  REQUIRE(gpus.all.size() == 2);
  CHECK(gpus.driver == "550.54.14");
  CHECK(gpus.cuda == "12.4");
  CHECK(gpus.fault == "");
  Gpu const& h100 = gpus.all[0];
  CHECK(h100.model == "NVIDIA H100 80GB HBM3");
  CHECK(h100.memory == std::size_t{80} << 30U);
  CHECK((h100.bf16() && h100.tf32() && h100.fp16() && h100.fp8() && h100.int8()));
  Gpu const& t4 = gpus.all[1];
  CHECK((t4.fp16() && t4.int8()));
  CHECK_FALSE((t4.bf16() || t4.tf32() || t4.fp8()));
}

TEST_CASE("an A100 has no FP8, an L4 has it, and a P100 has no matrix units") {
  CHECK_FALSE(Gpu{.major = 8, .minor = 0}.fp8());
  CHECK(Gpu{.major = 8, .minor = 9}.fp8());
  CHECK_FALSE(Gpu{.major = 6, .minor = 0}.fp16());
}

TEST_CASE("a machine without GPUs has no fault") {
  CHECK(read_gpus({}, Root(0).path()).fault == "");
  CudaDriver driver = two_gpus();
  driver.init = [](unsigned) { return 100; };
  CHECK(read_gpus(driver, Root(0).path()).fault == "");
}

TEST_CASE("a GPU that cannot be used is a fault with what to do") {
  CHECK(read_gpus({}, Root(1).path()).fault.find("NVIDIA's runtime") != std::string::npos);
  CudaDriver driver = two_gpus();
  driver.init = [](unsigned) { return 100; };
  CHECK(read_gpus(driver, Root(1).path()).fault.find("CUDA_VISIBLE_DEVICES") != std::string::npos);
  driver.init = [](unsigned) { return 999; };
  CHECK(read_gpus(driver, Root(1).path()).fault.find("error 999") != std::string::npos);
  driver = two_gpus();
  driver.device = [](int*, int) { return 1; };
  CHECK(read_gpus(driver, Root(1).path()).all.at(0).model == "");
}

TEST_CASE("a library that is not there has no calls") {
  CHECK_FALSE(frugal::doctor::detail::loaded_cuda("libfrugal-none.so.1").complete());
  CHECK_FALSE(frugal::doctor::detail::loaded_cuda("libm.so.6").complete());
}

TEST_CASE("a version line of the proprietary driver, and one without a version") {
  using frugal::doctor::detail::driver_version;
  CHECK(driver_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct\n") ==
        "535.129.03");
  CHECK(driver_version("") == "");
  CHECK(driver_version("NVRM version: none\n1.2\n") == "");
}

}  // namespace frugal_test::doctor_gpus
