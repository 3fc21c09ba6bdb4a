// SPDX-License-Identifier: Apache-2.0
// Case 18: Profile on a GPU: kernels under their operators, idle share, replayed graphs, NVTX.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <cstddef>
#include <functional>
#include <string>

namespace frugal_test::gpu_profile {

using namespace frugal_test::support;
using frugal::PerEpoch;
using frugal::Profile;
using frugal::Steps;
using frugal::watch::Bound;
using Optimizer = frugal::Optimize<frugal::AdamW>;

inline c10::Device gpu() { return {c10::kCUDA, 0}; }

struct Products {
  std::int64_t size = 4096;
  at::Tensor operator()(torch::nn::Linear& net, frugal::Batch const& batch) const {
    at::Tensor const square =
        net->weight.detach().sum() * at::ones({size, size}, net->weight.options());
    return net(batch.data).square().mean() + 0 * square.matmul(square).mean();
  }
};

template <class P, class... Ps>
std::vector<frugal::WindowProfile> run(Products const& objective, frugal::Report& report,
                                       std::string const& folder, P const& profile,
                                       Ps const&... policies) {
  frugal::Trainer trainer{torch::nn::Linear(6, 3),
                          objective,
                          frugal::Settings{.run_dir = folder, .epochs = 2, .device = gpu()},
                          Optimizer{},
                          profile,
                          policies...};
  report = trainer.fit(frugal::TensorDataset(samples(256), {.batch = 4}));
  return trainer.profile().windows();
}

TEST_CASE("large products keep the GPU busy, and their operator is the hot spot") {
  TemporaryFolder const folder;
  frugal::Report report;
  auto const windows =
      run({}, report, folder.path(), Profile<Steps<10>, PerEpoch, frugal::Nvtx>{.least_busy = 0});
  REQUIRE(windows.size() == 2);
  CHECK(windows[0].hot_spots[0].name == "aten::mm");
  CHECK(windows[0].bound == Bound::compute);
  CHECK(windows[0].device_idle < 0.3);
  CHECK(windows[0].peak.bytes >= 4096 * 4096 * 4);
  CHECK(report.warnings.empty());  // NVTX is there
  CHECK(std::filesystem::exists(folder / windows[0].trace));
}

TEST_CASE("small products leave the GPU waiting for the host") {
  frugal::Report report;
  auto const windows = run({.size = 8}, report, "", Profile<Steps<10>, PerEpoch>{.least_busy = 0});
  REQUIRE(windows.size() == 2);
  CHECK(windows[0].device_idle > 0.5);
  CHECK(windows[0].bound != Bound::compute);
}

TEST_CASE("replayed steps are profiled too, and again in the next epoch") {
  frugal::Report report;
  auto const windows =
      run({.size = 2048}, report, "", Profile<Steps<10>, PerEpoch>{.least_busy = 0},
          frugal::CudaGraph<frugal::WholeStep>{});
  REQUIRE(windows.size() == 2);
  CHECK_FALSE(windows[1].hot_spots.empty());
  CHECK(windows[1].device_idle < 0.9);
}

TEST_CASE("a sink has the bytes of the GPU's tensors, and NVML knows the GPU by CUDA's UUID") {
  double bytes = 0;
  using Keep = std::function<void(frugal::MetricRecord const&)>;
  Keep const keep = [&](frugal::MetricRecord const& record) {
    bytes = record.number("device_memory_bytes").value_or(bytes);
  };
  frugal::Trainer trainer{torch::nn::Linear(1024, 1024),
                          frugal::MeanSquaredError{},
                          frugal::Settings{.steps = 3, .device = gpu()},
                          Optimizer{},
                          frugal::OnMetrics<Keep, frugal::Every<1>>{.call = keep},
                          frugal::CostMeter{.energy = {.processors = false}}};
  static_cast<void>(trainer.fit(
      frugal::TensorDataset(at::zeros({12, 1024}), at::zeros({12, 1024}), {.batch = 4})));
  // Weights, gradients and two moments.
  CHECK(bytes >= 4 * 1024 * 1025 * 4);
  auto const uuids = frugal::detail::cuda_uuids();
  REQUIRE(uuids.size() == static_cast<std::size_t>(torch::cuda::device_count()));
  frugal::energy::Nvml nvml({{frugal::energy::name_of_uuid(uuids[0])}});
  CHECK(nvml.problem() == "");
  CHECK(nvml.devices() == 1);
  CHECK(trainer.policy<frugal::kinds::cost_meter>().cost().value().kilowatt_hours.has_value());
}

}  // namespace frugal_test::gpu_profile
