// SPDX-License-Identifier: Apache-2.0
// Names symbols of libtorch_cuda, libc10_cuda, the CUDA run-time and NCCL, so that linking it
// proves that the CUDA flavour is complete. It has to start where there is no GPU, too.
#include <frugal/frugal.hpp>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>

int main() {
  int nccl = 0;
  int runtime = 0;
  if (ncclGetVersion(&nccl) != ncclSuccess) return 1;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) return 1;
  int const devices = c10::cuda::device_count();
  std::printf("NCCL %d, CUDA run-time %d, %d devices\n", nccl, runtime, devices);
  if (devices > 0) {
    // Only reached with a GPU, linked always.
    at::cuda::CUDAGraph graph;
    c10::cuda::getCurrentCUDAStream().synchronize();
    std::printf("%s, %d bytes of this stream's pool\n",
                at::cuda::getCurrentDeviceProperties()->name,
                static_cast<int>(c10::cuda::CUDACachingAllocator::isEnabled()));
  }
  return at::hasCUDA() || devices == 0 ? 0 : 1;
}
