// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

/// Peak performance of devices, without tensors.
namespace frugal::watch {

/// Dense floating-point operations per second, from the vendors' data sheets. 0: not supported.
struct Peak {
  std::string_view model;  ///< a substring of the device's name
  double fp32;             ///< without TF32
  double bf16;
  double fp16;  ///< with FP32 accumulation
};

// The first match wins: "H100 PCIe" stands before "H100". Data sheets give the NVL's with sparsity.
inline constexpr std::array peaks{
    Peak{"H200", 67e12, 989e12, 989e12},
    Peak{"H100 PCIe", 51e12, 756e12, 756e12},
    Peak{"H100 NVL", 60e12, 835e12, 835e12},
    Peak{"H100", 67e12, 989e12, 989e12},
    Peak{"A100", 19.5e12, 312e12, 312e12},
    Peak{"L40S", 91.6e12, 362e12, 362e12},
    Peak{"L40", 90.5e12, 181e12, 181e12},
    Peak{"L4", 30.3e12, 121e12, 121e12},
    Peak{"A10G", 0, 0, 0},
    Peak{"A10", 31.2e12, 125e12, 125e12},
    Peak{"V100-SXM2", 15.7e12, 0, 125e12},
    Peak{"V100-PCIE", 14e12, 0, 112e12},
    Peak{"Tesla T4", 8.1e12, 0, 65e12},
};

/// `format` is FP32, BF16 or FP16. Nothing for a device that is not in the table or does not
/// support the format.
inline std::optional<double> peak_flops(std::string_view model, std::string_view format) {
  for (Peak const& peak : peaks) {
    if (model.find(peak.model) == std::string_view::npos) continue;
    double const flops = format == "BF16"   ? peak.bf16
                         : format == "FP16" ? peak.fp16
                         : format == "FP32" ? peak.fp32
                                            : 0;
    return flops > 0 ? std::optional(flops) : std::nullopt;
  }
  return std::nullopt;
}

/// The model of the machine's NVIDIA GPUs, from their driver; empty if there are none, or several
/// models. Read from a file, to avoid linking CUDA.
inline std::string gpu_model(std::filesystem::path const& driver = "/proc/driver/nvidia/gpus") {
  std::string model;
  std::error_code error;
  for (auto const& gpu : std::filesystem::directory_iterator(driver, error)) {
    std::ifstream file(gpu.path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("Model:", 0) != 0) continue;
      std::size_t const begin = line.find_first_not_of(" \t", 6);
      std::string const found = begin == std::string::npos ? "" : line.substr(begin);
      if (!model.empty() && model != found) return "";
      model = found;
    }
  }
  return model;
}

}  // namespace frugal::watch
