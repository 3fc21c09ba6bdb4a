// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#ifdef FRUGAL_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif

#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Whether this CPU has one of these features, as named in /proc/cpuinfo. True if unknown.
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

inline bool cpu_has_bf16() { return cpu_has_any({"avx512_bf16", "amx_bf16", "bf16"}); }
inline bool cpu_has_fp16() { return cpu_has_any({"avx512_fp16", "amx_fp16", "asimdhp"}); }
/// Dot products of INT8: VNNI, or Arm's.
inline bool cpu_has_int8() {
  return cpu_has_any({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"});
}

/// A recommendation for a CPU whose INT8 products are no faster; empty for others.
FRUGAL_INLINE std::string int8_caution(bool has_int8, bool has_bf16) {
  if (has_int8) return {};
  return std::string(
             "Precision<INT8> gains nothing on this CPU, which has no dot products of INT8 "
             "(VNNI); Precision<") +
         (has_bf16 ? "BF16" : "FP32") + "> is faster on it";
}

/// A GPU's compute capability: 8.0 is the first with BF16 (Ampere), 7.0 the first whose matrix
/// units multiply FP16 (Volta).
struct Capability {
  int major = 0;
  int minor = 0;
};

/// Nothing if the device is no GPU, or in a build without CUDA.
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

/// SettingsError for a GPU without BF16.
FRUGAL_INLINE void require_bf16(std::optional<Capability> gpu) {
  if (!gpu || gpu->major >= 8) return;
  throw SettingsError({.what = "this GPU has no BF16",
                       .where = "Precision<BF16>",
                       .why = "its compute capability is " + std::to_string(gpu->major) + "." +
                              std::to_string(gpu->minor) + ", and BF16 needs 8.0",
                       .fix = "Use Precision<FP16>, which scales the loss, or Precision<FP32>."});
}

/// SettingsError for a GPU without FP8.
FRUGAL_INLINE void require_fp8(std::optional<Capability> gpu) {
  if (!gpu || gpu->major > 8 || (gpu->major == 8 && gpu->minor >= 9)) return;
  throw SettingsError({.what = "this GPU has no FP8",
                       .where = "Precision<FP8>",
                       .why = "its compute capability is " + std::to_string(gpu->major) + "." +
                              std::to_string(gpu->minor) + ", and FP8 needs 8.9",
                       .fix = "Use Precision<INT8> or Precision<BF16>."});
}

/// A recommendation for a GPU that multiplies FP16 no faster than FP32; empty for others.
FRUGAL_INLINE std::string fp16_caution(std::optional<Capability> gpu) {
  if (!gpu || gpu->major >= 7) return {};
  return "Precision<FP16> gains nothing on this GPU, whose compute capability is below 7.0; "
         "Precision<FP32> is as fast on it";
}

}  // namespace frugal::detail
