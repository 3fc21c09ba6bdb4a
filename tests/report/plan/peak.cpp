// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/plan/peak.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

namespace frugal_test::watch_peak {

using namespace frugal_test::support;
using frugal::watch::gpu_model;
using frugal::watch::peak_flops;

TEST_CASE("a peak is found by a part of the device's name, and by the format") {
  CHECK(peak_flops("NVIDIA A100-SXM4-80GB", "FP32") == 19.5e12);
  CHECK(peak_flops("NVIDIA A100-SXM4-80GB", "BF16") == 312e12);
  CHECK(peak_flops("NVIDIA H100 80GB HBM3", "BF16") == 989e12);
  CHECK(peak_flops("NVIDIA H100 PCIe", "BF16") == 756e12);
  CHECK(peak_flops("NVIDIA A10", "BF16") == 125e12);
  CHECK(peak_flops("NVIDIA L4", "BF16") == 121e12);
  CHECK(peak_flops("NVIDIA L40S", "BF16") == 362e12);
  CHECK(peak_flops("Tesla T4", "FP16") == 65e12);
  CHECK(peak_flops("Tesla V100-SXM2-16GB", "FP16") == 125e12);
  CHECK(peak_flops("NVIDIA A100-SXM4-80GB", "TF32") == 156e12);
  CHECK(peak_flops("NVIDIA A100-SXM4-80GB", "INT8") == 624e12);
  CHECK(peak_flops("NVIDIA H100 80GB HBM3", "TF32") == 494.5e12);
  CHECK(peak_flops("NVIDIA H100 80GB HBM3", "FP8") == 1979e12);
  CHECK(peak_flops("NVIDIA H200 NVL", "BF16") == 835e12);
  CHECK(peak_flops("NVIDIA H200", "BF16") == 989e12);
  CHECK(peak_flops("Tesla T4", "INT8") == 130e12);
}

TEST_CASE("an unknown device has no peak, nor has a format that the device lacks") {
  CHECK_FALSE(peak_flops("the CPU", "FP32"));
  CHECK_FALSE(peak_flops("", "BF16"));
  CHECK_FALSE(peak_flops("NVIDIA A100-SXM4-80GB", "FP8"));
  CHECK_FALSE(peak_flops("NVIDIA A10G", "BF16"));
  CHECK_FALSE(peak_flops("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "BF16"));
  CHECK_FALSE(peak_flops("NVIDIA H100 80GB HBM3", "FP4"));
  CHECK_FALSE(peak_flops("Tesla V100-SXM2-16GB", "BF16"));
  CHECK(peak_flops("Tesla V100-SXM2-16GB", "FP32") == 15.7e12);
}

TEST_CASE("the model of the GPUs comes from their driver, if they are of one model") {
  TemporaryFolder const folder;
  CHECK(gpu_model(folder / "none") == "");
  CHECK(gpu_model(folder.path()) == "");
  auto const add = [&](char const* address, std::string const& model) {
    std::filesystem::create_directory(folder / address);
    write_text(folder / address / "information",
               "IRQ:   \t 255\nModel: \t\t " + model + "\nBus Type: PCIe\n");
  };
  add("0000:01:00.0", "NVIDIA H100 80GB HBM3");
  add("0000:02:00.0", "NVIDIA H100 80GB HBM3");
  CHECK(gpu_model(folder.path()) == "NVIDIA H100 80GB HBM3");
  add("0000:03:00.0", "NVIDIA A10");
  CHECK(gpu_model(folder.path()) == "");
}

}  // namespace frugal_test::watch_peak
