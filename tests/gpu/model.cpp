// SPDX-License-Identifier: Apache-2.0
// Case 15: adapters, packed weights, masks, fake quantization, freezing and teachers give a GPU the
// losses of a CPU; with Recompute and CudaGraph a run has the bits of one without.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "counting_capture.hpp"
#include "support/running.hpp"

#include <ATen/Context.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::gpu_model {

using namespace frugal_test::gpu;
using namespace frugal_test::support;
using namespace frugal;

constexpr std::int64_t features = 32;
constexpr std::int64_t classes = 8;
constexpr std::int64_t batch = 32;
constexpr int warm_up = 3;
c10::Device const gpu(c10::kCUDA, 0);

/// An embedding, a convolution and linear layers, all of which the output depends on.
struct NetImpl : torch::nn::Module {
  torch::nn::Embedding embed{register_module("embed", torch::nn::Embedding(12, features))};
  torch::nn::Linear q{register_module("q", torch::nn::Linear(features, 64))};
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 64, 3).padding(1)))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(64, classes))};

  at::Tensor forward(at::Tensor const& x) {
    at::Tensor const tokens = (x * 3).abs().clamp_max(11).to(at::kLong);
    at::Tensor const images = conv(x.view({-1, 4, 2, 4})).mean({2, 3});
    return head((q(x + embed(tokens).mean(1)) + images).tanh());
  }
};
TORCH_MODULE(Net);

Net network(std::uint64_t seed = 5) {
  torch::manual_seed(seed);
  return {};
}

struct Ran {
  Net net{nullptr};
  Report report{};
  std::map<std::string, at::Tensor> tensors{};

  double loss() const { return report.train_loss; }
  double validation() const { return report.last()["loss"]; }
};

template <class Objective, class... Policies>
Ran train_with(Objective const& objective, c10::Device device, Policies const&... policies) {
  // cuDNN would compute convolutions in TF32.
  at::globalContext().setAllowTF32CuDNN(false);
  Ran ran{.net = network()};
  Trainer trainer{ran.net, objective, Settings{.epochs = 3, .seed = 7, .device = device},
                  Optimize<AdamW>{.lr = 2e-3}, policies...};
  ran.report =
      trainer.fit(TensorDataset(samples(8 * batch, 91, features, classes), {.batch = batch}),
                  TensorDataset(samples(2 * batch, 92, features, classes), {.batch = batch}));
  ran.net->to(c10::kCPU);
  ran.tensors = tensors_of(*ran.net);
  return ran;
}

template <class... Policies>
Ran train(c10::Device device, Policies const&... policies) {
  return train_with(CrossEntropy{}, device, policies...);
}

/// The GPU's run, after its losses were compared with the CPU's.
template <class... Policies>
Ran as_on_a_cpu(char const* what, double tolerance, Policies const&... policies) {
  Ran const here = train(c10::kCPU, policies...);
  Ran there = train(gpu, policies...);
  std::printf("%s: loss %.7f and %.7f, validation %.7f and %.7f\n", what, here.loss(), there.loss(),
              here.validation(), there.validation());
  CHECK(std::abs(here.loss() - there.loss()) <= tolerance * here.loss());
  CHECK(std::abs(here.validation() - there.validation()) <= tolerance * here.validation());
  CHECK(here.tensors.size() == there.tensors.size());
  CHECK(here.report.warnings == there.report.warnings);
  return there;
}

/// The largest difference, in relation to the largest expected number.
double relative(at::Tensor const& found, at::Tensor const& expected) {
  return distance(found, expected) / expected.abs().max().item<double>();
}

/// Checks that a run changed its adapters alone.
void check_base(Ran const& ran) {
  int adapters = 0;
  auto const before = tensors_of(*network());
  for (auto const& [name, tensor] : ran.tensors) {
    CAPTURE(name);
    auto const was = before.find(name);
    if (was == before.end()) {
      ++adapters;
    } else {
      CHECK(at::equal(tensor, was->second));
    }
  }
  CHECK(adapters == 6);
}

using Adapters = Lora<Rank<4>, Alpha<8>, On<"q", "conv", "embed">>;

TEST_CASE("adapters of an embedding, a convolution and a linear layer") {
  Ran const plain = train(gpu);
  Ran ran = as_on_a_cpu("Lora", 1e-4, Adapters{});
  check_base(ran);
  CHECK(ran.loss() != plain.loss());
}

TEST_CASE("a merge on the GPU keeps the outputs, and its undoing the bits") {
  Ran ran = train(gpu, Adapters{});
  ran.net->to(gpu);
  ran.net->eval();
  at::NoGradGuard const no_gradients;
  at::Tensor const input = samples(batch, 93, features, classes).data.to(gpu);
  at::Tensor const adapted = ran.net->forward(input).clone();
  auto const before = tensors_of(*ran.net);
  merge(ran.net);
  CHECK(distance(ran.net->forward(input), adapted) < 1e-5);
  unmerge(ran.net);
  CHECK(same_bits(tensors_of(*ran.net), before));
  CHECK(at::equal(ran.net->forward(input), adapted));
}

TEST_CASE("DoRA, and a base that is packed in NF4") {
  as_on_a_cpu("DoRA", 1e-4, Lora<Rank<4>, Alpha<8>, On<"q", "conv">, Dora>{});
  as_on_a_cpu("NF4", 1e-3, Lora<Rank<4>, Alpha<8>, On<"q", "head">, Base<NF4>>{});
}

TEST_CASE("a graph of a step with adapters has the bits of eager steps") {
  auto const eager_log = std::make_shared<CaptureLog>();
  auto const log = std::make_shared<CaptureLog>();
  Ran const eager = train(gpu, Adapters{}, counted(eager_log, never));
  Ran const graph = train(gpu, Adapters{}, counted(log, warm_up));
  CHECK(eager_log->captures == 0);
  CHECK(log->captures == 1);
  CHECK(log->broken_off == 0);
  CHECK(log->replays == 24 - warm_up);
  CHECK(same_bits(eager.tensors, graph.tensors));
  CHECK(eager.loss() == graph.loss());
}

/// Backward runs in a thread of its own on a GPU, and computes forward again there.
TEST_CASE("layers that are computed again in backward have their adapters") {
  auto const run = [](auto const&... policies) {
    auto const module = std::make_shared<Mlp>(
        Mlp::Shape{.features = features, .hidden = 64, .classes = classes, .dropout = 0.2});
    Trainer trainer{module,
                    CrossEntropy{},
                    Settings{.epochs = 2, .seed = 7, .device = gpu},
                    Optimize<AdamW>{.lr = 1e-2},
                    Lora<Rank<4>, Alpha<8>, On<"first", "second">>{},
                    policies...};
    trainer.fit(TensorDataset(samples(8 * batch, 91, features, classes), {.batch = batch}));
    return tensors_of(*module);
  };
  CHECK(same_bits(run(), run(Recompute<Segments<2>>{})));
}

TEST_CASE("frozen layers keep their bits, and the others learn") {
  Ran ran = as_on_a_cpu("Freeze", 1e-4, Freeze<Where<"q.*", "embed.*">>{});
  auto const before = tensors_of(*network());
  CHECK(at::equal(ran.tensors.at("q.weight"), before.at("q.weight")));
  CHECK_FALSE(at::equal(ran.tensors.at("conv.weight"), before.at("conv.weight")));
}

TEST_CASE("masks are those of a CPU, and what is pruned stays zero") {
  auto const zeros = [](Ran const& ran) { return ran.tensors.at("q.weight").eq(0); };
  using TwoOfFour = Prune<NofM<2, 4>, Where<"q.weight", "conv.weight">>;
  Ran ran = as_on_a_cpu("Prune", 1e-4, TwoOfFour{});
  CHECK(zeros(ran).sum().item<std::int64_t>() == 64 * features / 2);
  CHECK(at::equal(zeros(ran), zeros(train(c10::kCPU, TwoOfFour{}))));
}

TEST_CASE("training under the rounding of INT8, and what it converts to") {
  Ran ran = as_on_a_cpu("Qat", 2e-2, Qat<INT8>{});
  Ran const plain = train(gpu);
  CHECK(ran.loss() != plain.loss());
  ran.net->to(gpu);
  ran.net->eval();
  at::NoGradGuard const no_gradients;
  at::Tensor const input = samples(batch, 93, features, classes).data.to(gpu);
  at::Tensor const rounded = ran.net->forward(input).clone();
  convert(ran.net);
  CHECK(relative(ran.net->forward(input), rounded) < 0.05);
}

TEST_CASE("weights of a quarter of the bytes, on the GPU") {
  at::NoGradGuard const no_gradients;
  at::Tensor const input = samples(batch, 93, features, classes).data;
  Net here = network(), there = network();
  quantize<INT8>(here);
  there->to(gpu);
  quantize<INT8>(there);
  CHECK(relative(there->forward(input.to(gpu)).cpu(), here->forward(input)) < 1e-2);
  CHECK(relative(there->forward(input.to(gpu)).cpu(), network()->forward(input)) < 5e-2);
}

TEST_CASE("a teacher on the GPU teaches what it teaches on a CPU") {
  auto const taught = [](c10::Device device) {
    Distill<Temperature<4>> const distill{.teachers = {Teacher(network(11))}, .alpha = 0.5};
    return train_with(distill.objective(CrossEntropy{}), device, distill);
  };
  Ran const here = taught(c10::kCPU);
  Ran const there = taught(gpu);
  CHECK(std::abs(here.loss() - there.loss()) <= 1e-4 * here.loss());
  CHECK(std::abs(here.loss() - train(c10::kCPU).loss()) > 1e-2);
}

TEST_CASE("channels go on the GPU as they go on a CPU") {
  at::Tensor const input = samples(batch, 93, features, classes).data;
  Net here = network(), there = network();
  there->to(gpu);
  static_cast<void>(prune_structured(here, input, Structured<KeepShare<0.5>>{}));
  static_cast<void>(prune_structured(there, input.to(gpu), Structured<KeepShare<0.5>>{}));
  CHECK(here->q->weight.size(0) == there->q->weight.size(0));
  CHECK(here->q->weight.size(0) < 64);
  at::NoGradGuard const no_gradients;
  CHECK(distance(here->forward(input), there->forward(input.to(gpu)).cpu()) < 1e-4);
}

}  // namespace frugal_test::gpu_model
