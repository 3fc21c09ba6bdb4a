// SPDX-License-Identifier: Apache-2.0
// Case 7: with a fast host and slow kernels, Device has the bits of a run without it, and holds no
// more batches on the GPU than its depth. Shapes: B samples, F numbers each.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "device_memory.hpp"
#include "support/reference.hpp"
#include "support/running.hpp"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::gpu_device_depth {

using namespace frugal_test::support;
namespace memory = frugal_test::device_memory;

constexpr std::int64_t b = 64;
constexpr std::int64_t f = 1 << 17;
constexpr std::int64_t batch_bytes = b * f * 4;  // 32 MiB
constexpr std::int64_t steps = 24;

/// Reduces a batch without a product, whose workspace would count as memory of batches.
struct Scales : torch::nn::Module {
  Scales() : weight_4(register_parameter("weight", table({4}, 17, 0))) {}
  at::Tensor forward(at::Tensor const& x_BF) {
    return (x_BF.view({x_BF.size(0), 4, -1}).mean(2) * weight_4).sum(1);
  }
  at::Tensor weight_4;
};

/// Writes each batch into the previous one's buffer, so that a late copy reads another batch.
struct Rewrites {
  std::int64_t at = 0;
  at::Tensor like_BF = table({b, 64}, 18, 0).repeat({1, f / 64});
  at::Tensor data_BF = at::empty({b, f});

  void seek(frugal::Cursor const& cursor) { at = static_cast<std::int64_t>(cursor.position) / b; }
  std::optional<frugal::Batch> next() {
    if (at == steps) return std::nullopt;
    at::mul_out(data_BF, like_BF, at::scalar_tensor(static_cast<double>(1 + at % 7)));
    at::Tensor const target_B = table({b}, 19, static_cast<std::uint32_t>(at++));
    return frugal::Batch{data_BF, target_B};
  }
};

/// Keeps the GPU busy before the batch is read: a copy that does not wait is detected.
struct Slow {
  std::vector<at::Tensor>* losses = nullptr;
  int* ahead = nullptr;  ///< steps at which the GPU had not finished the previous one
  std::shared_ptr<std::optional<at::cuda::CUDAEvent>> last =
      std::make_shared<std::optional<at::cuda::CUDAEvent>>();

  frugal::Loss operator()(std::shared_ptr<Scales>& net, frugal::Batch const& batch) const {
    if (last->has_value() && !(*last)->query()) ++*ahead;
    at::cuda::sleep(60'000'000);  // cycles: some 35 ms
    at::Tensor const loss = (net->forward(batch.data) - batch.target).square().mean();
    losses->push_back(loss.detach());
    last->emplace();
    (*last)->record(c10::cuda::getCurrentCUDAStream());
    return {.value = loss};
  }
};

struct Ended {
  std::map<std::string, at::Tensor> tensors;
  std::vector<at::Tensor> losses;
  double train_loss = 0;
  int ahead = 0;
};

template <class... Ps>
Ended run(Ps const&... policies) {
  Ended ended;
  auto const net = std::make_shared<Scales>();
  frugal::Trainer trainer{net, Slow{.losses = &ended.losses, .ahead = &ended.ahead},
                          frugal::Settings{.device = c10::Device(c10::kCUDA, 0)},
                          frugal::Optimize<frugal::AdamW>{.lr = 1e-2}, policies...};
  auto const report = trainer.fit(Rewrites{});
  CHECK(report.steps == steps);
  ended.train_loss = report.train_loss;
  net->to(c10::kCPU);
  ended.tensors = tensors_of(*net);
  for (at::Tensor& loss : ended.losses) loss = loss.cpu();
  return ended;
}

template <std::size_t Depth>
void holds(Ended const& plain) {
  CAPTURE(Depth);
  Ended ended;
  std::int64_t const peak =
      memory::peak_of([&] { ended = run(frugal::DevicePrefetch<frugal::Depth<Depth>>{}); });
  double const batches = static_cast<double>(peak) / static_cast<double>(batch_bytes);
  std::printf("Depth<%zu>: %.2f batches at most; ahead at %d of %d steps\n", Depth, batches,
              ended.ahead, static_cast<int>(steps));
  CHECK(same_bits(ended.tensors, plain.tensors));
  CHECK(ended.train_loss == plain.train_loss);
  REQUIRE(ended.losses.size() == plain.losses.size());
  for (std::size_t i = 0; i < plain.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(at::equal(ended.losses[i], plain.losses[i]));
  }
  // Otherwise the host was slow, and the rest proves nothing. A sanitizer slows it.
  if (std::getenv("FRUGAL_SLOWED") == nullptr) CHECK(ended.ahead > steps / 2);
  CHECK(batches <= static_cast<double>(Depth + 2));
  CHECK(batches >= static_cast<double>(Depth));
}

TEST_CASE("Device of any depth has the bits of a run without it, and its memory is bounded") {
  Ended const plain = run();
  holds<1>(plain);
  holds<2>(plain);
  holds<4>(plain);
}

}  // namespace frugal_test::gpu_device_depth
