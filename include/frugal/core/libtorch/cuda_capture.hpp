// SPDX-License-Identifier: Apache-2.0
#pragma once

// Empty in a build without CUDA, whose headers it needs.
#ifdef FRUGAL_CUDA

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/capture_attempt.hpp>
#include <frugal/core/libtorch/capture_backend.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// CUDA graphs, through LibTorch's at::cuda::CUDAGraph.
///
/// Captures are thread-local: work that other threads submit to the GPU, such as a checkpoint being
/// written, neither enters the graph nor breaks it.
class CudaCapture {
 public:
  /// A graph that allocates from the pool.
  struct Graph {
    explicit Graph(c10::cuda::MempoolId_t from) : pool(from) {}
    void begin() { captured.capture_begin(pool, cudaStreamCaptureModeThreadLocal); }
    void end() { captured.capture_end(); }

    c10::cuda::MempoolId_t pool;
    at::cuda::CUDAGraph captured;
  };
  class Recording {
   public:
    explicit Recording(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
    void replay() { graph_->captured.replay(); }

   private:
    std::unique_ptr<Graph> graph_;
  };

  static void require(c10::Device device) {
    if (device.is_cuda() && c10::cuda::device_count() > 0) return;
    bool const on_gpu = device.is_cuda();
    throw SettingsError(
        {.what = "CudaGraph<WholeStep> on " + device.str(),
         .where = "CudaGraph<WholeStep>",
         .why = on_gpu ? "CUDA finds no GPU on this machine"
                       : "a CPU launches no kernels, so there is nothing that a graph would save",
         .fix = on_gpu
                    ? "Check the driver and CUDA_VISIBLE_DEVICES, or remove CudaGraph<WholeStep> "
                      "and set Settings::device to a CPU."
                    : "Remove CudaGraph<WholeStep>, so that steps run eagerly; or set "
                      "Settings::device to a GPU."});
  }

  void begin(c10::Device device) {
    device_ = device.has_index() ? device.index() : c10::cuda::current_device();
    stream_ = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_);
    forget();
  }

  void on_side_stream(std::function<void()> const& body) {
    c10::cuda::CUDAStream const current = c10::cuda::getCurrentCUDAStream(device_);
    follow(*stream_, current);
    Following const back{current, *stream_};
    c10::cuda::CUDAStreamGuard const guard(*stream_);
    body();
  }

  Recording capture(std::vector<at::Generator> const& generators,
                    std::function<void()> const& body) {
    // The guard sets the device as well: another device may be current.
    c10::cuda::CUDAStreamGuard const guard(*stream_);
    auto graph = std::make_unique<Graph>(pool_);
    // LibTorch itself registers the device's own generator.
    register_generators(graph->captured, generators);
    Generators before(generators, device_);
    c10::cuda::device_synchronize();
    try {
      return Recording(detail::attempt_capture(std::move(graph), Pools{device_, pool_}, body));
    } catch (...) {
      before.put_back();
      throw;
    }
  }

  /// Starts a new pool. The memory of earlier captures returns to the device with their graphs and
  /// tensors.
  void forget() { pool_ = at::cuda::graph_pool_handle(); }

 private:
  static void follow(c10::cuda::CUDAStream const& later, c10::cuda::CUDAStream const& earlier) {
    at::cuda::CUDAEvent event;
    event.record(earlier);
    event.block(later);
  }
  struct Following {
    c10::cuda::CUDAStream later, earlier;
    ~Following() {
      try {
        follow(later, earlier);
      } catch (...) {
        // The error that leaves the body says more than this one.
      }
    }
  };

  /// Device memory and page-locked memory. Failures here are not reported: see attempt_capture().
  struct Pools {
    c10::DeviceIndex device;
    c10::cuda::MempoolId_t pool;

    static void free_cached() { c10::cuda::CUDACachingAllocator::emptyCache(); }
    /// 0 if the allocator does not count (cudaMallocAsync).
    int uses() const {
      int uses = 0;
      detail::quietly(
          [&] { uses = c10::cuda::CUDACachingAllocator::getPoolUseCount(device, pool); });
      return uses;
    }
    void end() const {
      detail::quietly([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool); });
      detail::quietly([&] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(pool); });
    }
    void release() const {
      detail::quietly([&] { c10::cuda::CUDACachingAllocator::releasePool(device, pool); });
      detail::quietly([&] { at::getHostAllocator(at::kCUDA)->release_pool(pool); });
    }
  };

  /// A capture that fails at its end leaves its generators in capture mode for ever; this resets
  /// them.
  class Generators {
   public:
    Generators(std::vector<at::Generator> const& given, c10::DeviceIndex device) : all_(given) {
      all_.push_back(at::cuda::detail::getDefaultCUDAGenerator(device));
      for (at::Generator const& each : all_) before_.push_back(each.clone());
    }
    void put_back() {
      for (std::size_t i = 0; i < all_.size(); ++i) all_[i].graphsafe_set_state(before_[i]);
    }

   private:
    std::vector<at::Generator> all_, before_;
  };

  /// LibTorch 2.11 needs each generator registered; later versions do so at the first draw.
  template <class Graph>
  static void register_generators(Graph& graph, std::vector<at::Generator> const& generators) {
    for (at::Generator const& each : generators) {
      if constexpr (requires { graph.register_generator_state(each); }) {
        graph.register_generator_state(each);
      }
    }
  }

  c10::DeviceIndex device_ = 0;
  std::optional<c10::cuda::CUDAStream> stream_;
  c10::cuda::MempoolId_t pool_{0, 0};
};

}  // namespace frugal

#endif  // FRUGAL_CUDA
