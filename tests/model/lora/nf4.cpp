// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/load_weights.hpp>
#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/model/lora/nf4.hpp>
#include <frugal/model/quantize.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/report/plan_memory.hpp>
#include <frugal/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::model_lora_nf4 {

using namespace frugal_test::support;
using namespace frugal;

at::Tensor unpacked(Nf4Weight& packed) {
  return Nf4Weight::unpack(packed.parts(), packed.sizes(), at::kFloat);
}

TEST_CASE("a packed weight is the nearest of 16 values in each block, but for the scales' 8 bits") {
  torch::manual_seed(1);
  at::Tensor const weight =
      torch::randn({96, 100});  // blocks end within rows, and the last one early
  Nf4Weight packed(weight);
  at::Tensor const found = unpacked(packed);
  at::Tensor const values = at::tensor(
      std::vector<float>(frugal::detail::nf4_values.begin(), frugal::detail::nf4_values.end()));
  at::Tensor const blocks = weight.flatten().view({-1, 64});
  at::Tensor const scales = blocks.abs().amax(1, /*keepdim=*/true);
  at::Tensor const nearest = ((blocks / scales).unsqueeze(-1) - values).abs().argmin(-1);
  at::Tensor const exact = values.index({nearest}) * scales;
  // The scales' ratio is below 2^1.99 here, so that their steps are a 128th of an octave.
  CHECK((scales.max() / scales.min()).log2().item<double>() < 1.99);
  double const most = std::exp2(0.5 / 128) - 1;
  CHECK(((found.flatten().view({-1, 64}) - exact).abs() <= most * exact.abs() + 1e-7)
            .all()
            .item<bool>());
  std::int64_t bytes = 0;
  for (at::Tensor const& part : packed.parts()) bytes += static_cast<std::int64_t>(part.nbytes());
  CHECK(static_cast<double>(bytes) <= 0.53 * static_cast<double>(weight.numel()));
}

TEST_CASE("zeros, single values and sizes that no block divides are packed") {
  Nf4Weight zeros(at::zeros({3, 5}));
  CHECK(at::equal(unpacked(zeros), at::zeros({3, 5})));
  at::Tensor one = at::zeros({2, 70});
  one[1][3] = -2.5;
  Nf4Weight single(one);
  CHECK(at::allclose(unpacked(single), one, 0.01, 1e-6));
}

/// The largest error of a block's scale, as a share of it.
double worst_scale(at::Tensor const& weight) {
  Nf4Weight packed(weight);
  at::Tensor const scales = weight.view({-1, 64}).abs().amax(1);
  return (unpacked(packed).view({-1, 64}).abs().amax(1) / scales - 1).abs().max().item<double>();
}

TEST_CASE("blocks with outliers do not spoil the scales of others") {
  torch::manual_seed(1);
  at::Tensor const small = 0.02 * torch::randn({256, 64});
  at::Tensor one = small.clone();
  one[100][7] = 8;
  CHECK(worst_scale(one) < 0.03);  // about their mean, 8 bits were 1.56 too large
  at::Tensor half = small.clone();
  half.slice(0, 0, 128).mul_(400);
  CHECK(worst_scale(half) < 0.03);
  CHECK(worst_scale(torch::cat({1e-6 * small, 1e6 * small})) < 0.1);
  CHECK(worst_scale(small) < 0.003);
}

TEST_CASE("numbers too small to be divided by are zero") {
  at::Tensor const tiny = at::full({1, 64}, 1e-40);
  Nf4Weight packed(tiny);
  CHECK(at::equal(unpacked(packed), at::zeros({1, 64})));
}

TEST_CASE("a weight that is not finite is an error that names the layer and the place") {
  for (double const bad :
       {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    torch::nn::Sequential net(torch::nn::Linear(16, 128), torch::nn::Linear(128, 128));
    {
      at::NoGradGuard const no_gradients;
      net->named_parameters()["1.weight"][2][5] = bad;
    }
    auto const names = net->named_parameters().keys();
    std::string const text =
        std::string("'1' is ") + (std::isnan(bad) ? "NaN" : "infinite") + " at [2, 5]";
    CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"*">, Base<NF4>>{}), doctest::Contains(text.c_str()),
                         ModuleError);
    CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"*">, Pissa>{}), doctest::Contains(text.c_str()),
                         ModuleError);
    CHECK(net->named_parameters().keys() == names);  // the first layer could have been packed
  }
  CHECK_THROWS_AS(Nf4Weight(at::full({1, 64}, 1e300, at::kDouble)), ModuleError);
}

using Policy = Lora<Rank<2>, Alpha<4>, On<"0", "2">, AlsoTrain<"4.*">, Base<NF4>>;

torch::nn::Sequential network() {
  torch::manual_seed(2);
  return torch::nn::Sequential(torch::nn::Linear(16, 128), torch::nn::ReLU(),
                               torch::nn::Linear(128, 128), torch::nn::ReLU(),
                               torch::nn::Linear(128, 3));
}

TEST_CASE("outputs and gradients are those of a layer with the unpacked weight") {
  torch::nn::Sequential net = network();
  torch::nn::Sequential other = network();
  adapt(net, Policy{});
  {
    at::NoGradGuard const no_gradients;
    auto& packed = dynamic_cast<Nf4Weight&>(*net->children()[2]->named_children()["nf4"]);
    other->named_parameters()["2.weight"].copy_(unpacked(packed));
    auto& first = dynamic_cast<Nf4Weight&>(*net->children()[0]->named_children()["nf4"]);
    other->named_parameters()["0.weight"].copy_(unpacked(first));
  }
  for (auto const& shape :
       {std::vector<std::int64_t>{7, 16}, std::vector<std::int64_t>{2, 7, 16}}) {
    at::Tensor const input = torch::randn(shape, torch::requires_grad());
    at::Tensor const found = net->forward(input);
    at::Tensor const expected = other->forward(input);
    CHECK(at::allclose(found, expected, 1e-5, 1e-6));
    auto const gradient = [&](at::Tensor const& out) {
      return torch::autograd::grad({out.square().sum()}, {input})[0];
    };
    CHECK(at::allclose(gradient(found), gradient(expected), 1e-4, 1e-5));
  }
}

TEST_CASE("a run over a packed base saves the adapters alone, and resumes to the same bits") {
  auto const trained = [](std::filesystem::path const& run, std::uint64_t steps) {
    torch::nn::Sequential net = network();
    torch::manual_seed(3);
    TensorDataset data(torch::randn({64, 16}), torch::randint(0, 3, {64}), {.batch = 8});
    Trainer trainer{net,
                    CrossEntropy{},
                    Settings{.run_dir = run, .epochs = 4, .steps = steps},
                    Optimize<AdamW>{.lr = 0.01},
                    Policy{},
                    Precision<BF16>{},
                    Checkpoint<Every<4>>{}};
    CHECK(plan_memory(trainer, *data.next()).checkpoint < 30'000);  // 78 kB with the whole weights
    static_cast<void>(trainer.fit(data));
    return net;
  };
  TemporaryFolder const folder;
  auto const whole = trained(folder / "whole", 20);
  trained(folder / "cut", 9);
  auto const resumed = trained(folder / "cut", 20);
  for (auto const& item : resumed->named_parameters()) {
    CHECK(at::equal(item.value(), whole->named_parameters()[item.key()]));
  }
}

TEST_CASE("what cannot be packed or merged is an error") {
  torch::nn::Sequential net(torch::nn::Embedding(10, 64));
  CHECK_THROWS_AS(adapt(net, Lora<On<"0">, Base<NF4>>{}), SettingsError);
  CHECK(net->named_parameters().keys() == std::vector<std::string>{"0.weight"});
  torch::nn::Sequential packed = network();
  adapt(packed, Policy{});
  CHECK_THROWS_WITH_AS(merge(packed), doctest::Contains("4 bits"), SettingsError);
  // An adapter that would need the weight's numbers, and one that was not made with Base<NF4>.
  CHECK_THROWS_WITH_AS(adapt(packed, Lora<Rank<2>, Dora, On<"2">, AdapterName<"dora">>{}),
                       doctest::Contains("no weight in floating point"), SettingsError);
  CHECK_THROWS_WITH_AS(adapt(packed, Lora<Rank<2>, Pissa, On<"2">, AdapterName<"pissa">>{}),
                       doctest::Contains("no weight in floating point"), SettingsError);
  adapt(packed, Lora<Rank<2>, On<"2">, AdapterName<"plain">>{});
  use_adapter(packed, "plain");
  CHECK_THROWS_WITH_AS(merge(packed), doctest::Contains("4 bits"), SettingsError);
}

TEST_CASE("a packed module is saved without the weights that it has not, and loads again") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = network();
  adapt(net, Policy{});
  SavedWeights const saved = save_weights(net, folder.path());
  CHECK(saved.total_size < 20'000);  // 76 kB of FP32
  torch::nn::Sequential other = network();
  {
    at::NoGradGuard const no_gradients;
    for (at::Tensor const& each : other->parameters()) each.add_(1);
  }
  adapt(other, Policy{});
  at::Tensor const input = torch::randn({4, 16});
  CHECK_FALSE(at::allclose(other->forward(input), net->forward(input)));
  load_weights(other, folder.path());
  CHECK(at::equal(other->forward(input), net->forward(input)));
}

TEST_CASE(
    "a packed weight has no memory after a conversion, is not quantized again, and reads as NaN") {
  torch::nn::Sequential net = network();
  at::Tensor const weight = net->named_parameters()["2.weight"];
  adapt(net, Policy{});
  CHECK_FALSE(net->named_parameters().contains("2.weight"));
  CHECK((weight.sizes() == at::IntArrayRef{128, 128}));
  CHECK(at::matmul(torch::randn({2, 128}), weight).isnan().all().item<bool>());
  at::NoGradGuard const no_gradients;
  at::Tensor const input = torch::randn({4, 16});
  at::Tensor const before = net->forward(input);
  CHECK_THROWS_AS(quantize<INT8>(net, QuantizeOptions{.only = NamePatterns{"2"}}), SettingsError);
  CHECK(at::equal(net->forward(input), before));
  net->to(at::kDouble);  // as a move to another device: what is no parameter is not converted
  CHECK(weight.storage().nbytes() == sizeof(float));
}

TEST_CASE("a packed layer refuses rows of another width, as the layer did") {
  torch::nn::Sequential net = network();
  adapt(net, Policy{});
  remove_adapters(net);
  CHECK_THROWS_AS(static_cast<void>(net[0]->as<torch::nn::Linear>()->forward(torch::randn({4, 8}))),
                  c10::Error);
}

TEST_CASE("without its adapters a packed base computes, and what is not packed is trained") {
  torch::nn::Sequential net = network();
  adapt(net, Policy{});
  remove_adapters(net);
  at::Tensor const input = torch::randn({4, 16});
  net->forward(input).sum().backward();
  for (auto const& item : net->named_parameters()) {
    CAPTURE(item.key());
    CHECK(item.value().grad().defined());
  }
  CHECK(net->parameters().size() == 4);  // three biases, and the last weight
}

}  // namespace frugal_test::model_lora_nf4
