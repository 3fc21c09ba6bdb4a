// SPDX-License-Identifier: Apache-2.0
// Case 9: in BF16 with dropout, Offload and Recompute have the bits of a run that keeps everything,
// Half has nearly the same losses, and each lowers the peak of memory. Shapes: B samples, F
// features, H hidden units, C classes.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "device_memory.hpp"
#include "support/running.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>

namespace frugal_test::gpu_activations {

using namespace frugal_test::support;
namespace nn = torch::nn;
namespace memory = frugal_test::device_memory;
using memory::mib;

constexpr std::int64_t b = 8192;
constexpr std::int64_t h = 1024;
constexpr int blocks = 8;

/// LayerNorm and Tanh keep float32 in BF16's autocast, which Half makes smaller: of the 88 MiB that
/// a block saves, 64 are float32, 16 are BF16 and 8 are the dropout mask.
nn::Sequential network() {
  torch::manual_seed(3);
  nn::Sequential net;
  for (int i = 0; i < blocks; ++i) {
    net->push_back(nn::Linear(i == 0 ? 64 : h, h));
    net->push_back(nn::LayerNorm(nn::LayerNormOptions({h})));
    net->push_back(nn::Tanh());
    net->push_back(nn::Dropout(0.2));
  }
  net->push_back(nn::Linear(h, 8));
  return net;
}

struct Ended {
  std::map<std::string, at::Tensor> tensors;
  double loss = 0;
  std::int64_t peak = 0;
};

/// Six steps of 8,192 samples.
template <class... Ps>
Ended run(Ps const&... policies) {
  static frugal::Batch const set = samples(3 * b, 91, 64, 8);
  Ended ended;
  nn::Sequential net = network();
  ended.peak = memory::peak_of([&] {
    frugal::Trainer trainer{
        net,
        frugal::CrossEntropy{},
        frugal::Settings{.epochs = 2, .seed = 5, .device = c10::Device(c10::kCUDA, 0)},
        frugal::Optimize<frugal::AdamW>{.lr = 1e-3},
        frugal::Precision<frugal::BF16>{},
        policies...};
    auto const report = trainer.fit(frugal::TensorDataset(set, {.batch = b}));
    CHECK(report.steps == 6);
    for (std::string const& line : report.warnings) std::printf("%s\n", line.c_str());
    ended.loss = report.train_loss;
  });
  net->to(c10::kCPU);
  ended.tensors = tensors_of(*net);
  return ended;
}

/// Excludes the memory that cuBLAS allocates once, at its first products.
Ended const& plain() {
  static Ended const kept = [] {
    run();
    return run();
  }();
  return kept;
}

double share_of_plain(char const* name, Ended const& ended) {
  double const share = static_cast<double>(ended.peak) / static_cast<double>(plain().peak);
  std::printf("%s: a peak of %lld MiB, %.2f of %lld MiB\n", name,
              static_cast<long long>(ended.peak / mib), share,
              static_cast<long long>(plain().peak / mib));
  return share;
}

TEST_CASE(
    "a run that keeps everything is reproducible, and its peak is that of its saved tensors") {
  Ended const again = run();
  CHECK(same_bits(again.tensors, plain().tensors));
  CHECK(again.loss == plain().loss);
  CHECK(std::isfinite(plain().loss));
  CHECK(plain().peak > blocks * 80 * mib);
}

TEST_CASE("Offload has the bits of a run that keeps everything, and a lower peak") {
  Ended const ended = run(frugal::Activations<frugal::Offload>{});
  CHECK(same_bits(ended.tensors, plain().tensors));
  CHECK(ended.loss == plain().loss);
  CHECK(share_of_plain("Offload", ended) < 0.75);
}

TEST_CASE("Recompute has the bits of a run that keeps everything, and a lower peak") {
  Ended const ended = run(frugal::Recompute<frugal::Segments<4>>{});
  CHECK(same_bits(ended.tensors, plain().tensors));
  CHECK(ended.loss == plain().loss);
  CHECK(share_of_plain("Recompute", ended) < 0.85);
}

TEST_CASE("Half has nearly the same loss, and a lower peak") {
  Ended const ended = run(frugal::Activations<frugal::BF16>{});
  CHECK(std::abs(ended.loss - plain().loss) < 0.02 * std::abs(plain().loss));
  // If they were equal, nothing would have been rounded.
  CHECK_FALSE(same_bits(ended.tensors, plain().tensors));
  CHECK(share_of_plain("Half", ended) < 0.92);
}

TEST_CASE("Offload trains where a run that keeps everything runs out of memory") {
  // The count of live tensors falls as soon as the host releases them. This tests the memory that
  // the copies have not read yet: the allocator must wait for it rather than request more.
  Ended const& whole = plain();
  std::int64_t const resting = memory::allocated();
  memory::Limit const limit(resting + whole.peak * 9 / 10);
  bool ran_out = false;
  try {
    run();
  } catch (std::exception const& error) {
    ran_out = frugal::detail::is_out_of_memory(std::current_exception());
    std::printf("without Offload: %s\n", error.what());
  }
  CHECK(ran_out);
  Ended const ended = run(frugal::Activations<frugal::Offload>{});
  CHECK(same_bits(ended.tensors, whole.tensors));
}

}  // namespace frugal_test::gpu_activations
