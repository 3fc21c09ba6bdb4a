// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/capture_backend.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void NoCapture::require(c10::Device device) {
  bool const on_cpu = device.is_cpu();
  throw SettingsError(
      {.what = "CudaGraph<WholeStep> on " + device.str(),
       .where = "CudaGraph<WholeStep>",
       .why = on_cpu ? "a CPU launches no kernels, so there is nothing that a graph would save"
                     : "frugal was built without CUDA",
       .fix = on_cpu
                  ? "Remove CudaGraph<WholeStep>, so that steps run eagerly; or set "
                    "Settings::device to a GPU and build frugal with FRUGAL_CUDA=ON."
                  : "Build with FRUGAL_CUDA=ON, or remove CudaGraph<WholeStep>, so that steps run "
                    "eagerly."});
}

}  // namespace frugal
