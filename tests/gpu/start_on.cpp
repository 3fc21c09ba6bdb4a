// SPDX-License-Identifier: Apache-2.0
// Case 12: StartOn<Cpu> moves a run to the GPU, and fused optimizers train a channels_last network
// with depthwise and 1x1 convolutions there; both give the losses of a run on the CPU. Shapes: B
// samples, C channels, H and W of a picture.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/running.hpp"

#include <ATen/Context.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::gpu_start {

using namespace frugal_test::support;
namespace nn = torch::nn;

c10::Device const gpu(c10::kCUDA, 0);
c10::Device const cpu(c10::kCPU);

/// Products in FP32, as on the CPU.
void without_tf32() {
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

void check_near(std::vector<double> const& found, std::vector<double> const& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(found[i] - expected[i]) <= 1e-4 * std::abs(expected[i]));
  }
}

struct Ended {
  frugal::Report report;
  std::vector<double> losses;
  std::vector<c10::DeviceType> places;  ///< of the module, after each step
};

template <class... Ps>
Ended run(c10::Device device, Ps const&... policies) {
  Ended ended;
  Seen seen;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3, .seed = 7, .device = device},
                          Spy{.seen = &seen,
                              .each_step =
                                  [&](frugal::Counters const&) {
                                    ended.places.push_back(module->first->weight.device().type());
                                  }},
                          policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  ended.report = trainer.fit(train);
  ended.losses = seen.losses;
  return ended;
}

/// Compared with the run that stays on the CPU: the first steps are bit-identical, the rest near.
template <class... Ps>
void moves(Ps const&... policies) {
  without_tf32();
  Ended const stays = run(cpu, policies...);
  Ended const moved = run(gpu, policies..., frugal::StartOn<frugal::Cpu, frugal::Steps<5>>{});
  CHECK(moved.report.steps == 33);
  CHECK(std::count(moved.places.begin(), moved.places.end(), c10::kCPU) == 5);
  CHECK(std::count(moved.places.begin(), moved.places.end(), c10::kCUDA) == 33 - 5);
  check_near(moved.losses, stays.losses);
  for (std::size_t i = 0; i < 5; ++i) CHECK(moved.losses.at(i) == stays.losses.at(i));
}

TEST_CASE("a run that starts on the CPU continues on the GPU with the losses of one that stays") {
  moves(frugal::Optimize<frugal::AdamW>{}, frugal::DevicePrefetch<>{},
        frugal::Average<frugal::Ema<0.9>>{});
}

/// A convolution, a depthwise one and a 1x1 one. With a single channel, or a 1x1 kernel, the
/// strides of one layout are also valid in the other, and cuDNN's gradients choose their own.
struct Pictures : nn::Module {
  explicit Pictures(bool restride)
      : wide(register_module("wide", nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)))),
        depth(register_module("depth",
                              nn::Conv2d(nn::Conv2dOptions(16, 16, 3).padding(1).groups(16)))),
        point(register_module("point", nn::Conv2d(nn::Conv2dOptions(16, 32, 1)))),
        last(register_module("last", nn::Linear(32, 4))) {
    at::NoGradGuard const no_gradients;
    std::uint32_t which = 0;
    for (at::Tensor& parameter : parameters()) {
      at::Tensor value = 0.3 * table(parameter.sizes().vec(), 50, which++);
      if (parameter.dim() == 4) value = lay_out(value, restride);
      parameter.set_data(value);
    }
  }

  /// `restride`: uses the strides of channels_last even where those of NCHW would do.
  static at::Tensor lay_out(at::Tensor const& value, bool restride) {
    if (!restride) return value.contiguous(at::MemoryFormat::ChannelsLast);
    return at::empty(value.sizes(), value.options().memory_format(at::MemoryFormat::ChannelsLast))
        .copy_(value);
  }

  at::Tensor forward(at::Tensor const& x_BCHW) {
    at::Tensor h = wide->forward(x_BCHW).relu();
    h = depth->forward(h).relu();
    h = point->forward(h).relu();
    return last->forward(h.mean({2, 3}));
  }

  nn::Conv2d wide, depth, point;
  nn::Linear last;
};

frugal::Batch pictures() {
  at::Tensor const data = table({64, 3, 12, 12}, 51, 0).contiguous(at::MemoryFormat::ChannelsLast);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 64; ++i) labels.push_back((i * 7) % 4);
  return {data, at::tensor(labels)};
}

template <class Optimizer>
std::vector<double> trains(c10::Device device, bool restride, Optimizer const& optimizer) {
  Seen seen;
  frugal::Trainer trainer{std::make_shared<Pictures>(restride), frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3, .seed = 7, .device = device}, optimizer,
                          Spy{.seen = &seen}};
  frugal::TensorDataset train(pictures(), {.batch = 16});
  CHECK(trainer.fit(train).steps == 12);
  // The fit has not changed the parameters' layout.
  for (at::Tensor const& each : trainer.module()->parameters()) {
    CHECK(each.device().type() == device.type());
    if (each.dim() == 4) CHECK(each.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
  return seen.losses;
}

template <class Optimizer>
void trains_alike(Optimizer const& optimizer) {
  without_tf32();
  for (bool const restride : {false, true}) {
    CAPTURE(restride);
    check_near(trains(gpu, restride, optimizer), trains(cpu, restride, optimizer));
  }
}

TEST_CASE("AdamW trains depthwise and 1x1 convolutions in channels_last as on the CPU") {
  trains_alike(frugal::Optimize<frugal::AdamW>{.lr = 1e-2});
}

TEST_CASE("SGD with momentum trains them as on the CPU too") {
  trains_alike(frugal::Optimize<frugal::SGD>{.lr = 0.05, .momentum = 0.9});
}

}  // namespace frugal_test::gpu_start
