// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/precision/hardware.hpp>

#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <fstream>

namespace frugal::detail {

FRUGAL_INLINE bool cpu_has_any(std::initializer_list<char const*> features) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    // "flags" on x86-64, "Features" on Arm
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    line += ' ';
    for (char const* const feature : features) {
      if (line.find(' ' + std::string(feature) + ' ') != std::string::npos) return true;
    }
    return false;
  }
  return true;
}

FRUGAL_INLINE std::string int8_caution(bool has_int8, bool has_bf16) {
  if (has_int8) return {};
  return std::string(
             "Precision<INT8> gains nothing on this CPU, which has no dot products of INT8 "
             "(VNNI); Precision<") +
         (has_bf16 ? "BF16" : "FP32") + "> is faster on it";
}

FRUGAL_INLINE std::optional<Capability> capability_of([[maybe_unused]] c10::Device device) {
#ifdef FRUGAL_CUDA
  if (device.is_cuda()) {
    auto const* const about =
        at::cuda::getDeviceProperties(device.has_index() ? device.index() : -1);
    return Capability{about->major, about->minor};
  }
#endif
  return std::nullopt;
}

FRUGAL_INLINE void require_bf16(std::optional<Capability> gpu) {
  if (!gpu || gpu->major >= 8) return;
  throw SettingsError({.what = "this GPU has no BF16",
                       .where = "Precision<BF16>",
                       .why = "its compute capability is " + std::to_string(gpu->major) + "." +
                              std::to_string(gpu->minor) + ", and BF16 needs 8.0",
                       .fix = "Use Precision<FP16>, which scales the loss, or Precision<FP32>."});
}

FRUGAL_INLINE void require_fp8(std::optional<Capability> gpu) {
  if (!gpu || gpu->major > 8 || (gpu->major == 8 && gpu->minor >= 9)) return;
  throw SettingsError({.what = "this GPU has no FP8",
                       .where = "Precision<FP8>",
                       .why = "its compute capability is " + std::to_string(gpu->major) + "." +
                              std::to_string(gpu->minor) + ", and FP8 needs 8.9",
                       .fix = "Use Precision<INT8> or Precision<BF16>."});
}

FRUGAL_INLINE std::string fp16_caution(std::optional<Capability> gpu) {
  if (!gpu || gpu->major >= 7) return {};
  return "Precision<FP16> gains nothing on this GPU, whose compute capability is below 7.0; "
         "Precision<FP32> is as fast on it";
}

FRUGAL_INLINE void warn_on_device(FitBegin& phase, std::string (*caution)(bool on_gpu)) {
  c10::Device const device = phase.settings().device;
  if (!device.is_cpu() && !device.is_cuda()) return;
  if (std::string const text = caution(device.is_cuda()); !text.empty()) phase.warn(text);
}

}  // namespace frugal::detail
