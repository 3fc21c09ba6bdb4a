// SPDX-License-Identifier: Apache-2.0
// Case 16: products in FP8 and INT8 on a GPU's matrix units, forward and backward, are those of a
// CPU, which are torchao's, and a small network trains with them.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/quantized.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>

namespace frugal_test::gpu_quantized {

using namespace frugal_test::support;
using frugal::FP8;
using frugal::INT8;
using frugal::Precision;
using frugal::Scales;
using frugal::detail::Fp8Format;
using frugal::detail::Int8Format;

c10::Device const gpu(c10::kCUDA, 0);

/// One layer with its gradients, on a device; of its output, its input's gradient and the weight's.
template <class Format>
std::vector<at::Tensor> layer_on(c10::Device device) {
  torch::manual_seed(4);
  torch::nn::Linear layer(64, 96);
  layer->to(device);
  at::Tensor input = torch::from_blob(table({48, 64}, 81, 0).data_ptr(), {48, 64})
                         .clone()
                         .to(device)
                         .requires_grad_();
  frugal::detail::ScaledLayers const layers(std::type_identity<Format>{}, *layer);
  at::Tensor output;
  {
    auto const acting = layers.act();
    output = layer->forward(input);
  }
  output.backward(table({48, 96}, 81, 1).to(device));
  return {output.detach().cpu(), input.grad().cpu(), layer->weight.grad().cpu()};
}

/// A GPU's matrix units add products of FP8 with fewer bits than float32 has. Another rounding of a
/// factor would be a hundred times as far: E4M3 has three bits after the first one.
template <class Format>
void same_layer(double tolerance) {
  auto const here = layer_on<Format>(c10::kCPU);
  auto const there = layer_on<Format>(gpu);
  for (std::size_t i = 0; i < here.size(); ++i) {
    CAPTURE(i);
    double const apart = relative(there[i], here[i]);
    std::printf("%s, tensor %zu: %.2e apart\n", Format::name, i, apart);
    CHECK(apart <= tolerance);
  }
}

TEST_CASE("a layer in FP8 with a scale for each tensor") {
  same_layer<Fp8Format<Scales::per_tensor>>(5e-4);
}
TEST_CASE("a layer in FP8 with a scale for each row") {
  same_layer<Fp8Format<Scales::per_row>>(5e-4);
}
TEST_CASE("a layer in INT8") { same_layer<Int8Format>(1e-5); }

template <class Format>
double loss_of(c10::Device device, Format const& precision) {
  auto const module =
      std::make_shared<Mlp>(Mlp::Shape{.features = 64, .hidden = 128, .classes = 32});
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3, .device = device},
                          frugal::Optimize<frugal::AdamW>{.lr = 1e-3}, precision};
  auto const report = trainer.fit(frugal::TensorDataset(samples(1024, 91, 64, 32), {.batch = 64}));
  std::printf("%s on %s: loss %.6f\n", typeid(Format).name(), device.str().c_str(),
              report.train_loss);
  return report.train_loss;
}

TEST_CASE("a layer that cuBLAS has no INT8 kernels for is computed in FP32") {
  auto const takes = [&](std::int64_t rows, std::int64_t outputs) {
    return Int8Format::takes(at::zeros({rows, 64}, gpu), at::zeros({outputs, 64}, gpu));
  };
  CHECK(takes(24, 24));
  CHECK_FALSE(takes(16, 24));
  CHECK_FALSE(takes(24, 16));
  CHECK_FALSE(takes(25, 24));
}

TEST_CASE("a network trains in FP8 and in INT8 as on a CPU, and nearly as in FP32") {
  double const full = loss_of(gpu, Precision<frugal::FP32>{});
  auto const check = [&](auto const& precision) {
    double const here = loss_of(c10::kCPU, precision);
    double const there = loss_of(gpu, precision);
    CHECK(std::abs(here - there) <= 0.01 * here);
    CHECK(std::abs(there - full) <= 0.05 * full);
    CHECK(there != full);
  };
  check(Precision<FP8>{});
  check(Precision<FP8>{.scales = Scales::per_row});
  check(Precision<INT8>{});
}

}  // namespace frugal_test::gpu_quantized
