// SPDX-License-Identifier: Apache-2.0
// Names symbols of libtorch_cuda, libc10_cuda, the CUDA run-time and NCCL, so that linking it
// proves that the CUDA build is complete. It must also start without a GPU. With a GPU it also
// trains briefly: the run starts on the CPU, moves, and has its batches copied ahead.
#include <frugal/frugal.hpp>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cmath>
#include <cstdio>

namespace {

/// The loss after two epochs on a device.
double loss_on(char const* device) {
  namespace fr = frugal;
  torch::manual_seed(0);
  at::Tensor const x = torch::randn({128, 8});
  fr::TensorDataset train(x, x.argmax(1), {.batch = 16});
  fr::Trainer trainer{torch::nn::Linear(8, 8),
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 2, .device = device},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      fr::DevicePrefetch<>{},
                      fr::StartOn<fr::Cpu, fr::Steps<5>>{}};
  return trainer.fit(train).train_loss;
}

}  // namespace

int main() {
  int nccl = 0;
  int runtime = 0;
  if (ncclGetVersion(&nccl) != ncclSuccess) return 1;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) return 1;
  int const devices = c10::cuda::device_count();
  std::printf("NCCL %d, CUDA run-time %d, %d devices\n", nccl, runtime, devices);
  if (devices > 0) {
    // Reached only with a GPU, always linked.
    at::cuda::CUDAGraph graph;
    c10::cuda::getCurrentCUDAStream().synchronize();
    double const here = loss_on("cpu");
    double const there = loss_on("cuda");
    std::printf("loss %.6f on the CPU, %.6f on the GPU\n", here, there);
    if (!(std::abs(here - there) < 1e-4)) return 1;
    std::printf("%s, %d bytes of this stream's pool\n",
                at::cuda::getCurrentDeviceProperties()->name,
                static_cast<int>(c10::cuda::CUDACachingAllocator::isEnabled()));
  }
  return at::hasCUDA() || devices == 0 ? 0 : 1;
}
