// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Peak performance of devices, without tensors.
namespace frugal::watch {

/// Dense operations per second, from the vendors' data sheets. 0: not supported, or not known.
struct Peak {
  std::string_view model;  ///< a substring of the device's name
  double fp32;             ///< without TF32
  double bf16;
  double fp16;  ///< with FP32 accumulation
  double tf32 = 0;
  double fp8 = 0;
  double int8 = 0;
};

// The first match wins: "H100 PCIe" stands before "H100". Data sheets give Hopper's and L4's with
// sparsity: half of that. Sources disagree about the A10G (BF16 70e12 or 125e12).
inline constexpr std::array peaks{
    Peak{"H200 NVL", 60e12, 835e12, 835e12, 417.5e12, 1670e12, 1670e12},
    Peak{"H200", 67e12, 989e12, 989e12, 494.5e12, 1979e12, 1979e12},
    Peak{"H100 PCIe", 51e12, 756e12, 756e12, 378e12, 1513e12, 1513e12},
    Peak{"H100 NVL", 60e12, 835e12, 835e12, 417.5e12, 1670e12, 1670e12},
    Peak{"H100", 67e12, 989e12, 989e12, 494.5e12, 1979e12, 1979e12},
    Peak{"A100", 19.5e12, 312e12, 312e12, 156e12, 0, 624e12},
    Peak{"L40S", 91.6e12, 362e12, 362e12, 183e12, 733e12, 733e12},
    Peak{"L40", 90.5e12, 181e12, 181e12, 90.5e12, 362e12, 362e12},
    Peak{"L4", 30.3e12, 121e12, 121e12, 60e12, 242e12, 242e12},
    Peak{"A10G", 0, 0, 0},
    Peak{"A10", 31.2e12, 125e12, 125e12, 62.5e12, 0, 250e12},
    Peak{"V100-SXM2", 15.7e12, 0, 125e12},
    Peak{"V100-PCIE", 14e12, 0, 112e12},
    Peak{"Tesla T4", 8.1e12, 0, 65e12, 0, 0, 130e12},
};

/// The formats of the table; INT8's peak counts operations on integers.
inline constexpr std::array<std::string_view, 6> peak_formats{"FP32", "BF16", "FP16",
                                                              "TF32", "FP8",  "INT8"};

/// Nothing for a device that is not in the table or does not support the format, and for a part of
/// a device (MIG).
std::optional<double> peak_flops(std::string_view model, std::string_view format);

/// The model of the machine's NVIDIA GPUs, from their driver; empty if there are none, or several
/// models. Read from a file, to avoid linking CUDA.
std::string gpu_model(std::filesystem::path const& driver = "/proc/driver/nvidia/gpus");

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/peak.ipp>
#endif
