// SPDX-License-Identifier: Apache-2.0
#include <c10/core/InferenceMode.h>
#include <doctest/doctest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <frugal/model/load_weights.hpp>
#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/model/lora/peft.hpp>
#include <frugal/model/quantize.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::model_lora {

using namespace frugal_test::support;
using namespace frugal;

/// The network of tests/reference/make_lora.py.
struct NetImpl : torch::nn::Module {
  torch::nn::Embedding embed{register_module("embed", torch::nn::Embedding(10, 6))};
  torch::nn::Linear q_proj{register_module("q_proj", torch::nn::Linear(6, 8))};
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 8, 3).padding(1)))};
  torch::nn::Linear v_proj{register_module("v_proj", torch::nn::Linear(8, 3))};

  at::Tensor forward(at::Tensor const& rows);
  at::Tensor data, images, tokens;
};
TORCH_MODULE(Net);

at::Tensor NetImpl::forward(at::Tensor const& rows) {
  auto const type = q_proj->weight.scalar_type();
  at::Tensor const hidden =
      q_proj(data.index_select(0, rows).to(type) + embed(tokens.index_select(0, rows)).mean(1)) +
      conv(images.index_select(0, rows).to(type)).mean({2, 3});
  return v_proj(hidden.tanh());
}

struct File {
  Json file = reference("lora.json");

  Net network() const {
    Net net;
    at::NoGradGuard const no_gradients;
    for (auto& item : net->named_parameters()) {
      Json const& start = file.at("start").at(item.key());
      item.value().copy_(tensor_in(start.at("values"), shape_in(start.at("shape"))));
    }
    net->data = tensor_in(file.at("data"), {40, 6});
    net->images = tensor_in(file.at("images"), {40, 2, 5, 5});
    net->tokens = at::tensor(file.at("tokens").get<std::vector<std::int64_t>>()).view({40, 4});
    return net;
  }
  TensorDataset batches() const {
    at::Tensor const target = at::tensor(file.at("target").get<std::vector<std::int64_t>>());
    return TensorDataset(at::arange(40), target, {.batch = 8, .shuffle = false});
  }
  Json const& of(std::string const& name) const { return case_named(file.at("cases"), name); }
};

at::Tensor part_of(LoraAdapter& adapter, std::string const& part) {
  return part == "A" ? adapter.a() : part == "B" ? adapter.b() : adapter.magnitude();
}

template <class Policy>
void equals_peft(std::string const& name, double const tolerance = 1e-5) {
  CAPTURE(name);
  File const file;
  Json const& which = file.of(name);
  auto const off = [&](at::Tensor const& found, Json const& exact) {
    return distance(found, tensor_in(exact, found.sizes().vec(), at::kDouble));
  };
  Net net = file.network();
  adapt(net, Policy{});
  at::Tensor const every = at::arange(40);
  Json const& single = which.at("float32");
  Json const& exact = which.at("float64");
  auto const each_part = [&](auto&& use) {
    int parts = 0;
    for (auto& found : frugal::detail::find_adapters(*net)) {
      for (std::string const part : {"A", "B", "magnitude"}) {
        at::Tensor tensor = part_of(*found.adapter, part);
        if (!tensor.defined()) continue;
        ++parts;
        use(found.layer.name + "." + part, tensor);
      }
    }
    CHECK(parts == static_cast<int>(single.at("start").size()));
  };
  {
    at::NoGradGuard const no_gradients;
    each_part([&](std::string const& key, at::Tensor const& tensor) {
      at::Tensor const start = tensor_in(single.at("start").at(key), tensor.sizes().vec());
      if (key.ends_with("magnitude")) {
        CHECK(at::allclose(tensor, start));  // it begins as the rows' norms
      } else {
        tensor.copy_(start);
      }
    });
    CHECK(off(net(every), exact.at("first_outputs")) <= 1e-6);
  }
  Trainer trainer{net, CrossEntropy{}, Settings{.epochs = 10},
                  Optimize<AdamW>{.lr = file.file.at("lr"), .weight_decay = 0.01}, Policy{}};
  CHECK(trainer.fit(file.batches()).steps == 50);
  each_part([&](std::string const& key, at::Tensor const& tensor) {
    CAPTURE(key);
    CHECK(off(tensor, exact.at("trained").at(key)) <= tolerance);
  });
  at::NoGradGuard const no_gradients;
  at::Tensor const adapted = net(every);
  CHECK(off(adapted, exact.at("outputs")) <= 2 * tolerance);
  std::vector<at::Tensor> before;
  for (at::Tensor const& each : net->parameters()) before.push_back(each.clone());
  merge(net);
  CHECK(at::allclose(net(every), adapted, 1e-5, 1e-5));
  CHECK(off(net(every), exact.at("merged_outputs")) <= 2 * tolerance);
  unmerge(net);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(at::equal(net->parameters()[i], before[i]));
  CHECK(at::equal(net(every), adapted));
}

TEST_CASE("outputs, 50 steps and merged outputs are those of PEFT") {
  equals_peft<Lora<Rank<2>, Alpha<4>, On<"q_proj", "v_proj", "conv", "embed">>>("lora");
  equals_peft<Lora<Rank<4>, Alpha<3>, RankStabilized, On<"q_proj", "v_proj", "conv", "embed">>>(
      "rank-stabilized");
  equals_peft<Lora<Rank<2>, Alpha<4>, Dora, On<"q_proj", "v_proj", "conv">>>("dora");
  equals_peft<Lora<Rank<2>, Alpha<4>, Dora, On<"q_proj", "embed">>>("dora-embedding");
}

TEST_CASE("PiSSA begins with the base's largest singular values, up to their signs") {
  File const file;
  Net net = file.network();
  at::NoGradGuard const no_gradients;
  at::Tensor const every = at::arange(40);
  at::Tensor const plain = net(every);
  adapt(net, Lora<Rank<2>, Alpha<2>, Pissa, On<"q_proj", "v_proj">>{});
  CHECK(at::allclose(net(every), plain, 1e-5, 1e-6));
  for (auto& found : frugal::detail::find_adapters(*net)) {
    CAPTURE(found.layer.name);
    auto const of = [&](char const* part) {
      at::Tensor const like = part_of(*found.adapter, part);
      return tensor_in(file.of("pissa").at("float32").at("start").at(found.layer.name + "." + part),
                       like.sizes().vec());
    };
    CHECK(at::allclose(found.adapter->product(), of("B").mm(of("A")), 1e-4, 1e-5));
  }
}

TEST_CASE("PiSSA leaves the base as it is, and its adapter begins as no change at all") {
  File const file;
  Net net = file.network();
  at::NoGradGuard const no_gradients;
  at::Tensor const every = at::arange(40);
  at::Tensor const weight = net->q_proj->weight.clone();
  at::Tensor const plain = net(every);
  adapt(net, Lora<Rank<2>, Alpha<2>, Pissa, On<"q_proj", "v_proj">>{});
  CHECK(at::equal(net(every), plain));
  CHECK(at::equal(net->q_proj->weight, weight));
  for (auto& found : frugal::detail::find_adapters(*net)) {
    found.adapter->a().mul_(1.1);
    found.adapter->b().add_(0.1);
  }
  at::Tensor const trained = net(every);
  CHECK_FALSE(at::allclose(trained, plain, 1e-2, 1e-2));
  merge(net);
  CHECK(at::allclose(net(every), trained, 1e-5, 1e-5));
  unmerge(net);
  remove_adapters(net);
  CHECK(at::equal(net(every), plain));
}

TEST_CASE("PiSSA with DoRA begins as no change, and merges to what it computes") {
  File const file;
  Net net = file.network();
  at::NoGradGuard const no_gradients;
  at::Tensor const every = at::arange(40);
  at::Tensor const plain = net(every);
  adapt(net, Lora<Rank<2>, Alpha<2>, Pissa, Dora, On<"q_proj">>{});
  CHECK(at::allclose(net(every), plain, 1e-5, 1e-6));
  LoraAdapter& adapter = *frugal::detail::find_adapters(*net).front().adapter;
  adapter.a().mul_(1.1);
  adapter.magnitude().mul_(1.5);
  at::Tensor const trained = net(every);
  CHECK_FALSE(at::allclose(trained, plain, 1e-2, 1e-2));
  merge(net);
  CHECK(at::allclose(net(every), trained, 1e-5, 1e-5));
}

TEST_CASE("a PiSSA run resumes where the decomposition has other bits, as on another processor") {
  using Policy = Lora<Rank<2>, Pissa, On<"q_proj">>;
  File const file;
  auto const trained = [&](std::filesystem::path const& run, std::uint64_t steps, bool elsewhere) {
    Net net = file.network();
    adapt(net, Policy{});
    if (elsewhere) {
      LoraAdapter& adapter = *frugal::detail::find_adapters(*net).front().adapter;
      adapter.begin_as(-1.001 * adapter.a().detach(), -1.001 * adapter.b().detach());
    }
    Trainer trainer{net,
                    CrossEntropy{},
                    Settings{.run_dir = run, .epochs = 6, .steps = steps},
                    Optimize<AdamW>{.lr = 0.02},
                    Policy{},
                    Checkpoint<Every<7>>{}};
    static_cast<void>(trainer.fit(file.batches()));
    return net(at::arange(40)).detach();
  };
  TemporaryFolder const folder;
  at::Tensor const whole = trained(folder / "whole", 20, false);
  trained(folder / "cut", 11, false);
  CHECK(at::equal(trained(folder / "cut", 20, true), whole));
}

TEST_CASE("initial values come from the run's seed") {
  File const file;
  using Policy = Lora<Rank<2>, On<"q_proj", "embed">>;
  auto const first = [&](std::uint64_t seed) {
    Net net = file.network();
    Trainer trainer{net, CrossEntropy{}, Settings{.seed = seed}, Optimize<AdamW>{}, Policy{}};
    trainer.adapt();
    return std::pair{net->named_parameters()["q_proj.lora.default.A"].detach(),
                     net->named_parameters()["embed.lora.default.B"].detach()};
  };
  auto const [a, b] = first(1);
  auto const [same_a, same_b] = first(1);
  auto const [other_a, other_b] = first(2);
  CHECK(at::equal(a, same_a));
  CHECK(at::equal(b, same_b));
  CHECK_FALSE(at::equal(a, other_a));
  CHECK_FALSE(at::equal(b, other_b));
  Net by_hand = file.network();
  adapt(by_hand, Policy{}, 2);
  CHECK(at::equal(by_hand->named_parameters()["q_proj.lora.default.A"], other_a));
}

TEST_CASE(
    "the adaptation belongs to the module: every call has it, and only adapters are trained") {
  File const file;
  using Policy = Lora<Rank<2>, Alpha<32>, On<"q_proj", "v_proj">>;
  Net net = file.network();
  std::vector<at::Tensor> base;
  std::vector<std::string> names;
  for (auto const& item : net->named_parameters()) {
    names.push_back(item.key());
    base.push_back(item.value().detach().clone());
  }
  Trainer trainer{net, CrossEntropy{}, Settings{.epochs = 20}, Optimize<AdamW>{.lr = 0.02},
                  Policy{}};
  double const before = trainer.evaluate(file.batches())["loss"];
  Report const report = trainer.fit(file.batches());
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(at::equal(net->named_parameters()[names[i]], base[i]));
  }
  double const after = trainer.evaluate(file.batches())["loss"];
  CHECK(after < 0.8 * before);
  // Without the policy, in another trainer and by hand.
  Trainer other{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}};
  CHECK(other.evaluate(file.batches())["loss"] == after);
  std::vector<at::Tensor> outputs;
  other.predict(file.batches(),
                [&](at::Tensor const& output, Batch const&) { outputs.push_back(output); });
  CHECK(at::equal(outputs.front(), net(at::arange(8)).detach()));
  use_adapter(net, "");
  CHECK(trainer.evaluate(file.batches())["loss"] == before);
  use_adapter(net, "default");
  CHECK(trainer.evaluate(file.batches())["loss"] == after);
}

TEST_CASE(
    "checkpoints hold the adapters alone, resume to the same bits, and only over their base") {
  using Policy =
      Lora<Rank<2>, Alpha<4>, AdapterDropout<0.2>, On<"q_proj", "conv">, AlsoTrain<"v_proj.*">>;
  File const file;
  auto const trained = [&](Net net, std::filesystem::path const& run, std::uint64_t steps) {
    Trainer trainer{net,
                    CrossEntropy{},
                    Settings{.run_dir = run, .epochs = 6, .steps = steps},
                    Optimize<AdamW>{.lr = 0.02},
                    Policy{},
                    Checkpoint<Every<7>>{}};
    static_cast<void>(trainer.fit(file.batches()));
    return net;
  };
  TemporaryFolder const folder;
  Net const whole = trained(file.network(), folder / "whole", 30);
  trained(file.network(), folder / "cut", 11);
  Net const resumed = trained(file.network(), folder / "cut", 30);
  auto const all = whole->named_parameters();
  for (auto const& item : resumed->named_parameters()) {
    CAPTURE(item.key());
    CHECK(at::equal(item.value(), all[item.key()]));
  }
  Safetensors const saved =
      Safetensors::open(latest_checkpoint((folder / "whole").string()) / "model.safetensors");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < saved.size(); ++i) names.emplace_back(saved[i].name);
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"conv.lora.default.A", "conv.lora.default.B",
                                          "q_proj.lora.default.A", "q_proj.lora.default.B",
                                          "v_proj.bias", "v_proj.weight"});
  Net other = file.network();
  {
    at::NoGradGuard const no_gradients;
    other->q_proj->weight += 1e-6;
  }
  CHECK_THROWS_WITH_AS(trained(other, folder / "cut", 35),
                       doctest::Contains("fixed tensors': their hash is"), StateError);
}

TEST_CASE("what Lora cannot adapt is an error, and changes nothing") {
  File const file;
  Net net = file.network();
  auto const names = net->named_parameters().keys();
  CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"q_proj", "k_proj">>{}), doctest::Contains("k_proj"),
                       SettingsError);
  CHECK_THROWS_AS(adapt(net, Lora<On<"q_proj">, AlsoTrain<"head">>{}), SettingsError);
  CHECK_THROWS_AS(merge(net), SettingsError);
  // Members that are set when the program runs, as by apply().
  CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"q_proj">>{.rank = 0}),
                       doctest::Contains("rank is 0 (Lora)"), SettingsError);
  CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"q_proj">>{.alpha = -1}),
                       doctest::Contains("alpha is -1"), SettingsError);
  CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"q_proj">>{.alpha = 0.0}),
                       doctest::Contains("alpha is 0"), SettingsError);
  CHECK_THROWS_WITH_AS(adapt(net, Lora<On<"q_proj">>{.dropout = 1}),
                       doctest::Contains("dropout is 1"), SettingsError);
  CHECK(net->named_parameters().keys() == names);
  adapt(net, Lora<Rank<2>, On<"q_proj">>{});
  adapt(net, Lora<Rank<2>, On<"q_proj">>{});
  CHECK_THROWS_WITH_AS(adapt(net, Lora<Rank<4>, On<"q_proj">>{}),
                       doctest::Contains("other settings"), SettingsError);
  merge(net);
  CHECK_THROWS_WITH_AS(adapt(net, Lora<Rank<2>, On<"q_proj">>{}), doctest::Contains("merged"),
                       SettingsError);
}

TEST_CASE("what cannot be adapted is found before the first layer changes") {
  File const file;
  Net net = file.network();
  auto const names = net->named_parameters().keys();
  at::Tensor const weight = net->q_proj->weight.detach().clone();
  // q_proj comes first, and could be adapted.
  CHECK_THROWS_WITH_AS(adapt(net, Lora<Rank<4>, Pissa, On<"q_proj", "v_proj">>{}),
                       doctest::Contains("'v_proj' an adapter of rank 4"), SettingsError);
  CHECK_THROWS_WITH_AS(adapt(net, Lora<Rank<2>, Pissa, On<"q_proj", "conv">>{}),
                       doctest::Contains("Pissa cannot adapt 'conv'"), SettingsError);
  CHECK(net->named_parameters().keys() == names);
  CHECK(at::equal(net->q_proj->weight, weight));
  CHECK(net->q_proj->weight.requires_grad());
}

std::size_t trained_tensors(torch::nn::Module const& module) {
  std::size_t count = 0;
  for (at::Tensor const& each : module.parameters()) count += each.requires_grad() ? 1 : 0;
  return count;
}

TEST_CASE("without its adapters a module is trained as a whole, and it can be adapted again") {
  using Policy = Lora<Rank<2>, On<"q_proj">>;
  File const file;
  Net net = file.network();
  at::Tensor const every = at::arange(40);
  at::Tensor const plain = net(every).detach();
  adapt(net, Policy{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::ones_(each.adapter->b());
  CHECK_FALSE(at::equal(net(every), plain));
  CHECK(trained_tensors(*net) == 2);
  remove_adapters(net);
  CHECK(at::equal(net(every), plain));
  CHECK(trained_tensors(*net) == 7);
  adapt(net, Policy{});
  CHECK(trained_tensors(*net) == 2);
}

/// Names of the parameters that are trained.
std::vector<std::string> trained_names(torch::nn::Module const& module) {
  std::vector<std::string> names;
  for (auto const& item : module.named_parameters()) {
    if (item.value().requires_grad()) names.push_back(item.key());
    CHECK(is_fixed(item.value()) == !item.value().requires_grad());
  }
  std::ranges::sort(names);
  return names;
}
using Names = std::vector<std::string>;

TEST_CASE("AlsoTrain trains what was frozen by hand, as before LoRA is usual") {
  Net net = File().network();
  for (at::Tensor const& each : net->parameters()) each.set_requires_grad(false);
  adapt(net, Lora<Rank<2>, On<"q_proj">, AlsoTrain<"v_proj.*">>{});
  CHECK(trained_names(*net) ==
        Names{"q_proj.lora.default.A", "q_proj.lora.default.B", "v_proj.bias", "v_proj.weight"});
}

TEST_CASE(
    "AlsoTrain goes by the tensor: which of its names comes first, and how often, is the same") {
  for (bool const is_first : {false, true}) {
    CAPTURE(is_first);
    torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::Linear(4, 3));
    auto const tied = torch::nn::Linear(4, 4);
    auto const root = std::make_shared<torch::nn::Module>("Tied");
    if (is_first) root->register_parameter("head", tied->weight);
    root->register_module("words", tied.ptr());
    root->register_module("rest", net.ptr());
    if (!is_first) root->register_parameter("head", tied->weight);
    for (int call = 0; call < 2; ++call) {
      adapt(root, Lora<Rank<2>, On<"rest.0">, AlsoTrain<"head">>{});
      CHECK(tied->weight.requires_grad());
      CHECK_FALSE(is_fixed(tied->weight));
      CHECK(is_fixed(tied->bias));
    }
  }
}

TEST_CASE(
    "a policy trains its own adapter, a recipe with two trains both, and each keeps its head") {
  using A = Lora<Rank<2>, On<"q_proj">, AdapterName<"a">, AlsoTrain<"v_proj.weight">>;
  using B = Lora<Rank<2>, On<"q_proj">, AdapterName<"b">>;
  Names const a{"q_proj.lora.a.A", "q_proj.lora.a.B", "v_proj.weight"};
  Names const b{"q_proj.lora.b.A", "q_proj.lora.b.B"};
  Net net = File().network();
  adapt(net, A{});
  CHECK(trained_names(*net) == a);
  adapt(net, B{});
  CHECK(trained_names(*net) == b);
  adapt(net, A{});
  CHECK(trained_names(*net) == a);
  Names both = a;
  both.insert(both.begin() + 2, b.begin(), b.end());
  Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<AdamW>{}, A{}, B{}};
  for (int call = 0; call < 2; ++call) {
    trainer.adapt();
    CHECK(trained_names(*net) == both);
  }
  adapt(net, B{});
  // The file of an adapter has its head, whichever is trained now.
  TemporaryFolder const folder;
  save_adapter(net, folder / "a", "a");
  save_adapter(net, folder / "b", "b");
  auto const saved = [&](char const* name) {
    return Safetensors::open(folder / name / "adapter_model.safetensors").size();
  };
  CHECK(saved("a") == 3);
  CHECK(saved("b") == 2);
  // There is one such weight, so another adapter cannot have it.
  auto const names = net->named_parameters().keys();
  CHECK_THROWS_WITH_AS(
      adapt(net, Lora<Rank<2>, On<"q_proj">, AdapterName<"c">, AlsoTrain<"v_proj.*">>{}),
      doctest::Contains("'v_proj.weight' is trained with the adapter 'a'"), SettingsError);
  CHECK_THROWS_AS(load_adapter(net, folder / "a", "c"), SettingsError);
  CHECK(net->named_parameters().keys() == names);
  CHECK(trained_names(*net) == b);
  remove_adapters(net);
  load_adapter(net, folder / "a", "c");
  CHECK(trained_names(*net) == Names{"q_proj.lora.c.A", "q_proj.lora.c.B", "v_proj.weight"});
  // What is trained already remains so beside an adapter that is loaded.
  load_adapter(net, folder / "b", "b");
  CHECK(trained_names(*net) == Names{"q_proj.lora.b.A", "q_proj.lora.b.B", "q_proj.lora.c.A",
                                     "q_proj.lora.c.B", "v_proj.weight"});
}

TEST_CASE("a fixed base keeps its statistics, unless AlsoTrain names the layer") {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(6, 6), torch::nn::BatchNorm1d(6),
                            torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(6).affine(false)),
                            torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 3));
  Trainer trainer{net, CrossEntropy{}, Settings{}, Optimize<SGD>{},
                  Lora<Rank<2>, On<"0">, AlsoTrain<"3.*">>{}};
  TensorDataset data(torch::randn({16, 6}), torch::randint(0, 3, {16}), {.batch = 8});
  static_cast<void>(trainer.fit(data));
  CHECK(net[1]->as<torch::nn::BatchNorm1d>()->num_batches_tracked.item<int>() == 0);
  CHECK(net[2]->as<torch::nn::BatchNorm1d>()->num_batches_tracked.item<int>() == 0);
  CHECK(net[3]->as<torch::nn::BatchNorm1d>()->num_batches_tracked.item<int>() == 2);
  remove_adapters(net);
  CHECK_FALSE(is_fixed(net[2]->as<torch::nn::BatchNorm1d>()->running_mean));
}

/// Two layers with one weight, and a table whose rows the output is compared with.
struct TiedImpl : torch::nn::Module {
  torch::nn::Embedding table{register_module(
      "table", torch::nn::Embedding(torch::nn::EmbeddingOptions(10, 8).padding_idx(0)))};
  torch::nn::Linear first{register_module("first", torch::nn::Linear(8, 8))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(8, 8))};
  TiedImpl() { second->weight = first->weight; }
  at::Tensor forward(at::Tensor const& ids) {
    return torch::linear(second(first(table(ids)).relu()), table->weight);
  }
};
TORCH_MODULE(Tied);

using First = Lora<Rank<2>, On<"0">, AdapterName<"first">>;
using Second = Lora<Rank<2>, On<"0">, AdapterName<"second">>;

/// A head with a BatchNorm that has no parameters.
std::shared_ptr<torch::nn::Module> with_plain_norm() {
  auto const body = std::make_shared<torch::nn::Module>();
  auto const head = body->register_module("head", std::make_shared<torch::nn::Module>());
  body->register_module("query", torch::nn::Linear(6, 8));
  head->register_module("norm",
                        torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(8).affine(false)));
  head->register_module("out", torch::nn::Linear(8, 3));
  return body;
}

TEST_CASE("AlsoTrain trains statistics that were fixed before, and those of another policy") {
  auto const body = with_plain_norm();
  at::Tensor const mean = body->named_buffers()["head.norm.running_mean"];
  using Alone = Lora<Rank<2>, On<"query">, AdapterName<"alone">>;
  using Whole = Lora<Rank<2>, On<"query">, AlsoTrain<"head.*">>;
  adapt(body, Alone{});
  CHECK(is_fixed(mean));
  adapt(body, Whole{});
  CHECK_FALSE(is_fixed(mean));
  adapt(body, Alone{});
  CHECK(is_fixed(mean));
  frugal::detail::Adaptation both(*body);
  Whole{}.adapt(*body, both);
  Alone{}.adapt(*body, both);
  both.keep();
  CHECK_FALSE(is_fixed(mean));
}

TEST_CASE("an adapter that is loaded leaves the statistics of another adapter's head") {
  TemporaryFolder const folder;
  auto const first = with_plain_norm();
  adapt(first, Lora<Rank<2>, On<"query">>{});
  save_adapter(first, folder.path());
  auto const body = with_plain_norm();
  adapt(body, Lora<Rank<2>, On<"query">, AlsoTrain<"head.*">>{});
  load_adapter(body, folder.path(), "second");
  CHECK_FALSE(is_fixed(body->named_buffers()["head.norm.running_mean"]));
  CHECK(body->named_parameters()["head.out.weight"].requires_grad());
  auto const alone = with_plain_norm();
  load_adapter(alone, folder.path());
  CHECK(is_fixed(alone->named_buffers()["head.norm.running_mean"]));
}

TEST_CASE("a recipe whose later policy refuses the module leaves none of its adapters") {
  torch::nn::Sequential net(torch::nn::Linear(8, 8));
  adapt(net, First{});
  {
    frugal::detail::Adaptation refused(*net);
    Second{}.adapt(*net, refused);
    CHECK(frugal::detail::find_adapters(*net).size() == 2);
  }
  auto const left = frugal::detail::find_adapters(*net);
  REQUIRE(left.size() == 1);
  CHECK(left[0].adapter->settings().name == "first");
  CHECK(frugal::detail::Interceptions::all().of(net->named_parameters()["0.weight"])->size() == 1);
  torch::nn::Sequential other(torch::nn::Linear(8, 8));
  {
    frugal::detail::Adaptation refused(*other);
    First{}.adapt(*other, refused);
  }
  CHECK(other->modules().size() == 2);
  CHECK(trained_tensors(*other) == 2);
}

TEST_CASE("an adapter acts in its layer alone, although the weight is tied to another operator") {
  torch::manual_seed(1);
  Tied net;
  at::Tensor const ids = at::tensor({0, 3, 0, 5});
  at::Tensor const hidden = torch::randn({4, 8});
  at::Tensor const product = at::linear(hidden, net->table->weight).detach();
  adapt(net, Lora<Rank<2>, On<"table">>{});
  LoraAdapter& adapter = *frugal::detail::find_adapters(*net).front().adapter;
  torch::nn::init::ones_(adapter.a());
  CHECK(at::equal(at::linear(hidden, net->table->weight), product));
  at::Tensor const rows = net->table(ids) - at::embedding(net->table->weight.clone(), ids);
  CHECK(at::allclose(rows[1], adapter.product()[3], 1e-5, 1e-6));
  // As in PEFT, padding is not trained.
  net(ids).square().sum().backward();
  CHECK(adapter.a().grad().select(1, 0).abs().max().item<double>() == 0);
  CHECK(adapter.a().grad().select(1, 3).abs().max().item<double>() > 0);
}

TEST_CASE("one of two layers with one weight cannot be adapted alone") {
  Tied net;
  CHECK_THROWS_WITH_AS(adapt(net, Lora<Rank<2>, On<"first">>{}),
                       doctest::Contains("'second' has the same weight"), SettingsError);
  CHECK(frugal::detail::find_adapters(*net).empty());
}

TEST_CASE("adapters over a quantized layer are not merged, and none of the others is") {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(64, 64), torch::nn::Linear(64, 64));
  adapt(net, Lora<Rank<2>, On<"*">>{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::ones_(each.adapter->b());
  quantize<INT8>(net, QuantizeOptions{.only = NamePatterns{"1"}});
  at::NoGradGuard const no_gradients;
  at::Tensor const input = torch::randn({4, 64});
  at::Tensor const adapted = net->forward(input);
  CHECK_THROWS_WITH_AS(merge(net), doctest::Contains("'1' cannot be merged"), SettingsError);
  CHECK(at::equal(net->forward(input), adapted));
  CHECK_THROWS_WITH_AS(adapt(net, Lora<Rank<2>, Dora, On<"1">, AdapterName<"second">>{}),
                       doctest::Contains("no weight in floating point"), SettingsError);
}

TEST_CASE("a quantized layer of a single number is known as such") {
  torch::nn::Sequential net(torch::nn::Linear(1, 1));
  quantize<INT8>(net);
  adapt(net, Lora<Rank<1>, On<"0">>{});
  CHECK_THROWS_WITH_AS(merge(net), doctest::Contains("is quantized"), SettingsError);
}

TEST_CASE("adapters that are merged one after the other are unmerged to the base's bits") {
  torch::manual_seed(1);
  at::NoGradGuard const no_gradients;
  torch::nn::Sequential net(torch::nn::Linear(8, 8));
  at::Tensor const weight = net->named_parameters()["0.weight"];
  at::Tensor const base = weight.clone();
  at::Tensor const input = torch::randn({4, 8});
  adapt(net, First{});
  adapt(net, Second{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::normal_(each.adapter->b());
  at::Tensor const both = net->forward(input);
  for (auto const& order : {std::vector<std::string>{"first", "second"}, {"second", "first"}}) {
    for (std::string const& name : order) merge(net, name);
    CHECK(at::allclose(net->forward(input), both, 1e-5, 1e-5));
    CHECK_FALSE(at::allclose(weight, base));
    unmerge(net);
    CHECK(at::equal(weight, base));
    unmerge(net);
    CHECK(at::equal(weight, base));
  }
}

/// Two linear layers with an adapter in the first, whose product is `number` everywhere.
torch::nn::Sequential with_product(double number, at::ScalarType type = at::kFloat) {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(8, 8), torch::nn::Linear(8, 8));
  net->to(type);
  adapt(net, First{});
  at::NoGradGuard const no_gradients;
  for (auto const& each : frugal::detail::find_adapters(*net)) {
    each.adapter->a().fill_(number);
    each.adapter->b().fill_(0.5);
  }
  return net;
}

TEST_CASE("a merged weight that was trained or written to is not unmerged, nor merged into") {
  torch::nn::Sequential net = with_product(1);
  at::NoGradGuard const no_gradients;
  at::Tensor const weight = net->named_parameters()["0.weight"];
  at::Tensor const base = weight.clone();
  merge(net);
  weight.add_(1);
  adapt(net, Second{});
  at::Tensor const written = weight.clone();
  CHECK_THROWS_WITH_AS(unmerge(net), doctest::Contains("'0' was changed after its adapter"),
                       StateError);
  CHECK_THROWS_WITH_AS(merge(net), doctest::Contains("'0' was changed"), StateError);
  CHECK(at::equal(weight, written));
  weight.copy_(base + 1);  // the same numbers again, written anew
  net->to(at::kDouble);
  net->to(at::kFloat);
  unmerge(net);
  CHECK(at::equal(weight, base));
}

TEST_CASE("weights are not loaded into a module with merged adapters") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = with_product(1);
  WeightRules const rules{.allow_missing = {"*.lora.*"}, .allow_unexpected = {"*.lora.*"}};
  save_weights(net, folder.path());
  merge(net);
  at::Tensor const merged = net->named_parameters()["0.weight"].clone();
  CHECK_THROWS_WITH_AS(load_weights(net, folder.path(), rules),
                       doctest::Contains("includes the adapter 'first', which is merged"),
                       StateError);
  CHECK(at::equal(net->named_parameters()["0.weight"], merged));
  unmerge(net);
  CHECK(load_weights(net, folder.path()).missing.empty());
  merge(net);
  CHECK(at::equal(net->named_parameters()["0.weight"], merged));
}

TEST_CASE("nor through a view of the memory that includes an adapter") {
  TemporaryFolder const folder;
  torch::nn::Sequential net = with_product(1);
  at::Tensor const weight = net->named_parameters()["0.weight"];
  {
    at::NoGradGuard const no_gradients;
    net->register_buffer("rows", weight.view(-1));
  }
  save_weights(net, folder.path());
  merge(net);
  at::Tensor const merged = weight.clone();
  WeightRules const rules{.parts = {"rows"}};
  CHECK_THROWS_WITH_AS(load_weights(net, folder.path(), rules),
                       doctest::Contains("includes the adapter 'first', which is merged"),
                       StateError);
  CHECK(at::equal(weight, merged));
}

TEST_CASE("a merge beyond the numbers of the weight's type changes no weight") {
  at::NoGradGuard const no_gradients;
  torch::nn::Sequential net = with_product(1, at::kHalf);
  at::Tensor const base = net->named_parameters()["0.weight"].clone();
  adapt(net, Lora<Rank<2>, On<"*">, AdapterName<"second">>{});
  for (auto const& each : frugal::detail::find_adapters(*net, "second"))
    each.adapter->b().fill_(each.layer.name == "1" ? 1e6 : 1);
  CHECK_THROWS_WITH_AS(merge(net), doctest::Contains("'second' of '1' cannot be merged"),
                       WeightRangeError);
  CHECK(at::equal(net->named_parameters()["0.weight"], base));
  merge(net, "first");
  at::Tensor const merged = net->named_parameters()["0.weight"].clone();
  CHECK_FALSE(at::equal(merged, base));
  CHECK_THROWS_AS(merge(net), WeightRangeError);
  CHECK(at::equal(net->named_parameters()["0.weight"], merged));
  unmerge(net);
  CHECK(at::equal(net->named_parameters()["0.weight"], base));
}

TEST_CASE("an adapter that is merged is not left out by choosing another") {
  torch::nn::Sequential net = with_product(1);
  adapt(net, Second{});
  merge(net, "first");
  CHECK_THROWS_WITH_AS(use_adapter(net, "second"), doctest::Contains("'first' of '0' is merged"),
                       SettingsError);
  CHECK_THROWS_AS(use_adapter(net, ""), SettingsError);
  use_adapter(net, "first");
  unmerge(net);
  use_adapter(net, "second");
}

TEST_CASE("a merge does not change a layer that has the weight's numbers") {
  torch::nn::Sequential net = with_product(1);
  at::NoGradGuard const no_gradients;
  net->named_parameters()["1.weight"].set_data(net->named_parameters()["0.weight"].detach());
  CHECK_THROWS_WITH_AS(merge(net), doctest::Contains("'1' has the same weight"), SettingsError);
}

TEST_CASE("a merge does not change another module that has the same tensor") {
  struct Tied : torch::nn::Module {
    torch::nn::Linear linear{register_module("linear", torch::nn::Linear(4, 6))};
    torch::nn::EmbeddingBag bag{register_module("bag", torch::nn::EmbeddingBag(6, 4))};
  };
  auto const net = std::make_shared<Tied>();
  net->bag->weight = net->linear->weight;
  adapt(net, Lora<Rank<2>, On<"linear">>{});
  CHECK_THROWS_WITH_AS(merge(net), doctest::Contains("'bag.weight' is the same tensor"),
                       SettingsError);
}

TEST_CASE("a convolution that was made in InferenceMode is merged and unmerged there") {
  c10::InferenceMode const inference;
  torch::nn::Sequential net(torch::nn::Conv2d(2, 4, 3));
  adapt(net, Lora<Rank<2>, On<"0">>{});
  auto const adapter = frugal::detail::find_adapters(*net).front().adapter;
  torch::nn::init::ones_(adapter->b());
  at::Tensor const before = net->named_parameters()["0.weight"].clone();
  merge(net);
  CHECK(adapter->is_merged());
  CHECK_FALSE(at::equal(net->named_parameters()["0.weight"], before));
  unmerge(net);
  CHECK(at::equal(net->named_parameters()["0.weight"], before));
}

TEST_CASE("norms of DoRA are those of FP32 in a module of 16 bits") {
  torch::manual_seed(3);
  at::NoGradGuard const no_gradients;
  torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(64, 8).bias(false)));
  net->named_parameters()["0.weight"].fill_(1.0 / 8192);  // its square is zero in FP16
  adapt(net, Lora<Rank<2>, Dora, On<"0">>{});
  at::Tensor const input = torch::ones({1, 64});
  at::Tensor const whole = net->forward(input);
  net->to(at::kHalf);
  CHECK(at::allclose(net->forward(input.to(at::kHalf)).to(at::kFloat), whole, 1e-3, 0));
}

TEST_CASE("the file of an adapter has a head that was that of one which is gone") {
  TemporaryFolder const folder;
  torch::nn::Sequential net(torch::nn::Linear(8, 8), torch::nn::Linear(8, 3));
  adapt(net, Lora<Rank<2>, On<"0">, AlsoTrain<"1.*">, AdapterName<"gone">>{});
  remove_adapters(net);
  adapt(net, Lora<Rank<2>, On<"0">>{});
  for (char const* name : {"1.weight", "1.bias"}) {
    at::Tensor const each = net->named_parameters()[name];
    unfix_tensor(each);
    each.set_requires_grad(true);
  }
  save_adapter(net, folder.path());
  Safetensors const file = Safetensors::open(folder / "adapter_model.safetensors");
  CHECK(file.find("base_model.model.1.weight").has_value());
}

TEST_CASE("adapters take part in calls in InferenceMode, of a module that was made outside of it") {
  torch::nn::Sequential net = with_product(1);
  at::Tensor const input = torch::randn({4, 8});
  at::Tensor const adapted = net->forward(input).detach();
  at::Tensor const positions = net->forward(input.view({2, 2, 8})).detach();
  c10::InferenceMode const inference;
  CHECK(at::equal(net->forward(input), adapted));
  CHECK(at::equal(net->forward(input.view({2, 2, 8})), positions));
  torch::nn::Sequential other(torch::nn::Linear(8, 8));
  CHECK_THROWS_WITH_AS(adapt(other, First{}), doctest::Contains("InferenceMode"), SettingsError);
}

TEST_CASE("what was not trained before it was adapted is not trained without its adapters") {
  torch::nn::Sequential net(torch::nn::Linear(8, 8));
  net[0]->register_parameter("positions", torch::zeros(8), false);
  net[0]->register_parameter("table", torch::arange(8), false);
  adapt(net, First{});
  remove_adapters(net);
  for (auto const& item : net->named_parameters()) {
    CAPTURE(item.key());
    CHECK_FALSE(is_fixed(item.value()));
    CHECK(item.value().requires_grad() == (item.key() == "0.weight" || item.key() == "0.bias"));
  }
}

TEST_CASE("an adapted embedding of 16 bits gives 16 bits") {
  torch::nn::Sequential net(torch::nn::Embedding(10, 6));
  net->to(at::kBFloat16);
  adapt(net, First{});
  bool const same = net->forward(at::arange(3)).scalar_type() == at::kBFloat16;
  CHECK(same);
}

TEST_CASE("a weight that was quantized after a merge is not unmerged, and neither are others") {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(64, 64), torch::nn::Linear(64, 64));
  adapt(net, Lora<Rank<2>, On<"*">>{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::ones_(each.adapter->b());
  merge(net);
  at::Tensor const merged = net->named_parameters()["0.weight"].clone();
  quantize<INT8>(net, QuantizeOptions{.only = NamePatterns{"1"}});
  CHECK_THROWS_WITH_AS(unmerge(net), doctest::Contains("'1' cannot be unmerged"), SettingsError);
  CHECK(at::equal(net->named_parameters()["0.weight"], merged));
}

TEST_CASE("the magnitude of DoRA scales the weight's output, and not that of another adapter") {
  using Scaled = Lora<Rank<2>, Dora, On<"0">, AdapterName<"scaled">>;
  torch::manual_seed(1);
  at::NoGradGuard const no_gradients;
  at::Tensor const input = torch::randn({4, 8});
  for (bool const scaled_first : {true, false}) {
    torch::nn::Sequential net(torch::nn::Linear(8, 8));
    if (scaled_first) adapt(net, Scaled{});
    adapt(net, First{});
    if (!scaled_first) adapt(net, Scaled{});
    at::Tensor const weight = net->named_parameters()["0.weight"];
    at::Tensor sum = weight.clone();  // PEFT adds the adapters' parts to the weight's output
    for (auto const& each : frugal::detail::find_adapters(*net)) {
      LoraAdapter& adapter = *each.adapter;
      torch::nn::init::normal_(adapter.b());
      at::Tensor const product = adapter.b().mm(adapter.a()) * adapter.scale();
      if (!adapter.magnitude().defined()) {
        sum += product;
        continue;
      }
      adapter.magnitude().mul_(1.5);
      at::Tensor const whole = weight + product;
      sum += adapter.magnitude().unsqueeze(1) * whole / whole.norm(2, 1, true) - weight;
    }
    at::Tensor const expected = at::linear(input, sum, net->named_parameters()["0.bias"]);
    CHECK(at::allclose(net->forward(input), expected, 1e-4, 1e-5));
    merge(net);
    CHECK(at::allclose(net->forward(input), expected, 1e-4, 1e-5));
    unmerge(net);
    CHECK(at::allclose(net->forward(input), expected, 1e-4, 1e-5));
  }
}

TEST_CASE("a magnitude is that of the plain weight, and not of one with a merged adapter") {
  using Scaled = Lora<Rank<2>, Dora, On<"0">, AdapterName<"scaled">>;
  torch::nn::Sequential net = with_product(1);
  merge(net);
  CHECK_THROWS_WITH_AS(adapt(net, Scaled{}), doctest::Contains("includes the adapter 'first'"),
                       SettingsError);
  unmerge(net);
  adapt(net, Scaled{});
  at::Tensor const input = torch::randn({4, 8});
  at::NoGradGuard const no_gradients;
  at::Tensor const both = net->forward(input);
  CHECK_THROWS_WITH_AS(merge(net, "first"), doctest::Contains("'scaled' uses Dora"), SettingsError);
  merge(net, "scaled");
  CHECK(at::allclose(net->forward(input), both, 1e-5, 1e-5));
  merge(net);
  CHECK(at::allclose(net->forward(input), both, 1e-5, 1e-5));
}

TEST_CASE("a merge of doubles is as exact as they are") {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(64, 64));
  net->to(at::kDouble);
  adapt(net, Lora<Rank<2>, On<"0">>{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::ones_(each.adapter->b());
  at::NoGradGuard const no_gradients;
  at::Tensor const input = torch::randn({4, 64}, at::kDouble);
  at::Tensor const adapted = net->forward(input);
  merge(net);
  CHECK(at::allclose(net->forward(input), adapted, 1e-12, 1e-12));
}

TEST_CASE("weights that are saved when merged are those of the plain module") {
  File const file;
  Net net = file.network();
  adapt(net, Lora<Rank<2>, On<"q_proj", "conv">>{});
  for (auto const& each : frugal::detail::find_adapters(*net))
    torch::nn::init::ones_(each.adapter->b());
  at::Tensor const adapted = net(at::arange(40)).detach();
  merge(net);
  TemporaryFolder const folder;
  save_weights(net, folder.path());
  Net plain = file.network();
  CHECK(load_weights(plain, folder.path()).matched.size() == 7);
  CHECK(at::allclose(plain(at::arange(40)), adapted, 1e-5, 1e-5));
}

/// Computes with a layer that is not the registered one.
struct ReplacedImpl : torch::nn::Module {
  torch::nn::Linear used{6, 3};
  torch::nn::Linear registered{register_module("layer", torch::nn::Linear(6, 3))};
  at::Tensor forward(at::Tensor const& rows) { return used(rows); }
};
TORCH_MODULE(Replaced);

TEST_CASE("an adapter of a layer that the module never calls is an error in the first step") {
  TensorDataset data(torch::randn({16, 6}), torch::randint(0, 3, {16}), {.batch = 8});
  Trainer trainer{Replaced(), CrossEntropy{}, Settings{}, Optimize<SGD>{}, Lora<On<"layer">>{}};
  CHECK_THROWS_WITH_AS(trainer.fit(data), doctest::Contains("layer.lora.default.A"), ModuleError);
}

}  // namespace frugal_test::model_lora
