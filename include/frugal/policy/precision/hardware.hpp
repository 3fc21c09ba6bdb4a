// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#ifdef FRUGAL_CUDA
#include <ATen/cuda/CUDAContext.h>
#endif

#include <initializer_list>
#include <optional>
#include <string>

namespace frugal {

struct FitBegin;

}  // namespace frugal

namespace frugal::detail {

/// Whether this CPU has one of these features, as named in /proc/cpuinfo. True if unknown.
bool cpu_has_any(std::initializer_list<char const*> features);

inline bool cpu_has_bf16() { return cpu_has_any({"avx512_bf16", "amx_bf16", "bf16"}); }
inline bool cpu_has_fp16() { return cpu_has_any({"avx512_fp16", "amx_fp16", "asimdhp"}); }
/// Dot products of INT8: VNNI, or Arm's.
inline bool cpu_has_int8() {
  return cpu_has_any({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"});
}

/// A recommendation for a CPU whose INT8 products are no faster; empty for others.
std::string int8_caution(bool has_int8, bool has_bf16);

/// A GPU's compute capability: 8.0 is the first with BF16 (Ampere), 7.0 the first whose matrix
/// units multiply FP16 (Volta).
struct Capability {
  int major = 0;
  int minor = 0;
};

/// Nothing if the device is no GPU, or in a build without CUDA.
std::optional<Capability> capability_of([[maybe_unused]] c10::Device device);

/// SettingsError for a GPU without BF16.
void require_bf16(std::optional<Capability> gpu);

/// SettingsError for a GPU without FP8.
void require_fp8(std::optional<Capability> gpu);

/// A recommendation for a GPU that multiplies FP16 no faster than FP32; empty for others.
std::string fp16_caution(std::optional<Capability> gpu);

/// Warns of what a format's `caution` says of the fit's device: a CPU or a CUDA GPU; of others nothing is known.
void warn_on_device(FitBegin& phase, std::string (*caution)(bool on_gpu));

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/precision/hardware.ipp>
#endif
