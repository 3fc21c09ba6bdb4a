// SPDX-License-Identifier: Apache-2.0
// Case 5: a step that takes 60% of the memory is captured: the warm-up's cache is freed before.
#include <doctest/doctest.h>

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "counting_capture.hpp"

namespace frugal_test::gpu_memory {

using namespace frugal_test::gpu;
namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr c10::DeviceIndex gpu = 0;
constexpr std::int64_t features = 64;
constexpr std::int64_t hidden = 1024;
constexpr std::int64_t classes = 8;
constexpr int windows = 8;
constexpr int warm_up = 3;

/// Small weights and large activations: a separate pool is nearly as large as the whole step.
torch::nn::Sequential deep() {
  torch::nn::Sequential net(torch::nn::Linear(features, hidden), torch::nn::ReLU());
  for (int i = 0; i < 5; ++i) {
    net->push_back(torch::nn::Linear(hidden, hidden));
    net->push_back(torch::nn::ReLU());
  }
  net->push_back(torch::nn::Linear(hidden, classes));
  return net;
}

std::int64_t total_memory() {
  return static_cast<std::int64_t>(at::cuda::getDeviceProperties(gpu)->totalGlobalMem);
}

void free_cached() {
  c10::cuda::device_synchronize();
  at::cuda::clearCublasWorkspaces();
  allocator::emptyCache();
}

c10::CachingAllocator::Stat bytes(c10::CachingAllocator::StatArray const& of) {
  return of[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

struct Measured {
  frugal::Report report;
  std::int64_t peak = 0;      // peak bytes of tensors
  std::int64_t reserved = 0;  // bytes that the allocator held on the device at the end
  std::int64_t state = 0;     // persistent bytes: parameters and two moments
};

Measured run(frugal::Batch const& batch, std::shared_ptr<CaptureLog> const& log,
             int windows_of_warm_up) {
  torch::manual_seed(1);
  torch::nn::Sequential const net = deep();
  free_cached();
  allocator::resetPeakStats(gpu);
  frugal::Trainer trainer{
      net, frugal::CrossEntropy{},
      frugal::Settings{.epochs = windows, .device = c10::Device(c10::kCUDA, gpu)},
      frugal::Optimize<frugal::AdamW>{}, counted(log, windows_of_warm_up)};
  Measured found;
  found.report =
      trainer.fit(frugal::TensorDataset(batch, {.batch = batch.data.size(0), .shuffle = false}));
  auto const stats = allocator::getDeviceStats(gpu);
  found.peak = bytes(stats.allocated_bytes).peak;
  found.reserved = bytes(stats.reserved_bytes).current;
  for (at::Tensor const& each : net->parameters()) {
    found.state += 3 * static_cast<std::int64_t>(each.nbytes());
  }
  return found;
}

/// Limits the memory for a scope.
struct Limit {
  explicit Limit(double fraction) { allocator::setMemoryFraction(fraction, gpu); }
  Limit(Limit const&) = delete;
  Limit& operator=(Limit const&) = delete;
  ~Limit() { allocator::setMemoryFraction(1.0, gpu); }
};

TEST_CASE("a step of 60% of the memory is captured") {
  // One activation is 1/256 of the memory, and a step has about ten at once.
  std::int64_t const rows =
      total_memory() / 256 / (hidden * static_cast<std::int64_t>(sizeof(float)));
  frugal::Batch const batch{at::randn({rows, features}),
                            at::randint(0, classes, {rows}, at::kLong)};

  auto const idle = std::make_shared<CaptureLog>();
  Measured const eager = run(batch, idle, never);
  CHECK(idle->captures == 0);
  free_cached();
  std::int64_t const allowed = eager.peak * 10 / 6;
  CAPTURE(rows);
  CAPTURE(eager.peak);
  CAPTURE(eager.reserved);
  CAPTURE(eager.state);
  CAPTURE(allowed);
  REQUIRE(allowed < total_memory() / 2);
  // If the cached memory were kept, the graph's own would not fit.
  REQUIRE(eager.reserved + (eager.peak - eager.state) > allowed);

  Limit const limit(static_cast<double>(allowed) / static_cast<double>(total_memory()));
  auto const bytes_on_gpu =
      at::TensorOptions().dtype(at::kByte).device(c10::Device(c10::kCUDA, gpu));
  CHECK_THROWS_AS(at::empty({allowed + (std::int64_t{64} << 20)}, bytes_on_gpu), c10::Error);

  auto const log = std::make_shared<CaptureLog>();
  Measured const graph = run(batch, log, warm_up);
  CHECK(log->side_streams == warm_up);
  CHECK(log->captures == 1);
  CHECK(log->broken_off == 0);
  CHECK(log->replays == windows - warm_up);
  CHECK(graph.report.steps == windows);
  CHECK(lines_with("CudaGraph", graph.report.warnings) == 0);
  CHECK(graph.reserved <= allowed);
}

}  // namespace frugal_test::gpu_memory
