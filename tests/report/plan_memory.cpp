// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/torch.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/plan_memory.hpp>

#include <memory>
#include <vector>

namespace frugal_test::trainer_plan_memory {

namespace fr = frugal;

struct Layers : torch::nn::Module {
  explicit Layers(torch::nn::Sequential inner) : all(std::move(inner)) {
    register_module("all", all);
  }
  at::Tensor forward(at::Tensor x) { return all->forward(std::move(x)); }
  torch::nn::Sequential all;
};

std::shared_ptr<Layers> mlp() {
  torch::nn::Sequential all;
  for (int i = 0; i < 8; ++i) {
    all->push_back(torch::nn::Linear(128, 128));
    all->push_back(torch::nn::ReLU());
    all->push_back(torch::nn::Dropout(0.1));
  }
  all->push_back(torch::nn::Linear(128, 10));
  return std::make_shared<Layers>(all);
}

std::shared_ptr<Layers> convolutions() {
  torch::nn::Sequential all;
  for (int i = 0; i < 4; ++i) {
    all->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(i == 0 ? 3 : 16, 16, 3).padding(1)));
    all->push_back(torch::nn::BatchNorm2d(16));
    all->push_back(torch::nn::ReLU());
  }
  all->push_back(torch::nn::AdaptiveAvgPool2d(1));
  all->push_back(torch::nn::Flatten());
  all->push_back(torch::nn::Linear(16, 10));
  return std::make_shared<Layers>(all);
}

/// Pre-norm attention and MLP, with residuals; classifies the mean of the tokens.
struct Block : torch::nn::Module {
  static constexpr std::int64_t width = 64;
  Block() {
    register_module("before", before);
    register_module("after", after);
    register_module("qkv", qkv);
    register_module("project", project);
    register_module("up", up);
    register_module("down", down);
    register_module("head", head);
  }
  at::Tensor forward(at::Tensor const& x) {
    auto const parts = qkv->forward(before->forward(x)).chunk(3, -1);
    auto const heads = [&](at::Tensor const& part) {
      return part.view({x.size(0), x.size(1), 4, width / 4}).transpose(1, 2);
    };
    at::Tensor const q = heads(parts[0]), k = heads(parts[1]), v = heads(parts[2]);
    at::Tensor const scores = (q.matmul(k.transpose(-2, -1)) / 4.0).softmax(-1);
    at::Tensor const mixed = scores.matmul(v).transpose(1, 2).reshape(x.sizes());
    at::Tensor const y = x + project->forward(mixed);
    return head->forward((y + down->forward(at::gelu(up->forward(after->forward(y))))).mean(1));
  }
  torch::nn::LayerNorm before{torch::nn::LayerNormOptions({width})};
  torch::nn::LayerNorm after{torch::nn::LayerNormOptions({width})};
  torch::nn::Linear qkv{width, 3 * width}, project{width, width}, up{width, 4 * width},
      down{4 * width, width}, head{width, 10};
};

fr::Batch batch_of(at::IntArrayRef sizes) {
  return {at::rand(sizes), at::zeros({sizes[0]}, at::kLong)};
}

/// The peak of the CPU's tensors in real steps, those of the module and of the batch included.
template <class Make, class... Ps>
double measured(Make&& make, at::IntArrayRef sizes, int micro_batches, Ps const&... policies) {
  fr::detail::HostMeter::install();
  std::int64_t const before = fr::detail::HostMeter::live();
  fr::Trainer trainer{make(), fr::CrossEntropy{}, fr::Settings{.epochs = 3}, policies...};
  std::vector<fr::Batch> const source(static_cast<std::size_t>(micro_batches), batch_of(sizes));
  fr::detail::HostMeter::forget_peak();
  static_cast<void>(trainer.fit(source));
  return static_cast<double>(fr::detail::HostMeter::peak() - before);
}

template <class Make, class... Ps>
fr::RecipeMemory planned(Make&& make, at::IntArrayRef sizes, Ps const&... policies) {
  fr::Trainer trainer{make(), fr::CrossEntropy{}, fr::Settings{.epochs = 3}, policies...};
  return fr::plan_memory(trainer, batch_of(sizes));
}

/// Within 10%: temporaries of CPU kernels differ from what an operator's result takes.
template <class Make, class... Ps>
void compare(Make&& make, at::IntArrayRef sizes, int micro_batches, bool on_meta,
             Ps const&... policies) {
  fr::RecipeMemory const plan = planned(make, sizes, policies...);
  double const real = measured(make, sizes, micro_batches, policies...);
  CAPTURE(plan.note);
  CAPTURE(plan.peak);
  CAPTURE(plan.activations);
  CAPTURE(plan.pass_peak);
  CAPTURE(real);
  CHECK(plan.on_meta == on_meta);
  CHECK(static_cast<double>(plan.peak) == doctest::Approx(real).epsilon(0.1));
}

struct MakeBlock {
  auto operator()() const { return std::make_shared<Block>(); }
};
constexpr MakeBlock block;
using Adam = fr::Optimize<fr::AdamW>;

TEST_CASE("the planned peak of an MLP is that of its steps") {
  compare(mlp, {256, 128}, 1, true, Adam{});
}
TEST_CASE("the planned peak of a network of convolutions is that of its steps") {
  compare(convolutions, {16, 3, 32, 32}, 1, true, Adam{});
}
TEST_CASE("the planned peak of a transformer block is that of its steps") {
  compare(block, {16, 48, Block::width}, 1, true, Adam{});
}
TEST_CASE(
    "Recompute, Activations and Accumulate change the planned peak as they change the real one") {
  compare(mlp, {256, 128}, 1, true, Adam{}, fr::Recompute<>{});
  compare(mlp, {256, 128}, 1, true, Adam{}, fr::Activations<fr::BF16>{});
  compare(mlp, {64, 128}, 4, true, Adam{}, fr::Accumulate<4>{});
}
TEST_CASE("what autocast saves is found by a dry run on the CPU, and said so") {
  compare(block, {16, 48, Block::width}, 1, false, Adam{}, fr::Precision<fr::BF16>{});
  auto const plan = planned(block, {16, 48, Block::width}, Adam{}, fr::Precision<fr::BF16>{});
  CHECK(plan.note.find("the Precision does not act on meta tensors") != std::string::npos);
}

TEST_CASE("weights, gradients and moments are counted by hand") {
  auto const make = [] {
    return std::make_shared<Layers>(torch::nn::Sequential(torch::nn::Linear(8, 3)));
  };
  // 27 parameters of 4 bytes; AdamW has two moments.
  auto const plan = planned(make, {4, 8}, Adam{});
  CHECK(plan.weights == 108);
  CHECK(plan.gradients == 108);
  CHECK(plan.optimizer_state == 216);
  CHECK(plan.checkpoint == 324);
  CHECK(plan.batch == 4 * 8 * 4 + 4 * 8);
  CHECK(plan.buffers == 0);
  CHECK(plan.kept_weights == 0);
  auto const averaged = planned(make, {4, 8}, Adam{}, fr::Average<fr::Ema<>>{});
  CHECK(averaged.kept_weights == 108);
  CHECK(averaged.checkpoint == 432);
}

TEST_CASE("a dry run leaves weights, gradients, statistics, modes and generators as they were") {
  auto const module = convolutions();
  module->all->operator[](1)->eval();
  fr::Trainer trainer{module, fr::CrossEntropy{}, fr::Settings{}, Adam{}};
  std::vector<at::Tensor> before;
  for (at::Tensor const& each : module->parameters()) before.push_back(each.detach().clone());
  for (at::Tensor const& each : module->buffers()) before.push_back(each.clone());
  at::Tensor const gradient = at::ones_like(module->parameters()[0]);
  module->parameters()[0].mutable_grad() = gradient;
  fr::Batch const batch = batch_of({2, 3, 8, 8});
  at::manual_seed(3);
  at::Tensor const drawn = at::rand({3});
  at::manual_seed(3);
  static_cast<void>(fr::plan_memory(trainer, batch));
  CHECK(at::rand({3}).equal(drawn));
  std::size_t i = 0;
  for (at::Tensor const& each : module->parameters()) CHECK(each.equal(before[i++]));
  for (at::Tensor const& each : module->buffers()) CHECK(each.equal(before[i++]));
  CHECK(module->parameters()[0].grad().is_same(gradient));
  CHECK_FALSE(module->all->operator[](1)->is_training());
  CHECK(module->all->operator[](2)->is_training());
  // It trains as before.
  std::vector<fr::Batch> const source{batch_of({2, 3, 8, 8})};
  CHECK(trainer.fit(source).exit_code() == 0);
  CHECK(module->parameters()[0].device().is_cpu());
}

TEST_CASE("an objective that reads values is measured on the CPU") {
  auto const reads = [](std::shared_ptr<Layers>& net, fr::Batch const& batch) {
    at::Tensor const out = net->forward(batch.data);
    return out.sum() * (out.sum().item<double>() > 0 ? 1 : 2);
  };
  fr::Trainer trainer{mlp(), reads, fr::Settings{}, Adam{}};
  auto const plan = fr::plan_memory(trainer, batch_of({64, 128}));
  CHECK_FALSE(plan.on_meta);
  CHECK(plan.note.find("CPU") != std::string::npos);
  CHECK(plan.activations > 64 * 128 * 4);
}

}  // namespace frugal_test::trainer_plan_memory
